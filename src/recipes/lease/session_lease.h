/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEASE_SESSION_LEASE_H
#define LK_RECIPES_LEASE_SESSION_LEASE_H

#include "base/walk.h"
#include "recipes/lease/lease_deadline.h"
#include "recipes/queue/contender.h"

struct lk_session_lease {
  lk_mem mem;
  lk_client *client; /* not to be touched once `detached` */
  const lk_evidence_record *evidence; /* the client's */
  lk_lease_config config;             /* as it was chosen */
  int32_t margin_ms;                  /* as it is now */
  size_t refs;        /* the client's, contenders, requests, callers */
  bool closed;        /* the client has told its end */
  bool detached;      /* … to all who listen */
  size_t listening;   /* attempts that hear of the client themselves */
  int over;           /* why there will be no requests any more, or 0 */
  bool no_containers; /* a server said it cannot make them */
  lk_listener listener;
  int64_t known_deadline_ms; /* at the last reply */
  int32_t known_timeout_ms;

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

/** The session lease of a client, made with the default options if there is
    none. NULL: no memory. */
lk_session_lease *lk__lease_of(lk_client *c);

void lk__lease_ref(lk_session_lease *k);
/** An acquisition is notified by the client itself, behind the session lease;
    and no more. */
void lk__lease_attach_listener(lk_session_lease *k, lk_listener *l);
void lk__lease_detach_listener(lk_session_lease *k, lk_listener *l);
/** Whoever has listened less has no timer left, nor has its owner. */
void lk__lease_listener_done(lk_session_lease *k);
void lk__lease_unref(lk_session_lease *k);
/** All timers of what hangs on a session lease: none is started once the client
    is closed, when their owners have been told to stop them, nor is the client
    touched once the session lease is detached from it. */
void lk__lease_start_timer(lk_session_lease *k, lk_timer *t, int64_t at_ms);
void lk__lease_stop_timer(lk_session_lease *k, lk_timer *t);
/** Requests can be made, leave at once, and meet a quorum. */
bool lk__lease_is_online(const lk_session_lease *k);
/** Memory for `count` numbers until the next call, or NULL. */
int64_t *lk__lease_scratch(lk_session_lease *k, size_t count);
/** When a lock with a lease until `deadline_ms` becomes unsure. */
int64_t lk__lease_unsure_ms(const lk_session_lease *k, int64_t deadline_ms);
/** The session timeout by which leases are counted: the smallest that was
    negotiated in this session. */
int32_t lk__lease_timeout_ms(const lk_session_lease *k);
/** What lies between a request and the one that proves it. */
int64_t lk__lease_gap_ms(const lk_session_lease *k);
/** The lease deadline by the assurance asked for, or LK_NO_LEASE. */
int64_t lk__lease_deadline(const lk_session_lease *k);
/** Whether a grant at `now_ms` leaves its holder enough of the lease: a quarter
    of the session timeout. Otherwise a check of the own node comes first; see
    "The lease" in doc/architecture.md. */
bool lk__lease_may_grant(const lk_session_lease *k, int64_t now_ms);

void lk__lease_add_contender(lk_session_lease *k, lk_contender *ct);
void lk__lease_remove_contender(lk_session_lease *k, lk_contender *ct);
/** An attempt changed its state. */
void lk__lease_count_contender(const lk_contender *ct, lk_contender_state from,
                               lk_contender_state to);
/** Something is held that may run out: see that the watchdog knows. */
void lk__lease_watch_deadline(lk_session_lease *k, const lk_contender *ct);

/** The one behind `ct`, or for NULL the first; NULL: there is none. For loops
    that call nobody; others need an lk_walk. */
static inline lk_contender *lk__lease_next_contender(const lk_session_lease *k,
                                                     const lk_contender *ct)
{
  const lk_link *all = &k->contends.members;
  lk_link *l = ct == NULL ? all->next : ct->link.next;

  return l == all ? NULL : LK_OWNER(l, lk_contender, link);
}

#ifdef LK_DEBUG
/** No contender waits for nothing; otherwise end the process. */
void lk__lease_check(const lk_session_lease *k);
#else
static inline void lk__lease_check(const lk_session_lease *k)
{
  (void)k;
}
#endif

/* ---- beat.c ------------------------------------------------------------ */

/** Start or stop the beat by what there is to prove. */
void lk__heartbeat_plan(lk_session_lease *k);
/** It is held, with a lease that may be short. */
void lk__heartbeat_granted(lk_contender *ct);
/** Something else proved the lease just now: the next beat a quarter of the
    session timeout from here. */
void lk__heartbeat_put_off(lk_session_lease *k);
/** Beat at once. false: one is under way already, or there is no need. */
bool lk__heartbeat_now(lk_session_lease *k);
void lk__heartbeat_fire(lk_client *c, void *arg);

#endif
