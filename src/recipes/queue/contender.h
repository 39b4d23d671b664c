/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_H
#define LK_RECIPES_QUEUE_CONTENDER_H

/**
 * @file
 * A contender: one node in the queue of a lock, from before it is created until
 * it is certainly deleted. The contender exists before the create is sent, so
 * the node always has an owner in memory. A contender that its owner has
 * stopped deletes the node by itself, as part of the session lease.
 *
 * It is a state machine (contender_states.h), and a struct of named parts; the
 * functions of a part are declared in the header of its file.
 */

#include "base/list.h"
#include "recipes/lease/lease_user.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender_states.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/own_node_candidates.h"
#include "recipes/queue/predecessor_list.h"

#include <latchkey/acl.h>

typedef struct lk_session_lease lk_session_lease;

/** Find the position of a permit in a list: `predecessors` is the number of
   nodes above `limit`. */
typedef void (*lk_permit_position_fn)(lk_queue_position *out,
                                      const lk_role *role, lk_bytes own,
                                      const lk_bytes *names, size_t count,
                                      size_t limit);

/** The options of a contender. Valid until the contender is stopped, has ended
    or was lost. */
typedef struct lk_contender_config {
  const lk_contender_machine *machine; /**< lk__queue_machine or another */
  const lk_role *role;
  lk_node_identity identity;
  const char *name; /**< of the node behind the unique part; NULL: that of
                         the role's node kind */
  const void *machine_config; /**< further options of the machine */
  const char *dir;            /**< "" for the root */
  lk_bytes dir_data; /**< what it is created with; `at` NULL: nothing */
  lk_bytes data;
  const lk_acls *acl;
  const lk_acls *parent_acl;
  bool persistent_parents;
  const int32_t *limit; /**< of a role that counts: how many nodes of the
                             directory may hold; NULL: any number */
  lk_permit_position_fn find_position; /**< of a role that counts */
  bool once;        /**< end with LK_ERR_BUSY instead of waiting */
  size_t max_queue; /**< end with LK_ERR_QUEUE_FULL with more predecessors than
                       this; 0: any number */
  bool peek;        /**< list the queue before a node is created */
  lk_bytes announcement; /**< written into the own node at a grant after a wait;
                              `at` NULL: nothing */
  bool unsure_when_suspended;
  bool fail_on_expiry;
  bool revocable;      /**< watch the own node from the grant on */
  bool needs_no_lease; /**< the owner acquires another node after this one, and
                          that grant needs the lease */
} lk_contender_config;

/** Requests are counted: they are sent only while there is a connection, so
    their replies come in order, and all of them complete before the next
    connection is reported. */
typedef struct lk_request_count {
  uint64_t sent;
  uint64_t replied;
  uint64_t ignored; /**< replies up to this one belong to an earlier round */
} lk_request_count;

/** A pause: the server is overloaded, or there is no connection. */
typedef struct lk_contender_pause {
  lk_timer timer;
  unsigned count; /**< pauses in a row */
} lk_contender_pause;

/** Results of the current round of requests. */
typedef struct lk_round {
  unsigned parents_missing; /**< how often in a row the directory was missing */
  int create_err;
  int parent_err; /**< why the directory could not be created, or 0 */
  int transaction_err;
  int predecessor_err;
  int own_err;
  size_t reads_replied; /**< of READING_PREDECESSORS */
  bool deleted[LK_MAX_PREDECESSOR_READS];
  bool checked; /**< a check of the own node has just completed */
} lk_round;

/** State while there are predecessors. */
typedef struct lk_wait {
  lk_watch *watch; /**< of the direct predecessor, or of the directory */
  bool predecessor_deleted;
  bool watches_directory; /**< the direct predecessor cannot be read */
  bool limit_changed;     /**< since the last list */
  uint64_t listed_zxid;   /**< of a permit: the zxid that its list shows */
  bool had_predecessors;
  bool node_is_foreign; /**< the single node is another client's: read it
                             before a create */
  size_t reported_position;
} lk_wait;

/** HELD and UNSURE. */
typedef struct lk_holding {
  int64_t watch_due_ms; /**< when the own node is to be watched, if it is not */
  int64_t read_due_ms;  /**< when it is to be read, if nothing checks it */
  bool proven;          /**< the own node was seen since the last doubt */
  bool awaits_lease;    /**< see lk__contender_await_lease() */
  bool revoked;         /**< another client requests the release */
} lk_holding;

/** CLEANING_UP. */
typedef struct lk_cleanup {
  bool too_big; /**< a list, or a node in it, is larger than the client takes */
  bool recovering; /**< transaction and list are under way */
  bool deleting;
} lk_cleanup;

/** A reader whose owner holds the write side, see rwlock/downgrade.c. */
typedef struct lk_downgrade {
  lk_contender *writer;  /**< of the same owner, which held when this contender
                              began; or NULL */
  /** With a writer: create the own node. 0, or why the request was refused. */
  int (*send_create)(lk_contender *ct);
  uint64_t writer_token; /**< counts instead of the own token; 0: none */
} lk_downgrade;

struct lk_contender {
  lk_acquisition acquisition; /* of one node: `self` */
  lk_contender *self;
  lk_lease_user lease_user; /* of `lease`, until FINISHED */
  lk_session_lease *lease;
  size_t refs; /* the state machine's until FINISHED, requests, callers */
  const lk_acquisition_callbacks *callbacks; /* NULL: none are invoked */
  void *callbacks_arg;
  const lk_contender_config *config; /* valid until CLEANING_UP */
  const lk_role *role;
  const lk_contender_machine *machine;
  lk_contender_state state;
  lk_request_count requests;
  lk_contender_pause pause;
  lk_own_node own;
  lk_round round;
  lk_own_node_candidates candidates;
  lk_predecessors predecessors;
  lk_wait wait;
  lk_downgrade downgrade;
  lk_holding holding;
  lk_cleanup cleanup;
};

void lk__contender_ref(lk_contender *ct);
void lk__contender_unref(lk_contender *ct);

lk_client *lk__contender_client(const lk_contender *ct);
uint64_t lk__contender_connection(const lk_contender *ct);
bool lk__contender_holds(const lk_contender *ct);
/** The fencing token. */
uint64_t lk__contender_token(const lk_contender *ct);
/** The data of the own node. */
lk_bytes lk__contender_data(const lk_contender *ct);
/** The name of its node is fixed. */
static inline bool lk__contender_is_single_node(const lk_contender *ct)
{
  return !ct->machine->waits_with_own_node;
}
/** The rules of its state. */
static inline const lk_contender_rules *
lk__contender_rules(const lk_contender *ct)
{
  return ct->machine->states[ct->state];
}
/** The contender behind `after` among all of the client of `ct`, or for NULL
   the first; NULL: there is none. For loops that invoke no callback. */
lk_contender *lk__contender_next_of_client(const lk_contender *ct,
                                           const lk_contender *after);

void lk__contender_notify(lk_contender *ct, const lk_notice *notice);
void lk__contender_notify_position(lk_contender *ct);
void lk__contender_cancel_watches(lk_contender *ct);

#endif
