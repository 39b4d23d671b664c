/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CHECKER_H
#define LK_SIM_WORLD_CHECKER_H

#include "sim/model/ensemble.h"
#include "sim/world/coverage.h"
#include "sim/world/process.h"

/**
 * Checks the invariants during a run. Each invariant is a function in the table
 * of invariants.h. The ensemble, the faults, the processes and the actors
 * report facts to the checker, and each invariant receives the kinds of facts
 * that it lists. The checker relies on virtual time and committed transactions,
 * not on the state of a client.
 */
typedef struct sim_checker sim_checker;

/** An invariant: its name, such as "MUTEX-EXCLUSION", and what it demands. */
typedef struct sim_invariant {
  const char *name;
  const char *text;
} sim_invariant;

extern const sim_invariant sim_invariants[];
extern const size_t sim_ninvariants;

/** Make the checker. Called before the ensemble, the processes and the actors
    are made. */
sim_checker *sim_checker_new(sim_world *w);
void sim_checker_free(sim_checker *checker);
/** Do not check this invariant. false: there is none of that name. */
bool sim_checker_disable(sim_checker *checker, const char *invariant);
/** The hooks for the ensemble. */
sim_ensemble_hooks sim_checker_hooks(sim_checker *checker);
/** A job of the simulation has run. */
void sim_checker_after_job(sim_checker *checker);
/** The faults are over, and either sim_checker_is_quiescent() or the time for
    it has passed. Checks that no acquire is left waiting. */
void sim_checker_when_quiescent(sim_checker *checker);
/** Whether no acquire, release or verify is outstanding, and no node is left to
    be deleted. */
bool sim_checker_is_quiescent(const sim_checker *checker);
/** The number of violations of `invariant`; `what`: the text of the first
    one. */
size_t sim_checker_violations_of(const sim_checker *checker, size_t invariant,
                                 const char **what);
/** The number of violations of all invariants. */
size_t sim_checker_violations(const sim_checker *checker);

/* ---- reported by faults ------------------------------------------------- */

/** An operator is about to end this session. */
void sim_checker_note_ended_by_operator(sim_checker *checker, int64_t session);

/** An operator is about to end all sessions. */
void sim_checker_note_all_ended_by_operator(sim_checker *checker);
/** The ensemble was wiped; its zxids start again with smaller ones. */
void sim_checker_note_wiped(sim_checker *checker);

/** Between these calls the ensemble reports transactions that a snapshot has
    restored. They were checked before, and their nodes have no owner. */
void sim_checker_begin_restore(sim_checker *checker);
void sim_checker_end_restore(sim_checker *checker);

/** Whether the node at `path` need not be deleted by its owner, who may not
    know that it exists. */
bool sim_checker_excuses_node(const sim_checker *checker, const char *path);

/* ---- reported by foreign lockers ---------------------------------------- */

/** A foreign locker believes that it holds with this node. */
void sim_checker_note_foreign_holder(sim_checker *checker, const char *path);

/* ---- reported by processes ---------------------------------------------- */

/** A client was made; its actors start next. */
void sim_checker_note_process_started(sim_checker *checker, sim_process *p);
/** The client's session lease was made. */
void sim_checker_note_lease_made(sim_checker *checker, sim_process *p);
/** The process has died, or its client was freed. */
void sim_checker_note_process_ended(sim_checker *checker, sim_process *p);
/** lk_client_close() has completed. */
void sim_checker_note_closed(sim_checker *checker, sim_process *p, int err);
/** The client has a new connection. */
void sim_checker_note_connected(sim_checker *checker, sim_process *p);
/** The client sent bytes, in the order of the stream. */
void sim_checker_note_sent(sim_checker *checker, sim_process *p,
                           const void *bytes, size_t len);
/** Bytes are passed to the client now. */
void sim_checker_note_received(sim_checker *checker, sim_process *p,
                               const void *bytes, size_t len);

/** The addresses that a process uses have changed, or a proxy has begun to let
    it through. So its time to connect starts anew. */
void sim_checker_note_reachable(sim_checker *checker, sim_process *p);

#endif
