/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_OPERATIONS_H
#define LK_LIVE_CLIENT_OPERATIONS_H

/**
 * @file
 * Every request that a client has, as a table: what it brings and leaves
 * behind. `here` asks for it through a wire; `there`, in an ensemble at another
 * server, looks at what came of it.
 */

#include "live/client/wire.h"
#include "live/client/world.h"

/** What the last request ended with, as text. */
typedef struct outcome {
  bool done;
  int err;
  char text[512];
} outcome;

extern outcome said;

enum {
  WRITES = 1,      /**< is not to be asked for again */
  CREATES = 2,     /**< a node "/new", or of a name of its own */
  NUMBERS = 4,     /**< gives it that name */
  NO_NODE_IN = 8,  /**< it is not about a node */
  IN_ENSEMBLE = 16 /**< there alone */
};

typedef struct operation {
  const char *name;
  int32_t op; /**< on the wire */
  int flags;
  /** About the node at a path of `here`, with the outcome in `said`. */
  int (*ask)(lk_client *c, const char *node, const lk_call *call);
  const char *brings; /**< as text; NULL: something */
  const char *leaves; /**< as of picture(); NULL: nothing changes */
  int missing;        /**< where there is no such node */
  int denied;         /**< where only others may do anything */
  int watches;        /**< what its watch is told of a change; 0: sets none */
} operation;

extern const operation operations[];
extern const size_t noperations;
/** How many of them there are alone, or in an ensemble. */
size_t operations_in(bool ensemble);

/** For the `_i` of a loop test: which one, and with or without a chroot. */
const operation *operation_of(int i);
bool with_chroot(int i);

/* ---- where it happens -----------------------------------------------------
 */

/** Between `here` and its server. */
extern wire *near;
/** Whether there are three servers. */
extern bool is_ensemble;

/** A client of the n-th server, from 1 on, without chroot or wire. */
lk_client *client_to(int n);
/** The ensemble as it is, as lk_reconfig() takes it. */
const char *all_members(void);

/** Have a place of its own for a test, with `here` connected. */
void place_enter(bool chroot);
void place_leave(void);
/** A path below a node of it as `here` says it, and as `there` does. Of the
   last eight. */
const char *at(const char *node, const char *name);
const char *beyond(const char *node, const char *name);

/** Make a node with a child /kid and /mine, which is of `here`'s session. */
void furnish(const char *node);
/** What furnish() leaves. */
extern const char furniture[];
/** A node and all below, as `there` sees it, behind a sync. */
const char *picture(const char *node);

/** Ask and wait for the end. */
int do_ask(const operation *o, const char *node, const lk_call *call);
/** Wait for the end of what was asked for: its error. */
int ended(int refused);

/** Ends of requests that fill `said`, whatever `arg`. */
void on_ended(lk_client *c, int err, void *arg);
void on_version(lk_client *c, int err, const lk_stat *stat, void *arg);
void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
            void *arg);
void on_config(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
               void *arg);

/* Parts of this program. */
TCase *deed_tests(bool ensemble);
TCase *error_tests(bool ensemble);
TCase *watch_over_tests(bool ensemble);

#endif
