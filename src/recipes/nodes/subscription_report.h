/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_SUBSCRIPTION_REPORT_H
#define LK_RECIPES_NODES_SUBSCRIPTION_REPORT_H

#include <latchkey/subscribe.h>

/**
 * @file
 * A subscription, and the state that was last reported to its caller.
 */

/** Identifies a state of the node. Two states are equal if all members are. */
typedef struct lk_node_state {
  int err;         /**< LK_ERR_NO_NODE or another error; 0: the node exists */
  int64_t czxid;   /**< differs for a node that was deleted and created again */
  int64_t zxid;    /**< of the last change of the children or data */
  int32_t version; /**< several changes can have one zxid */
} lk_node_state;

struct lk_subscription {
  lk_mem mem;
  lk_client *client;                    /* NULL: the subscription has ended */
  lk_subscribe_children_cb on_children; /* NULL: a subscription to the data */
  lk_subscribe_data_cb on_data;         /* NULL: one to the children */
  void *arg;
  size_t refs;          /* of the caller, the request and running callbacks */
  bool request_sent;    /* a request is under way */
  bool fired_meanwhile; /* the watch fired during that request */
  bool reported;        /* a state was reported */
  lk_node_state last_reported; /* valid if `reported` */
  lk_watch *watch;             /* NULL: no watch is set or requested */
  lk_listener listener;
  lk_timer timer; /* ends a pause; or starts a check; or, one turn after an
                     expiry, looks whether a new session has started */
  bool pausing;   /* no request before `timer` fires, even after a reconnect */
  int64_t check_ms;         /* time between checks; -1: no checks */
  unsigned pause_doublings; /* how many times the next pause is doubled */
  char path[];
};

void lk__subscription_ref(lk_subscription *s);
/** Give back a reference. The last one frees the subscription. */
void lk__subscription_unref(lk_subscription *s);
/** The state that a reply with `err` and `stat` shows. */
lk_node_state lk__subscription_state_of_reply(const lk_subscription *s, int err,
                                              const lk_stat *stat);
/** Whether `state` is the state that was last reported. */
bool lk__subscription_was_reported(const lk_subscription *s,
                                   const lk_node_state *state);
/** Keep the state of a reply as the last reported one; the function that calls
    this then reports it. false: the same state was reported before. */
bool lk__subscription_record_state(lk_subscription *s, int err,
                                   const lk_stat *stat);
/** Invoke the callback with `err`, unless `err` was the last report. */
void lk__subscription_report_error(lk_subscription *s, int err);

#endif
