/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FUZZ_RECIPES_WORLD_H
#define LK_FUZZ_RECIPES_WORLD_H

#include "../input.h"
#include "../target.h"
#include "support/locks.h"

/**
 * @file
 * The parts of fuzz_recipes.c. Each file of this folder has the actions of one
 * kind, which take their operands from the input, and what they act upon.
 */

typedef struct world {
  fuzz_input in;
  model_server server;
  test_client client;
  unsigned deferred; /**< how many calls the next callbacks make */
  bool trace;        /**< print the names of the actions */
} world;

extern world w;

typedef struct action {
  const char *name;
  void (*run)(void);
} action;

/** The next byte of the input. */
unsigned take(void);
/** One of a few paths. */
const char *take_path(void);
/** Run the action that the next byte selects. */
void run(const action *table, size_t count);

/** NULL: it was freed. */
lk_client *client(void);

/** Called at the end of each callback: makes a call if one was deferred. */
void react(void);

/* ---- locks.c ------------------------------------------------------------- */

void do_make(void);
void do_make_candidate(void);
void do_acquire(void);
void do_release(void);
void do_cancel(void);
void do_verify(void);
void do_guarded(void);
void do_free(void);
/** Check that what is held has a token and a lease. */
void locks_check(void);
void locks_free(void);

/* ---- operations.c -------------------------------------------------------- */

void do_operation(void);
/** A place for an operation; NULL: there is none. */
bool *operation_begin(void);
/** The operation was refused with `err`, if that is not 0. */
void operation_refused(bool *under_way, int err);
/** In the callback of the operation. */
void operation_end(void *under_way);
void operations_check_ended(void);

/* ---- groups.c ------------------------------------------------------------ */

void do_member(void);
void do_roster(void);
void do_read_roster(void);
void do_subscription(void);
void groups_check(void);
void groups_free(void);

/* ---- others.c ------------------------------------------------------------ */

/** An act of another client, or of the server by itself. */
void do_act(void);

#endif
