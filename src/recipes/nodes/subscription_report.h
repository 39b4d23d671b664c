/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_SUBSCRIPTION_REPORT_H
#define LK_RECIPES_NODES_SUBSCRIPTION_REPORT_H

#include <latchkey/subscribe.h>

/**
 * @file
 * A subscription, and what its caller knows.
 */

/** Two states of the node are equal if all members are. */
typedef struct lk_node_state {
  int err;
  int64_t czxid;   /**< differs for a node that was deleted and created again */
  int64_t zxid;    /**< of the last change */
  int32_t version; /**< several changes can have one zxid */
} lk_node_state;

struct lk_subscription {
  lk_mem mem;
  lk_client *client; /* NULL: the subscription has ended */
  lk_subscribe_children_cb children;
  lk_subscribe_data_cb data; /* NULL if `children` is set */
  void *arg;
  size_t refs;          /* the user's, the request's, those of active calls */
  bool request_sent;    /* a request is under way */
  bool fired_meanwhile; /* the watch fired during that request */
  bool reported;
  lk_node_state last_reported; /* valid if `reported` */
  lk_watch *watch;             /* NULL: none */
  lk_listener listener;
  lk_timer timer; /* ends a pause; starts a check; after an expiry, looks
                     whether a new session follows */
  bool pausing;   /* no request before `timer` fires, even after a reconnect */
  int32_t check_ms;
  unsigned pauses; /* in a row */
  char path[];
};

void lk__subscription_ref(lk_subscription *s);
/** Free it with the last reference. */
void lk__subscription_unref(lk_subscription *s);
/** The state that a reply with `err` and `stat` shows. */
lk_node_state lk__subscription_state_of_reply(const lk_subscription *s, int err,
                                              const lk_stat *stat);
bool lk__subscription_was_reported(const lk_subscription *s,
                                   const lk_node_state *id);
/** The caller will be notified of this state. false: it knows it already. */
bool lk__subscription_record_state(lk_subscription *s, int err,
                                   const lk_stat *stat);
/** Invoke the callback with `err`, unless the caller knows it already. */
void lk__subscription_report_error(lk_subscription *s, int err);

#endif
