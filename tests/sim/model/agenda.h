/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_AGENDA_H
#define LK_SIM_MODEL_AGENDA_H

#include "base/heap.h"

#define SIM_MS INT64_C(1000) /**< a millisecond, in the agenda's microseconds \
                              */

/**
 * True time, and what is to be done when. It moves only from job to job; jobs
 * of the same moment are done in the order in which they were put down. A job
 * lives in its owner and belongs to nobody while it is not on the agenda.
 */
typedef struct sim_agenda {
  int64_t now_us;
  uint64_t count; /**< jobs put down so far */
  uint64_t done;  /**< jobs done so far */
  lk_heap jobs;
} sim_agenda;

typedef struct sim_job {
  lk_heap_node node; /**< the agenda's */
  void (*run)(void *arg);
  void *arg;
} sim_job;

/** Put `job` down for `at_us`, or for now if that has passed; it may be on the
    agenda already, then it is moved. Fill in `run` and `arg` before. */
void sim_schedule_at(sim_agenda *a, sim_job *job, int64_t at_us);
/** The same, `in_us` from now. */
void sim_schedule_in(sim_agenda *a, sim_job *job, int64_t in_us);
void sim_unschedule(sim_agenda *a, sim_job *job);
/** When the next job is due, or INT64_MAX. */
int64_t sim_next_us(const sim_agenda *a);
/** Move on to the next job and do it. false: there is none. */
bool sim_step(sim_agenda *a);

#endif
