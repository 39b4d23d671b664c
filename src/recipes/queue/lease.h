/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_LEASE_H
#define LK_RECIPES_QUEUE_LEASE_H

/**
 * @file
 * The session lease of a client: the users of the lease, the evidence that the
 * session lives, the lease deadline and its watchdog, and the listener by which
 * the users learn of the connection, the session and the close.
 */

#include <stddef.h>
#include <stdint.h>

#include <latchkey/lease.h>

#include "base/safe_list.h"
#include "proto/engine/lease_slot.h"

typedef struct lk_contender lk_contender;

/* The users of the session lease are the contenders of the client. Each of them
   has one node and states its need for the lease. */

/** The need of a user for the session lease. */
typedef enum lk_lease_need {
  LK_LEASE_NOT_NEEDED,
  LK_LEASE_WAITING, /**< its node is in a queue: a grant needs new evidence */
  LK_LEASE_HELD,    /**< its node holds a lock */
  LK_LEASE_UNSURE,  /**< as HELD, and the deadline is near or has passed */
  LK_LEASE_CLEANUP, /**< its node is to be deleted */
  LK_LEASE_NEEDS    /**< the number of values above */
} lk_lease_need;

/** The part of a contender that the session lease and its heartbeat change. */
typedef struct lk_lease_user {
  lk_link link; /**< in `users` of the session lease, until FINISHED */
  lk_lease_need need;
  /* Which operation of the newest heartbeat checks the node. */
  uint64_t heartbeat; /**< number of the heartbeat; if that is not the newest
                           one, the newest does not check this node */
  size_t multi;       /**< index of the multi in the heartbeat */
  size_t operation;   /**< index of the operation in the multi */
} lk_lease_user;

/** The options of a request without deadline, repeat or watch. */
#define LK_NO_OPTIONS ((const lk_call *)NULL)

/** The heartbeat: the requests whose replies prove that the session lives. */
typedef struct lk_heartbeat {
  lk_timer timer;
  bool timer_runs;
  bool has_waited; /**< the timer runs for a heartbeat that was due earlier, and
                        waits for evidence */
  uint64_t number; /**< number of the newest heartbeat */
  size_t outstanding; /**< requests of the newest heartbeat without a reply */
  size_t multis_completed; /**< of the newest heartbeat */
  bool incomplete; /**< a node could not be checked: send another heartbeat */
  bool throttled;  /**< the server is overloaded: pause before the next one */
} lk_heartbeat;

/** State that all queues of one client share. */
typedef struct lk_shared_queues {
  bool no_containers;   /**< a server does not support container nodes */
  bool warned_length;   /**< the warning of a long queue was logged */
  int64_t *scratch;     /**< see lk__lease_scratch() */
  size_t scratch_count; /**< how many numbers fit in `scratch` */
} lk_shared_queues;

struct lk_contender_observer;

struct lk_session_lease {
  lk_mem mem;
  lk_client *client;                  /* the session lease is part of it */
  const lk_evidence_record *evidence; /* owned by the client */
  lk_lease_config config;             /* the options at the creation */
  int32_t margin_ms; /* before the deadline a lock is unsure; 0: an eighth of
                        the session timeout */
  lk_listener listener;

  lk_safe_list users;
  size_t count[LK_LEASE_NEEDS]; /* number of users with each need */
  bool grant_awaited;           /* by a user, see lk__lease_await() */

  lk_timer watchdog; /* fires when a lock is unsure, and when a holder needs a
                        reply to prevent that */
  int64_t watchdog_due_ms;   /* INT64_MAX: `watchdog` does not run */
  int64_t known_deadline_ms; /* lk__lease_deadline() after the last reply */
  int32_t known_timeout_ms;  /* the session timeout after the last reply */

  lk_heartbeat heartbeat;
  lk_shared_queues queues;

  /** For tests: notified of each step of a contender. NULL: no observer. */
  const struct lk_contender_observer *observer;
};

/** Whether requests are sent at once, to a server with a quorum. */
bool lk__lease_is_online(const lk_session_lease *lease);
/** Memory for `count` numbers, valid until the next call. NULL: no memory. */
int64_t *lk__lease_scratch(lk_session_lease *lease, size_t count);
/** When a lock with a lease until `deadline_ms` becomes unsure. */
int64_t lk__lease_unsure_ms(const lk_session_lease *lease, int64_t deadline_ms);
/** The session timeout that determines the lease: the smallest that was
    negotiated in this session. */
int32_t lk__lease_timeout_ms(const lk_session_lease *lease);
/** lk_lease_config.gap_ms, or its default. It is the shortest time from the
    reply that is evidence to the later request that confirms it. */
int64_t lk__lease_gap_ms(const lk_session_lease *lease);
/** The lease deadline by the assurance asked for, or LK_NO_LEASE. */
int64_t lk__lease_deadline(const lk_session_lease *lease);
/** Whether a grant at `now_ms` leaves its holder enough of the lease: a quarter
    of the session timeout. Otherwise a check of the own node comes first; see
    "The lease" in doc/architecture.md. */
bool lk__lease_may_grant(const lk_session_lease *lease, int64_t now_ms);
/** When to send a heartbeat of a holder that is due at `due_ms`: then, or a
    little later if it confirms a newer reply then. */
int64_t lk__lease_renewal_ms(const lk_session_lease *lease, int64_t due_ms);

/** Add a user, whose need is LK_LEASE_NOT_NEEDED at first. */
void lk__lease_add_user(lk_session_lease *lease, lk_contender *ct);
void lk__lease_remove_user(lk_session_lease *lease, lk_contender *ct);
/** The needs of the users have changed: tell the engine whether one holds. */
void lk__lease_note_holder(const lk_session_lease *lease);

/** Return the user behind `after`, or the first user if `after` is NULL. NULL:
    there is no further user. For loops that invoke no callback; other loops
    call lease_for_each_user(). */
lk_contender *lk__lease_next_user(const lk_session_lease *lease,
                                  const lk_contender *after);

/** The number of users that are HELD or UNSURE. */
static inline size_t lk__lease_count_held(const lk_session_lease *lease)
{
  return lease->count[LK_LEASE_HELD] + lease->count[LK_LEASE_UNSURE];
}

/* The creation of the session lease of a client, and its options. */

/** Return the session lease of a client. If the client has none yet, one is
    made with the default options. NULL: no memory. */
lk_session_lease *lk__lease_get_or_new(lk_client *c);

/* The watchdog: a timer that fires when the lease deadline is near. Then the
   users of the session lease compare the deadline with the time. */

/** A user has begun to hold: start the watchdog so that
    lk__contender_review_lease() is called when the deadline is near. */
void lk__lease_watch_deadline(lk_session_lease *lease);
/** A user needs a lease that is long enough for a grant: send a heartbeat now.
    When the lease is long enough, lk__contender_lease_renewed() is called for
    all users. */
void lk__lease_await(lk_session_lease *lease);

/* The session lease as a listener of the client: it handles replies, new and
   lost connections, the expiry of the session, and the close. */

#endif
