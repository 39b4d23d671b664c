/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_OPERATIONS_H
#define LK_LIVE_CLIENT_OPERATIONS_H

/**
 * @file
 * A table of every request of a client, with its results and its effect on the
 * tree. `here` sends it through a wire. `there`, in an ensemble connected to
 * another server, reads the tree afterwards.
 */

#include "live/client/wire.h"
#include "live/client/world.h"

/** The results of the last request, as text. */
typedef struct outcome {
  bool done;
  int err;
  char text[512];
} outcome;

extern outcome last_result;

enum {
  WRITES = 1,        /**< must not be repeated */
  CREATES = 2,       /**< creates "/new", or a sequential node */
  NUMBERED = 4,      /**< the node is sequential */
  NO_PATH = 8,       /**< the request has no path */
  ENSEMBLE_ONLY = 16 /**< a standalone server refuses it */
};

typedef struct operation {
  const char *name;
  int32_t op; /**< on the wire */
  int flags;
  /** Send the request for a path of `here`; fills `last_result`. */
  int (*send)(lk_client *c, const char *node, const lk_call *call);
  const char *result;     /**< `last_result.text` */
  const char *tree_after; /**< as of tree_of(); NULL: unchanged */
  int missing;            /**< the error for a missing node */
  int denied;             /**< the error without permissions */
  int watch_event; /**< the event of its watch for a change; 0: no watch */
} operation;

extern const operation operations[];
extern const size_t noperations;
/** How many of them apply to a standalone server, or to an ensemble. */
size_t operations_in(bool ensemble);

/** The operation of a loop test's `_i`, and whether it runs with a chroot. */
const operation *operation_of(int i);
bool with_chroot(int i);

/* ---- fixture ------------------------------------------------------------ */

/** Between `here` and its server. */
extern wire *wire_of_here;
/** Whether there are three servers. */
extern bool is_ensemble;

/** A client of the n-th server, from 1 on, without chroot or wire. */
lk_client *client_to(int n);
/** The current members of the ensemble, in the format of lk_reconfig(). */
const char *all_members(void);

/** Create a directory for the test, and connect `here` and `there`. */
void fixture_set_up(bool chroot);
void fixture_tear_down(void);
/** A path below a node of it as `here` says it, and as `there` does. Of the
   last eight. */
const char *path_here(const char *node, const char *name);
const char *path_there(const char *node, const char *name);

/** Create a node with the children /kid and /mine; /mine is an ephemeral node
    of `here`. */
void make_test_node(const char *node);
/** tree_of() of a new test node. */
extern const char test_node_tree[];
/** A node and all below, as `there` sees it, behind a sync. */
const char *tree_of(const char *node);

/** Ask and wait for the end. */
int send_and_wait(const operation *o, const char *node, const lk_call *call);
/** Wait until the request completes, and return its error; `refused` is what
    the call returned. */
int wait_for_result(int refused);

/** Callbacks that fill `last_result` and ignore `arg`. */
void on_ended(lk_client *c, int err, void *arg);
void on_version(lk_client *c, int err, const lk_stat *stat, void *arg);
void on_ids(lk_client *c, int err, const lk_identity *ids, size_t count,
            void *arg);
void on_config(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
               void *arg);

/* Parts of this program. */
TCase *effect_tests(bool ensemble);
TCase *error_tests(bool ensemble);
TCase *operation_watch_tests(bool ensemble);

#endif
