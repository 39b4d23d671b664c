/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_OPERATIONS_H
#define LK_LIVE_CLIENT_OPERATIONS_H

/**
 * @file
 * A table of every request of a client, with its results and its effect on the
 * tree. The client `here` sends the requests through a wire (see wire.h). The
 * client `there` reads the tree afterwards; in an ensemble it is connected to
 * another server.
 */

#include "live/client/wire.h"
#include "live/client/world.h"
#include "support/server_version.h"

/** The flags of an operation. */
enum {
  WRITES = 1,        /**< a write, which a client must not send twice */
  CREATES = 2,       /**< creates "/new", or a sequential node */
  NUMBERED = 4,      /**< creates a sequential node */
  NO_PATH = 8,       /**< the request has no path */
  ENSEMBLE_ONLY = 16 /**< a standalone server refuses it */
};

/** In place of an event: the request sets no watch. */
enum { NO_WATCH = 0 };

typedef struct operation {
  const char *name;
  int32_t op; /**< the opcode of the request */
  int flags;
  /** Send the request for `node`, a path as `here` names it. When the request
      completes, its results are the shown_text(), and `last_reply` has the
      rest. */
  int (*send)(lk_client *c, const char *node, const lk_call *call);
  const char *blocking;   /**< the function of the blocking interface, as in
                             every_calls[]; NULL: it has none of its own */
  const char *result;     /**< the results as text, of both; see result_of() */
  const char *tree_after; /**< the expected tree_of(); NULL: unchanged */
  int missing_err;        /**< the error if the node is missing */
  int denied_err;         /**< the error if the client has no permission; see
                             denied_err_of() */
  int watch_event;        /**< the event that the request's watch reports for
                             make_change(); or NO_WATCH */
} operation;

extern const operation operations[];
extern const size_t noperations;
/** The result and the error that are expected from the version of the servers.
 */
const char *result_of(const operation *o);
int denied_err_of(const operation *o);

/** The number of turns of a loop test that tries each operation that an
    ensemble accepts, or a standalone server, without a chroot and with one. */
int turns_of_operations(bool ensemble);
/** The operation that such a test tries in its turn `_i`. Whether the turn uses
    a chroot says with_chroot(). */
const operation *operation_of(int i);
/** The same for the operations that are not implemented. */
int turns_of_missing_operations(void);
const operation *missing_operation_of(int i);

/* ---- fixture ------------------------------------------------------------ */

/** The wire between `here` and its server. */
extern wire *wire_of_here;
/** Whether there are three servers. */
extern bool is_ensemble;

/** "host:port" of server `n`, valid until the next call. */
const char *server_address(int n);
/** A client of the n-th server, from 1 on, without chroot or wire. */
lk_client *client_to(int n);
/** The hosts of `here`, without the wire but with its chroot. */
const char *hosts_of_here(void);
/** The current members of the ensemble, in the format of lk_reconfig(). */
const char *all_members(void);

/** Create a directory for the test, and connect `here` and `there`. */
void fixture_set_up(bool use_chroot);
void fixture_tear_down(void);
/** The path of `name` below `node`, in the directory of the test, as `here` and
    as `there` must name it. The text is in one of eight buffers, which are used
    in turn. */
const char *path_here(const char *node, const char *name);
const char *path_there(const char *node, const char *name);

/** Create a node with the children /kid and /mine; /mine is an ephemeral node
    of `here`. */
void make_test_node(const char *node);
/** tree_of() of a new test node. */
extern const char test_node_tree[];
/** The same without /mine. */
void make_node_and_kid(const char *node);
/** A node and its descendants as text, as `there` reads them after a sync. Each
    node is "NAME=DATA"; NAME is "." for the node, and otherwise the path below
    it. Behind NAME follow "*" if the node is ephemeral, "@N" if its version N
    is not 0, and "#N" if the version N of its access list is not 0. The text
    ends with " reconfigured" if the ensemble was reconfigured after
    make_test_node(). */
const char *tree_of(const char *node);

/** Send the request, wait until it completes, and return its error. */
int send_and_wait(const operation *o, const char *node, const lk_call *call);
/** Callbacks for operations. They ignore `arg`. */
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
