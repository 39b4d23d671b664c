/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_CONTENDER_H
#define LK_RECIPES_QUEUE_CONTENDER_H

/**
 * @file
 * A contender: one client's participation in the queue of a lock, among the
 * permits of a semaphore or for a single node, from before its own node is
 * created until that node is certainly deleted. The contender exists
 * before the create is sent, so each node has an owner in memory. A contender
 * that was stopped deletes its node by itself; the session lease keeps the
 * contender until then.
 *
 * A contender is a state machine (contender_states.h). Its struct consists of
 * named parts, whose functions are in own_node.c, recovery.c, predecessors.c,
 * holding.c and cleanup.c. The parts of which those files need no struct of
 * their own are defined here.
 */

#include <latchkey/acl.h>

#include "base/list.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender_states.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/predecessors.h"
#include "recipes/queue/queue.h"
#include "recipes/queue/recovery.h"
#include "recipes/retry.h"

typedef struct lk_session_lease lk_session_lease;

/** The options of a contender. Its owner keeps them until the contender is
    stopped, has ended or was lost. */
typedef struct lk_contender_config {
  const lk_contender_machine *machine; /**< lk__queue_machine or another */
  const lk_role *role;
  lk_node_identity identity;
  const char *name; /**< what follows the unique part in the name of the node;
                         NULL: the text of the role's node kind */
  const void *machine_config; /**< further options of the machine */
  const char *dir;            /**< directory of the queue, "" for the root */
  lk_bytes dir_data;  /**< data with which `dir` is created; `at` NULL: none */
  lk_bytes data;      /**< data of the own node */
  const lk_acls *acl; /**< of the own node */
  const lk_acls *parent_acl; /**< of directories that have to be created */
  bool persistent_parents;   /**< create directories that are no containers */
  const int32_t *limit; /**< for a permit: how many nodes of the directory may
                             hold; NULL: any number */
  bool once;            /**< end with LK_ERR_BUSY instead of waiting */
  size_t max_queue; /**< end with LK_ERR_QUEUE_FULL with more predecessors than
                       this; 0: any number */
  bool peek;        /**< list the queue before a node is created */
  bool unsure_when_suspended;
  bool fail_on_expiry;
  bool revocable;      /**< watch the own node at once when it is granted */
  bool needs_no_lease; /**< the owner acquires another node after this one, and
                          that grant needs the lease */
} lk_contender_config;

/** Counts of requests and replies. Requests are sent only while there is a
    connection. So their replies come in order, and all of them complete before
    the next connection is reported. */
typedef struct lk_request_count {
  uint64_t sent;
  uint64_t replied;
  uint64_t ignored; /**< replies up to this one belong to an earlier round */
} lk_request_count;

/** The pause before a retry, or before the next check of the lease. */
typedef struct lk_contender_pause {
  lk_timer timer;
  lk_backoff backoff; /**< of pauses before retries */
} lk_contender_pause;

/** Results of the current round of requests. Each error is 0 or the error of
    the named request. A member is valid in the states that its comment names;
    in other states it is left from an earlier round. */
typedef struct lk_round {
  /* CREATING and CREATING_PARENTS: */
  unsigned parents_missing; /**< how often in a row the directory was missing;
                                 kept in all states until a create succeeds */
  int create_err; /**< create of the own node, once its reply has come; not of
                       a downgrade */
  int parent_err; /**< create of a directory; cleared with each create of the
                       own node that the contender sends alone */
  /* RECOVERING, and CLEANING_UP during a recovery: */
  int transaction_err; /**< the transaction, once its reply has come */
  /* SETTING_WATCHES, WAITING and READING_PREDECESSORS: */
  int predecessor_err; /**< reads of predecessors */
  int own_err;         /**< read of the own node; also in READING_OWN */
  /* READING_PREDECESSORS: */
  size_t reads_replied;                   /**< replies to reads */
  bool deleted[LK_MAX_PREDECESSOR_READS]; /**< by the index of the read */
  /* LISTING and CHECKING_OWN: */
  bool checked; /**< a check of the own node has completed since LISTING or the
                     last pause began */
} lk_round;

/** State while there are predecessors. */
typedef struct lk_waiting {
  lk_watch *watch; /**< of the direct predecessor, or of the directory */
  bool predecessor_deleted;
  bool watches_directory; /**< `watch` is of the directory, since the contender
                             is a permit or cannot read its predecessor */
  bool limit_changed;     /**< the limit of permits, since the last list */
  uint64_t listed_zxid;   /**< for a permit: the largest zxid that was seen when
                             its list came */
  bool node_is_foreign;   /**< the single node is another client's: read it
                             before a create */
  size_t reported_position; /**< 0: none was reported yet */
} lk_waiting;

/** State while the contender is HELD or UNSURE. */
typedef struct lk_holding {
  int64_t watch_due_ms; /**< when to watch the own node, if there is no watch */
  int64_t read_due_ms;  /**< when to read the own node, if no multi checks it */
  bool proven;          /**< a reply has shown the own node since the connection
                           was lost or the contender became unsure */
  bool awaits_lease;    /**< see lk__contender_await_lease() */
  bool revoked;         /**< another client requests the release */
} lk_holding;

/** State of CLEANING_UP. */
typedef struct lk_cleanup {
  bool too_big;    /**< a list or a node was larger than the client accepts */
  bool recovering; /**< the recovery of the own node is under way */
  bool deleting;   /**< the delete of the own node is under way */
} lk_cleanup;

/** A reader whose owner holds the write side, see own_node.c. */
typedef struct lk_downgrade {
  lk_contender *writer;  /**< the owner's contender for the write side, which
                            held when this contender began; NULL: no downgrade */
  uint64_t writer_token; /**< the writer's fencing token, which is used instead
                              of the own token; 0: none */
} lk_downgrade;

struct lk_contender {
  lk_acquisition acquisition; /**< with this contender as its only one */
  lk_contender *self;         /**< the element of `acquisition.parts` */
  lk_lease_user lease_user;   /**< changed by `lease` alone */
  lk_session_lease *lease;
  size_t refs; /**< one until FINISHED, one for each request under way, and
                  those of callers */
  /** NULL: none are invoked any more, since the contender was stopped without
      LK_GONE_REPORT, has ended or was lost. Such a contender must not be
      stopped again: in FINISHED, STOP is no step. */
  const lk_acquisition_callbacks *callbacks;
  void *callbacks_arg;
  const lk_contender_config *config; /**< valid until CLEANING_UP */
  const lk_role *role;
  const lk_contender_machine *machine;
  lk_contender_state state;
  lk_request_count requests;
  lk_contender_pause pause;
  lk_own_node own;
  lk_round round;
  lk_possible_nodes possible;
  lk_predecessors predecessors;
  lk_waiting wait;
  lk_downgrade downgrade;
  lk_holding holding;
  lk_cleanup cleanup;
};

/* Lifetime. A contender is freed with its last reference. A step can end the
   contender, and so can a callback of the owner. So after a function that says
   that `ct` may be freed, a caller reads the state of `ct` again, and it uses
   `ct` only if it has a reference. The callbacks of replies, watch events and
   timers have one until they return, and so do the calls of the session lease
   which notify the contender. */

/* Creation and start of a contender: the states IDLE and PAUSED. */

/** Make a contender in IDLE; no request is sent. It exists until FINISHED, or
    longer for callers with a reference of their own. NULL: no memory. */
lk_contender *lk__contender_new(lk_session_lease *lease,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
                                void *arg);
/** Start. The `ended` callback may be invoked before this returns, and `ct`
    may be freed. */
void lk__contender_begin(lk_contender *ct);

extern const lk_contender_rules lk__rules_idle;
extern const lk_contender_rules lk__rules_paused;

void lk__contender_ref(lk_contender *ct);
/** `ct` may be freed. */
void lk__contender_unref(lk_contender *ct);

lk_client *lk__contender_client(const lk_contender *ct);
uint64_t lk__contender_connection(const lk_contender *ct);
bool lk__contender_holds(const lk_contender *ct);
/** The fencing token; 0: not known. */
uint64_t lk__contender_token(const lk_contender *ct);
/** The data with which the own node is created. */
lk_bytes lk__contender_data(const lk_contender *ct);
/** Whether the contender waits for the deletion of predecessors, or reads those
    that may be left. */
static inline bool lk__contender_waits(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_SETTING_WATCHES ||
         ct->state == LK_CONTENDER_WAITING ||
         ct->state == LK_CONTENDER_READING_PREDECESSORS;
}
/** Whether the contender is for a single-node lock, which has no queue. */
static inline bool lk__contender_is_single_node(const lk_contender *ct)
{
  return !ct->machine->waits_with_own_node;
}
/** The rules of the state of `ct`. */
static inline const lk_contender_rules *
lk__contender_rules(const lk_contender *ct)
{
  return ct->machine->states[ct->state];
}
/** Whether the node at the own path of `ct`, with the czxid `token`, is the own
    node of another contender of the client. Neither suffices alone: a name can
    be used again, and the nodes of one transaction have the same czxid. */
bool lk__node_is_of_other_contender(const lk_contender *ct, uint64_t token);

/** Invoke the owner's `notice`, if there are callbacks. `ct` may be freed. */
void lk__contender_notify(lk_contender *ct, const lk_notice *notice);
/** Notify the owner of the number of predecessors, if that has changed. `ct`
    may be freed. */
void lk__contender_notify_position(lk_contender *ct);
void lk__contender_cancel_watches(lk_contender *ct);
/** Cancel the watch of a waiter, if there is one. Also when the request that
    was to set it has failed: a later request can have set it meanwhile, and its
    event would come after the contender has ended. */
void lk__contender_cancel_wait_watch(lk_contender *ct);

/* Errors of requests that do not show the state of the lock, such as a
   connection loss. */

/** A request completed with `err`, which does not show the state of the lock:
    pause and retry, or fail, as lk__error_advice() says. `ct` may be freed. */
void lk__contender_request_failed(lk_contender *ct, int err);
/** Called for each read and list that completed with `err`. If the reply was
    larger than the client accepts, it has broken the connection, and the
    connection loss has paused the contender. A retry on the next connection
    would break that as well, so the paused contender fails. Returns whether it
    has failed; then `ct` may be freed. */
bool lk__contender_fail_if_too_big(lk_contender *ct, int err);

/* The requests and replies of a contender are counted, so that the replies to
   requests of an earlier round can be ignored. */

/** Count a request that was accepted, and take a reference for its callback.
    `err` is the result of the request function. Nothing is counted if it is not
    0. Returns `err`. */
int lk__contender_count_request(lk_contender *ct, int err);
/** Count a reply, at the start of each callback. false: the callback must
    ignore the reply, which belongs to an earlier round. In both cases, the
    callback ends with lk__contender_unref(). */
bool lk__contender_take_reply(lk_contender *ct);
/** Ignore the replies to all requests under way. */
void lk__contender_ignore_replies(lk_contender *ct);
/** Whether no request is outstanding. */
static inline bool lk__contender_has_all_replies(const lk_contender *ct)
{
  return ct->requests.sent == ct->requests.replied;
}
/** A read of a predecessor or of the own node completed: continue if no request
    is outstanding. `ct` may be freed. */
void lk__contender_continue_if_all_read(lk_contender *ct);

/* Pauses of a contender: before a retry, and before the next check of the
   lease. */

/** Start the timer of a pause of `ms`. At its end, the contender continues by
    lk_contender_rules.resume of its state. */
void lk__contender_start_pause(lk_contender *ct, int64_t ms);
/** Start a pause before a retry. */
void lk__contender_start_backoff(lk_contender *ct);

/* What the session lease notifies each contender of. It has a reference to `ct`
   meanwhile; without one `ct` may be freed. */

/** Continue in the present state: there is a connection to a server with a
    quorum, or a pause has ended. */
void lk__contender_resume(lk_contender *ct);
/** The connection was lost. */
void lk__contender_suspend(lk_contender *ct);
/** The session has expired, and with it the own node. */
void lk__contender_session_expired(lk_contender *ct);
/** No request is possible any more, because of `err`. */
void lk__contender_client_closed(lk_contender *ct, int err);
/** A heartbeat is being sent. Watch or read the own node now, if that is due.
    No callback is invoked. */
void lk__contender_on_heartbeat(lk_contender *ct);
/** HELD or UNSURE: a check of the own node by a heartbeat completed with
    `err`. */
void lk__contender_take_heartbeat_check(lk_contender *ct, int err);
/** Whether the contender waits for the deletion of one node only, which may
    grant its lock. */
bool lk__contender_is_next(const lk_contender *ct);
/** Whether the contender waits for a grant, but no reply and no event can come
    that would continue it. This is a bug, for which debug builds look. */
bool lk__contender_is_stuck(const lk_contender *ct);

/* The steps of a contender from one state to the next. All steps are taken by
   one function, lk__contender_step(). Stopping and failing are steps that any
   state may take. */

/** The state that follows `state` after `ev`; LK_CONTENDER_NO_STEP: `ev` must
    not occur in `state`. */
lk_contender_state lk__contender_next_state(const lk_contender_machine *m,
                                            lk_contender_state state,
                                            lk_contender_event ev);

/** Take the step that the rules have for `ev`, and begin the new state. An
    event without a step is a bug: a debug build aborts, other builds log it and
    call lk__contender_restart(). `enter` of the new state may take further
    steps. `ct` may be freed. */
void lk__contender_step(lk_contender *ct, lk_contender_event ev);

/** After an event without a step: ask the server again. A waiter lists the
    queue, a holder verifies its node, and a cleanup sends its next request.
    `ct` may be freed. */
void lk__contender_restart(lk_contender *ct);

/** Cancel or release. No callback is invoked any more, except `gone` with
    LK_GONE_REPORT. `ct` may be freed. */
void lk__contender_stop(lk_contender *ct, lk_gone_report report);
/** Report the error to the owner, and clean up. `ct` may be freed. */
void lk__contender_fail(lk_contender *ct, int err);

/** The type of lk_session_lease.observer, for tests. `on_step` is called when
    `ct->state` is the new state and its `enter` has not been called yet. */
typedef struct lk_contender_observer {
  void (*on_step)(void *arg, const lk_contender *ct, lk_contender_event ev,
                  lk_contender_state from);
  void *arg;
} lk_contender_observer;

/* The table of all states of a contender in a queue, which is ordered by
   sequence numbers, or of a permit. Contenders for single-node locks have a
   table of their own (single_node.c). */

extern const lk_contender_machine lk__queue_machine;

#endif
