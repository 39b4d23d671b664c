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
 * What the functions of faults share: faults_links.c, faults_servers.c and
 * faults_operator.c.
 */

/** A fault that lasts: what is to be undone. */
typedef struct sim_active_fault {
  lk_link link;
  sim_faults *faults;
  sim_job job;
  bool (*heal)(struct sim_active_fault *x); /**< false: not possible now */
  unsigned a;                               /**< whom it is about */
  unsigned b;
  int direction;
  int64_t amount;
  char path[96];
} sim_active_fault;

/** The faults of a condition. */
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
  sim_condition_faults condition_faults[SIM_MOST_CONDITIONS];
  size_t ncondition_faults;
  lk_link active_faults;
  bool over;
  unsigned links[SIM_WORLD_SERVERS][SIM_WORLD_SERVERS]; /**< cut by how many */
  bool existing[SIM_WORLD_SERVERS]; /**< servers that stand still */
};

/** It will be healed after so long; fill in whom it is about. */
sim_active_fault *sim_start_fault(sim_faults *f,
                                  bool (*heal)(sim_active_fault *x),
                                  int64_t for_us);

/** T in true time. */
int64_t sim_fault_T_us(const sim_faults *f);
/** How long one lasts: mostly short, sometimes longer than a session lives. */
int64_t sim_fault_duration(sim_faults *f);
unsigned sim_random_process(sim_faults *f);
/** Mostly one that stands at the head of a queue. */
unsigned sim_random_holder(sim_faults *f);
unsigned sim_random_server(sim_faults *f);

/** A process reaches a server no more, or is reached no more. */
void sim_cut_route(sim_faults *f, unsigned process, unsigned server,
                   int direction, int64_t for_us);
/** Bytes take longer. */
void sim_slow_route(sim_faults *f, unsigned process, unsigned server,
                    int direction, int64_t by_us, int64_t for_us);
/** Neither reaches the other. */
void sim_cut_both(sim_faults *f, unsigned process, unsigned server,
                  int64_t for_us);

/** Bit n of `servers`: server n is listed from now on. false: it cannot be told
    now. */
bool sim_set_hosts(sim_process *p, unsigned servers);

#define TRACE(f, ...) SIM_TRACE(&(f)->world->trace, "fault", __VA_ARGS__)

#define SIM_DECLARE_INJECT(name, function, text) \
  bool sim_inject_##function(sim_faults *f); /**< false: it could not */
SIM_FAULTS(SIM_DECLARE_INJECT)

#endif
