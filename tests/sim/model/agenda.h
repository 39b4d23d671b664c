/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_AGENDA_H
#define LK_SIM_MODEL_AGENDA_H

#include "base/heap.h"

/** A millisecond, in the agenda's microseconds. */
#define SIM_MS INT64_C(1000)

/**
 * Virtual time, and the jobs that are due at later times. Time jumps from one
 * job to the next. Jobs of the same time run in the order of scheduling. A job
 * is a member of the object that it works for.
 */
typedef struct sim_agenda {
  int64_t now_us;
  uint64_t scheduled; /**< number of jobs scheduled so far */
  uint64_t done;      /**< number of jobs run so far */
  lk_heap jobs;
} sim_agenda;

typedef struct sim_job {
  lk_heap_node node; /**< in `sim_agenda.jobs` */
  void (*run)(void *arg);
  void *arg;
} sim_job;

/** Schedule `job` at `at_us`, or now if that time has passed. If the job is
    scheduled already, it is moved. The caller has set `run` and `arg`. */
void sim_schedule_at(sim_agenda *a, sim_job *job, int64_t at_us);
/** Schedule `job` at `in_us` from now. */
void sim_schedule_in(sim_agenda *a, sim_job *job, int64_t in_us);
void sim_unschedule(sim_agenda *a, sim_job *job);
/** The time of the next job, or INT64_MAX. */
int64_t sim_next_us(const sim_agenda *a);
/** Advance to the time of the next job and run it. false: there is none. */
bool sim_step(sim_agenda *a);

#endif
