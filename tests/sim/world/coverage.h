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
  M(WRITER_READS, "a writer acquires the read side as well")                              \
  M(DOWNGRADED, "a writer is downgraded")                              \
  M(FOREIGN_DOWNGRADED, "a foreign locker downgrades")                                 \
  M(REFUSED_AS_DEADLOCK, "an acquire is refused as a deadlock")       \
  M(PERMITS_AT_ONCE, "permits are granted without waiting")                     \
  M(PERMITS_LATER, "permits are granted after waiting")                          \
  M(PERMITS_GIVEN_BACK, "permits are given back before the grant")          \
  M(FIRST_WAITS_FOR_PERMITS, "the first in the queue waits for permits")      \
  M(MEMBERS_AT_ONCE, "members of a multi-lock are created in one transaction")            \
  M(MEMBERS_IN_TURN, "members of a multi-lock are created in several transactions")             \
  M(MEMBERS_GIVEN_BACK, "members are given back before the grant")              \
  M(LOST_WITH_ONE_NODE, "a lock with several nodes is lost with one of them")                            \
  M(STARTED_AGAIN, "a node is deleted before the grant, and the acquire starts again")  \
  M(REVOKED, "a holder gets a revocation")                           \
  M(RESET, "a handle is reset")                           \
  M(LATE_LEASE, "a session lease is made after the session")          \
  M(IDENTITY_WHILE_CONNECTED, "an identity is added while connected")            \
  M(IDENTITY_WITHOUT_CONNECTION, "an identity is added without a connection")                \
  M(DEEP_CREATE, "a node is created with its parents")                   \
  M(DEEP_DELETE, "a tree is deleted")                                 \
  M(LIMITS, "a client has limits that are not the defaults")                    \
  M(SPLIT_HEARTBEAT, "a heartbeat needs several requests")              \
  M(ELECTED, "a candidate is elected")              \
  M(DEPOSED, "a leader is deposed")              \
  M(NAME_TAKEN, "the name of a member is taken")              \
  M(MEMBERSHIP_LOST, "a member's node is deleted, or its session expires")
/* clang-format on */

#define SIM_MILESTONE_ENUM(name, text) SIM_MILESTONE_##name,
typedef enum sim_milestone {
  SIM_MILESTONES(SIM_MILESTONE_ENUM) SIM_NMILESTONES
} sim_milestone;

void sim_coverage_milestone(sim_milestone m);
void sim_coverage_step(lk_contender_event ev, lk_contender_state from);
void sim_coverage_state_change(lk_state from, lk_state to);
void sim_coverage_fault(enum sim_fault fault);
/** Print how many kinds of each were covered, and the names of those that were
    not. `with_counts`: also how often each fault and each milestone
    happened. */
void sim_coverage_print(FILE *out, bool with_counts);
/** sim_coverage_save() copies the counts of a child process to `out`, which has
    sim_coverage_size() bytes. The parent adds them to its own by
    sim_coverage_add(). */
size_t sim_coverage_size(void);
void sim_coverage_save(void *out);
void sim_coverage_add(const void *saved);

#endif
