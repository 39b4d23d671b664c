/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ACTIVE_FAULT_H
#define LK_SIM_WORLD_ACTIVE_FAULT_H

#include "sim/world/faults.h"

#include "base/list.h"
#include "sim/world/network.h"
#include "sim/world/process.h"

#include <inttypes.h>
#include <stdio.h>

/**
 * Shared by faults_links.c, faults_servers.c and faults_operator.c.
 */

/** A fault that lasts, and how to end it. */
typedef struct sim_active_fault {
  lk_link link;
  sim_faults *faults;
  sim_rng rng; /**< for heal(), which must not depend on later faults */
  sim_job job;
  bool (*heal)(struct sim_active_fault
                   *x); /**< end the fault; false: not possible now */
  unsigned process;
  unsigned server;
  unsigned other_server;  /**< the second end of a link between servers */
  unsigned requests_sent; /**< by the operator, to end the fault */
  int direction;          /**< SIM_UP or SIM_DOWN */
  int64_t amount;         /**< of a delay, or a duration; in microseconds */
  char path[96];          /**< of the node that an operator changes */
} sim_active_fault;

/** The schedule of the faults that a condition adds. */
typedef struct sim_condition_faults {
  sim_faults *faults;
  const struct sim_condition *condition;
  sim_rng rng;
  sim_job next;
} sim_condition_faults;

enum { SIM_MOST_CONDITIONS = 32 };

struct sim_faults {
  sim_world *world;
  sim_rng rng;
  sim_job next;
  size_t next_listed; /**< index in `world->schedule` */
  sim_condition_faults condition_faults[SIM_MOST_CONDITIONS];
  size_t ncondition_faults;
  lk_link active_faults;
  bool over;
  /** number of active faults that cut each link between servers */
  unsigned link_cuts[SIM_WORLD_SERVERS][SIM_WORLD_SERVERS];
  bool stopped[SIM_WORLD_SERVERS]; /**< servers that a fault has stopped */
};

/** Start a fault that ends after `for_us`. The caller sets the members that its
    heal() reads. */
sim_active_fault *sim_start_fault(sim_faults *f,
                                  bool (*heal)(sim_active_fault *x),
                                  int64_t for_us);

/** T, the session timeout, in microseconds of virtual time. */
int64_t sim_fault_T_us(const sim_faults *f);
/** A random duration: with a probability of 7/8 shorter than T, else T to 2
    T. */
int64_t sim_fault_duration(sim_faults *f);
unsigned sim_random_process(sim_faults *f);
/** A random process; more often than by chance one that has the first node of a
    queue. */
unsigned sim_likely_holder(sim_faults *f);
unsigned sim_random_server(sim_faults *f);

/** All servers of the ensemble, in a set with a bit for each. */
#define SIM_ALL_SERVERS (~0U)

/** "up" or "down". */
static inline const char *sim_direction_name(int direction)
{
  return direction == SIM_UP ? "up" : "down";
}

/** Drop all bytes between a process and a server in one direction. */
void sim_cut_route(sim_faults *f, unsigned process, unsigned server,
                   int direction, int64_t for_us);
/** Delay bytes between a process and a server in one direction. */
void sim_slow_route(sim_faults *f, unsigned process, unsigned server,
                    int direction, int64_t by_us, int64_t for_us);
/** Drop all bytes between a process and a server. */
void sim_cut_both(sim_faults *f, unsigned process, unsigned server,
                  int64_t for_us);

/** Set the servers of a client; bit n of `servers`: server n. false: not
    possible now. */
bool sim_set_hosts(sim_process *p, unsigned servers);

#define TRACE(f, ...) SIM_TRACE(&(f)->world->trace, "fault", __VA_ARGS__)

#define SIM_DECLARE_INJECT(name, function, text) \
  bool sim_inject_##function(sim_faults *f); /**< false: not possible now */
SIM_FAULTS(SIM_DECLARE_INJECT)

#endif
