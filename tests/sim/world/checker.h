/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CHECKER_H
#define LK_SIM_WORLD_CHECKER_H

#include "sim/model/ensemble.h"
#include "sim/world/coverage.h"
#include "sim/world/process.h"

/**
 * Watches a run and knows what must never be. Each invariant is a function
 * under the name that stands in checker's table; whatever happens is told to
 * the checker by those who do it, and after each job of the agenda it looks at
 * all that can be looked at. It believes true time and what is committed, not
 * what a client says of itself.
 */
typedef struct sim_checker sim_checker;

/** An invariant: its name ("MUTEX-EXCLUSION") and a line of text. */
typedef struct sim_invariant {
  const char *name;
  const char *text;
} sim_invariant;

extern const sim_invariant sim_invariants[];
extern const size_t sim_ninvariants;

/** Before the ensemble, the processes and the actors are made. */
sim_checker *sim_checker_new(sim_world *w);
void sim_checker_free(sim_checker *j);
/** Do not look at this one. false: no such name. */
bool sim_checker_disable(sim_checker *j, const char *invariant);
/** What the ensemble tells. */
sim_ensemble_hooks sim_checker_hooks(sim_checker *j);
/** After each job. */
void sim_checker_after_job(sim_checker *j);
/** The faults are over, time has passed, all actors have stopped wanting. */
void sim_checker_when_quiescent(sim_checker *j);
/** Whether it is calm: no acquire, release or verify is under way and nothing
    is left to be deleted. Asked until it is, or time is up. */
bool sim_checker_is_quiescent(const sim_checker *j);
/** All clients are freed. */
void sim_checker_end(sim_checker *j);
/** How often `invariant` was broken; `what`: the first time in words. */
size_t sim_checker_broken(const sim_checker *j, size_t invariant,
                          const char **what);
/** The same for all together. */
size_t sim_checker_violations(const sim_checker *j);

/* ---- told by the faults ------------------------------------------------- */

/** An operator is about to end this session. */
void sim_checker_operator_ends(sim_checker *j, int64_t session);

/** The same for all sessions. */
void sim_checker_operator_ends_all(sim_checker *j);
/** The ensemble has begun anew, with smaller zxids. */
void sim_checker_wiped(sim_checker *j);

/** What the ensemble tells from now on is what a snapshot has brought back: it
    was judged before, and has no owner. */
void sim_checker_set_restoring(sim_checker *j, bool restoring);

/* ---- told by foreign lockers -------------------------------------------- */

/** It holds by this node, as far as it knows. */
void sim_checker_foreign_holds(sim_checker *j, const char *path);

/* ---- told by the processes ---------------------------------------------- */

/** A client was made; the actors come next. */
void sim_checker_process_started(sim_checker *j, sim_process *p);
/** Its session lease was made. */
void sim_checker_lease_made(sim_checker *j, sim_process *p);
/** The process has died, or its client was freed. */
void sim_checker_process_ended(sim_checker *j, sim_process *p);
/** lk_client_close() has ended. */
void sim_checker_closed(sim_checker *j, sim_process *p, int err);
/** Its connection is new: streams begin. */
void sim_checker_connected(sim_checker *j, sim_process *p);
/** Bytes left its client, after those before. */
void sim_checker_sent(sim_checker *j, sim_process *p, const void *bytes,
                      size_t len);
/** Bytes are handed to its client now. */
void sim_checker_received(sim_checker *j, sim_process *p, const void *bytes,
                          size_t len);

#endif
