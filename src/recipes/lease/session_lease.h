/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_SESSION_LEASE_H
#define LK_RECIPES_LEASE_SESSION_LEASE_H

/**
 * @file
 * The session lease of a client: its users, its evidence and its deadline.
 */

#include "recipes/lease/lease_deadline.h"
#include "recipes/lease/lease_user.h"

/** The heartbeat: a request that proves that the session lives. */
typedef struct lk_heartbeat {
  lk_timer timer;
  bool planned;    /**< `timer` runs */
  uint64_t number; /**< of the newest one */
  size_t requests; /**< of it, under way */
  size_t replied;  /**< of its multis, those that completed */
  bool incomplete; /**< not all nodes could be checked: send another one */
  bool throttled;  /**< the server is overloaded: pause first */
} lk_heartbeat;

/** State that all queues of one client share. */
typedef struct lk_shared_queues {
  bool no_containers;   /**< a server does not support container nodes */
  bool warned_length;   /**< a long queue was logged */
  int64_t *scratch;     /**< see lk__lease_scratch() */
  size_t scratch_count; /**< numbers that fit in it */
  lk_link local;        /**< lk_local_queue: queues in this process */
} lk_shared_queues;

/** An object with a timer that stops it when the client is closed. `closed`
   must not add or remove hooks. */
typedef struct lk_close_hook {
  lk_link link; /**< in `life.close_hooks` */
  void (*closed)(struct lk_close_hook *h);
} lk_close_hook;

/** The end of the session and of the client. */
typedef struct lk_client_life {
  lk_listener listener;
  lk_timer after_expiry; /**< whether a new session follows an expiry */
  size_t listening;      /**< acquisitions that have a listener of their own */
  lk_link close_hooks;   /**< of lk_close_hook */
  bool closed;           /**< CLOSED was reported */
  bool detached; /**< CLOSED was reported to all listeners: the client must not
                    be used any more */
} lk_client_life;

struct lk_contender_observer;

struct lk_session_lease {
  lk_mem mem;
  lk_client *client;                  /* not to be used once `life.detached` */
  const lk_evidence_record *evidence; /* the client's */
  lk_lease_config config;             /* as configured */
  int32_t margin_ms; /* config.margin_ms, or as changed since */
  size_t refs;       /* the client's, users, requests, callers */
  int end_err;       /* the error that ended all requests for good, or 0 */
  lk_client_life life;

  lk_safe_list users;
  size_t count[LK_LEASE_NEEDS]; /* of users, by their need */
  bool grant_awaited;           /* see lk__lease_await() */

  lk_timer watchdog;   /* the lease deadline, less the margin */
  int64_t watch_at_ms; /* when `watchdog` fires; INT64_MAX: it does not run */
  int64_t known_deadline_ms; /* at the last reply */
  int32_t known_timeout_ms;

  lk_heartbeat heartbeat;
  lk_shared_queues queues;

  /** For tests: is notified of each step of a contender. NULL: none. */
  const struct lk_contender_observer *observer;
};

void lk__lease_ref(lk_session_lease *lease);
void lk__lease_unref(lk_session_lease *lease);
/** Start and stop timers of all objects that use the session lease. Once the
    client is closed no timer is started. Once the session lease is detached the
    client is not used. */
void lk__lease_start_timer(lk_session_lease *lease, lk_timer *t, int64_t at_ms);
void lk__lease_stop_timer(lk_session_lease *lease, lk_timer *t);
/** Requests are sent at once, to a server with a quorum. */
bool lk__lease_is_online(const lk_session_lease *lease);
/** Memory for `count` numbers until the next call, or NULL. */
int64_t *lk__lease_scratch(lk_session_lease *lease, size_t count);
/** When a lock with a lease until `deadline_ms` becomes unsure. */
int64_t lk__lease_unsure_ms(const lk_session_lease *lease, int64_t deadline_ms);
/** The session timeout that determines the lease: the smallest that was
    negotiated in this session. */
int32_t lk__lease_timeout_ms(const lk_session_lease *lease);
/** The smallest time between a request and the later one that proves it. */
int64_t lk__lease_gap_ms(const lk_session_lease *lease);
/** The lease deadline by the assurance asked for, or LK_NO_LEASE. */
int64_t lk__lease_deadline(const lk_session_lease *lease);
/** Whether a grant at `now_ms` leaves its holder enough of the lease: a quarter
    of the session timeout. Otherwise a check of the own node comes first; see
    "The lease" in doc/architecture.md. */
bool lk__lease_may_grant(const lk_session_lease *lease, int64_t now_ms);

/** Add a user, which needs nothing yet; `u->kind` is set. Adds a reference to
    the session lease, which the user gives back at its end. */
void lk__lease_add_user(lk_session_lease *lease, lk_lease_user *u);
void lk__lease_remove_user(lk_session_lease *lease, lk_lease_user *u);
/** Invoke `what` for each user; it may add and remove users. */
void lk__lease_for_each_user(lk_session_lease *lease,
                             void (*what)(lk_session_lease *lease,
                                          lk_lease_user *u));

/** The user behind `u`, or for NULL the first; NULL: there is none. For loops
    that invoke no callback; others need an lk_safe_iterator. */
static inline lk_lease_user *lk__lease_next_user(const lk_session_lease *lease,
                                                 const lk_lease_user *u)
{
  const lk_link *all = &lease->users.members;
  lk_link *l = u == NULL ? all->next : u->link.next;

  return l == all ? NULL : LK_OWNER(l, lk_lease_user, link);
}

/** The number of users that are HELD or UNSURE. */
static inline size_t lk__lease_count_held(const lk_session_lease *lease)
{
  return lease->count[LK_LEASE_HELD] + lease->count[LK_LEASE_UNSURE];
}

#endif
