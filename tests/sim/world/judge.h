/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_JUDGE_H
#define LK_SIM_WORLD_JUDGE_H

#include "sim/model/ensemble.h"
#include "sim/world/coverage.h"
#include "sim/world/process.h"

/**
 * Watches a run and knows what must never be. Each property is a function
 * under the name that stands in judge's table; whatever happens is told to the
 * judge by those who do it, and after each job of the agenda it looks at all
 * that can be looked at. It believes true time and what is committed, not what
 * a client says of itself.
 */
typedef struct sim_judge sim_judge;

/** A property: its name ("MUTEX-EXCLUSION") and a line of text. */
typedef struct sim_property {
  const char *name;
  const char *text;
} sim_property;

extern const sim_property sim_properties[];
extern const size_t sim_nproperties;

/** Before the ensemble, the processes and the actors are made. */
sim_judge *sim_judge_new(sim_world *w);
void sim_judge_free(sim_judge *j);
/** Do not look at this one. false: no such name. */
bool sim_judge_without(sim_judge *j, const char *property);
/** What the ensemble tells. */
sim_ensemble_hooks sim_judge_hooks(sim_judge *j);
/** After each job. */
void sim_judge_look(sim_judge *j);
/** The faults are over, time has passed, all actors have stopped wanting. */
void sim_judge_calm(sim_judge *j);
/** Whether it is calm: no acquire, release or verify is under way and nothing
    is left to be deleted. Asked until it is, or time is up. */
bool sim_judge_is_calm(const sim_judge *j);
/** All clients are freed. */
void sim_judge_end(sim_judge *j);
/** How often `property` was broken; `what`: the first time in words. */
size_t sim_judge_broken(const sim_judge *j, size_t property, const char **what);
/** The same for all together. */
size_t sim_judge_violations(const sim_judge *j);

/* ---- told by the faults ------------------------------------------------- */

/** An operator is about to end this session. */
void sim_judge_doomed(sim_judge *j, int64_t session);

/** The same for all sessions. */
void sim_judge_doom_all(sim_judge *j);
/** The ensemble has begun anew, with smaller zxids. */
void sim_judge_wiped(sim_judge *j);

/** What the ensemble tells from now on is what a snapshot has brought back: it
    was judged before, and has no owner. */
void sim_judge_restores(sim_judge *j, bool restores);

/* ---- told by peers ------------------------------------------------------ */

/** It holds by this node, as far as it knows. */
void sim_judge_entered(sim_judge *j, const char *path);

/* ---- told by the processes ---------------------------------------------- */

/** A client was made; the actors come next. */
void sim_judge_started(sim_judge *j, sim_process *p);
/** Its session lease was made. */
void sim_judge_leased(sim_judge *j, sim_process *p);
/** The process has died, or its client was freed. */
void sim_judge_gone(sim_judge *j, sim_process *p);
/** lk_client_close() has ended. */
void sim_judge_closed(sim_judge *j, sim_process *p, int err);
/** Its connection is new: streams begin. */
void sim_judge_connected(sim_judge *j, sim_process *p);
/** Bytes left its client, after those before. */
void sim_judge_sent(sim_judge *j, sim_process *p, const void *bytes,
                    size_t len);
/** Bytes are handed to its client now. */
void sim_judge_received(sim_judge *j, sim_process *p, const void *bytes,
                        size_t len);

#endif
