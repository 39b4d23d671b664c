/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_SESSION_LEASE_H
#define LK_RECIPES_LEASE_SESSION_LEASE_H

#include "base/walk.h"
#include "recipes/lease/evidence.h"
#include "recipes/queue/contender.h"

#include <latchkey/keeper.h>

struct lk_keeper {
  lk_mem mem;
  lk_client *client; /* not to be touched once `detached` */
  lk_keeper_config config;
  size_t refs; /* the user's, attempts, requests, callers */
  bool freed;
  bool closed;        /* the client has told its end */
  bool detached;      /* … to all who listen */
  size_t listening;   /* attempts that hear of the client themselves */
  int over;           /* why there will be no requests any more, or 0 */
  bool no_containers; /* a server said it cannot make them */
  lk_listener listener;
  lk_listener presence; /* by it the keepers of a client find each other, until
                           the last attempt of this one is over */
  bool present;         /* it is attached */
  lk_evidence_record evidence;
  uint64_t seen_zxid; /* of any answer in this session, the largest */

  lk_link local_queues;  /* queues in this process: lk_local_queue */
  lk_safe_list contends; /* attempts that are not over */
  size_t held;           /* HELD, UNSURE */
  size_t unsure;         /* of these */
  size_t parked;         /* our node is made and not granted */
  size_t leaving;        /* LEAVING */
  bool awaited;          /* some that are HELD await a lease long enough */

  lk_timer watchdog; /* the first lease to run out, less the margin */
  int64_t watch_at_ms;
  lk_timer final; /* whether an expiry was final */

  lk_timer beat;
  bool beat_set;     /* the timer runs */
  uint64_t beat_no;  /* the newest beat */
  size_t beat_out;   /* its requests under way */
  size_t beat_chunk; /* its multis that were answered */
  bool beat_again;   /* not all nodes could be checked */
  bool beat_rest;    /* the server is overloaded */

  bool warned_length; /* of a queue */
  int64_t *scratch;
  size_t scratch_count;

  /** For tests: told of each step, when `ct` has its new state and has not
      begun it yet. NULL: nobody. */
  void (*on_step)(void *arg, const lk_contender *ct, lk_contender_event ev,
                  lk_contender_state from);
  void *on_step_arg;
};

void lk__lease_ref(lk_keeper *k);
/** An attempt hears of the client itself, behind the keeper; and no more. */
void lk__lease_attach_listener(lk_keeper *k, lk_listener *l);
void lk__lease_detach_listener(lk_keeper *k, lk_listener *l);
/** Whoever has listened less has no timer left, nor has its owner. */
void lk__lease_listener_done(lk_keeper *k);
void lk__lease_unref(lk_keeper *k);
/** All timers of what hangs on a keeper: none is started once the client is
    closed, when their owners have been told to stop them, nor is the client
    touched once the keeper is detached from it. */
void lk__lease_start_timer(lk_keeper *k, lk_timer *t, int64_t at_ms);
void lk__lease_stop_timer(lk_keeper *k, lk_timer *t);
/** Requests can be made, leave at once, and meet a quorum. */
bool lk__lease_is_online(const lk_keeper *k);
/** Memory for `count` numbers until the next call, or NULL. */
int64_t *lk__lease_scratch(lk_keeper *k, size_t count);
/** When a lock with a lease until `deadline_ms` becomes unsure. */
int64_t lk__lease_unsure_ms(const lk_keeper *k, int64_t deadline_ms);
/** The session timeout by which leases are counted: the smallest that was
    negotiated in this session. */
int32_t lk__lease_timeout_ms(const lk_keeper *k);
/** What lies between a request and the one that proves it. */
int64_t lk__lease_gap_ms(const lk_keeper *k);
/** The lease deadline by the assurance asked for, or LK_NO_LEASE. */
int64_t lk__lease_deadline(const lk_keeper *k);
/** Whether a grant at `now_ms` leaves its holder enough of the lease: a quarter
    of the session timeout. Otherwise a check of the own node comes first; see
    "The lease" in doc/architecture.md. */
bool lk__lease_may_grant(const lk_keeper *k, int64_t now_ms);

void lk__lease_add_contender(lk_keeper *k, lk_contender *ct);
void lk__lease_remove_contender(lk_keeper *k, lk_contender *ct);
/** An attempt changed its state. */
void lk__lease_count_contender(const lk_contender *ct, lk_contender_state from,
                               lk_contender_state to);
/** Something is held that may run out: see that the watchdog knows. */
void lk__lease_watch_deadline(lk_keeper *k, const lk_contender *ct);

/** The one behind `ct`, or for NULL the first; NULL: there is none. For loops
    that call nobody; others need an lk_walk. */
static inline lk_contender *lk__lease_next_contender(const lk_keeper *k,
                                                     const lk_contender *ct)
{
  const lk_link *all = &k->contends.members;
  lk_link *l = ct == NULL ? all->next : ct->link.next;

  return l == all ? NULL : LK_OWNER(l, lk_contender, link);
}

/** The same for the attempts of all keepers of the client, beginning with those
    of `k`, which may be freed already. */
lk_contender *lk__lease_next_of_all(const lk_keeper *k, const lk_contender *ct);

#ifdef LK_DEBUG
/** No contender waits for nothing; otherwise end the process. */
void lk__lease_check(const lk_keeper *k);
#else
static inline void lk__lease_check(const lk_keeper *k)
{
  (void)k;
}
#endif

/* ---- beat.c ------------------------------------------------------------ */

/** Start or stop the beat by what there is to prove. */
void lk__heartbeat_plan(lk_keeper *k);
/** It is held, with a lease that may be short. */
void lk__heartbeat_granted(lk_contender *ct);
/** Something else proved the lease just now: the next beat a quarter of the
    session timeout from here. */
void lk__heartbeat_put_off(lk_keeper *k);
/** Beat at once. false: one is under way already, or there is no need. */
bool lk__heartbeat_now(lk_keeper *k);
void lk__heartbeat_fire(lk_client *c, void *arg);

#endif
