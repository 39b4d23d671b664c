/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_COVERAGE_H
#define LK_SIM_WORLD_COVERAGE_H

#include "recipes/queue/contender.h"
#include "sim/world/faults.h"

#include <stdio.h>

/**
 * Coverage of a run of the program: steps of the contender state machine,
 * changes of session states, faults, and milestones.
 */

/** Situations that are counted, mostly of locks with more than one node. */
/* clang-format off */
#define SIM_MILESTONES(M)                                                \
  M(READS_TOO, "a writer reads as well")                              \
  M(TURNED, "a writer becomes a reader")                              \
  M(PEER_READS_TOO, "so does a foreign locker")                                 \
  M(REFUSED, "somebody would wait for himself, and is refused")       \
  M(PERMITS_AT_ONCE, "permits are there at once")                     \
  M(PERMITS_LATER, "permits are waited for")                          \
  M(PERMITS_BACK, "permits are given back before the grant")          \
  M(FIRST_AND_WAITS, "the first in the queue waits for permits")      \
  M(ALL_AT_ONCE, "several locks are granted in one round")            \
  M(ROUNDS, "several locks are granted in more than one")             \
  M(LATER_BACK, "locks are given back before the grant")              \
  M(WHOLE_LOST, "all is lost with a part")                            \
  M(BEGUN_ANEW, "a part goes before the grant, and all begins anew")  \
  M(REVOKED, "a holder is asked to let go")                           \
  M(LATE_LEASE, "a session lease is made after the session")          \
  M(LATE_IDENTITY, "an identity is added to a connection")            \
  M(IDENTITY_AWAY, "one is added where there is none")                \
  M(DEEP_CREATE, "a node is made with its parents")                   \
  M(DEEP_DELETE, "a tree is deleted")                                 \
  M(LIMITS, "a client has other limits and times")                    \
  M(CROWD, "a heartbeat takes several requests")
/* clang-format on */

#define SIM_MILESTONE_ENUM(name, text) SIM_MILESTONE_##name,
typedef enum sim_milestone {
  SIM_MILESTONES(SIM_MILESTONE_ENUM) SIM_NMILESTONES
} sim_milestone;

void sim_coverage_milestone(sim_milestone m);
void sim_coverage_step(lk_contender_event ev, lk_contender_state from);
void sim_coverage_state_change(lk_state from, lk_state to);
void sim_coverage_fault(enum sim_fault fault);
/** Print how much was covered, and the names of what was not. With `counts`,
    also how often each fault and each milestone happened. */
void sim_coverage_print(FILE *out, bool counts);
/** The coverage of a child process as bytes for its parent, and its addition in
    the parent. */
size_t sim_coverage_size(void);
void sim_coverage_save(void *out);
void sim_coverage_add(const void *session_to_resume);

#endif
