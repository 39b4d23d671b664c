/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LEADER_H
#define LK_LEADER_H

/**
 * @file
 * Leader election: several candidates take part, and at most one leads. It
 * rests on the locks of <latchkey/lock.h>. The leader is the candidate that
 * holds the lock, and its fencing token is the term: it grows with each leader.
 *
 * A candidate acquires its lock, reports that it leads, and acquires the lock
 * again after each loss, until it resigns:
 *
 *   WAITING --elected--> LEADING --unsure--> UNSURE --renewed--> LEADING
 *   LEADING or UNSURE --deposed--> WAITING, after a pause, at the end of the
 *                                  queue, with a new term
 *
 * A program with such an object needs no state machine of its own. The object
 * works with a lock of any kind: lk_election_new() makes it for an election
 * with the nodes of Curator or kazoo, lk_candidate_new() for any lk_lock. So a
 * program that wants a lock for as long as it runs uses it, too.
 *
 * At most one candidate leads at any time before its lease deadline, under the
 * assumptions of <latchkey/lease.h>. A leader that cannot reach a quorum gets
 * UNSURE shortly before the deadline, and another candidate may be elected
 * after it. So a leader does three things. It calls lk_candidate_ok() before
 * each step of its work: after a pause of the process, a timer of the program
 * may fire before UNSURE is reported. It stops its work at UNSURE, at the
 * latest by the deadline. And it passes the term to each resource that can
 * compare terms. After ELECTED, reads of this client show all writes that
 * earlier leaders have made with lk_lock_guarded_multi(): these were executed
 * before the node of their leader was deleted.
 *
 * Cost: as that of the lock. If there is no leader, a candidate is elected in
 * one round trip and one write; if the leader resigns, its direct successor
 * after one event. A candidate waits with one watch, and no resignation wakes
 * all candidates.
 *
 * Threads and callbacks: as for the client. Every callback may free the
 * candidate.
 */

#include <latchkey/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_candidate lk_candidate;

/** A program treats a value that it does not know as LK_CANDIDATE_UNSURE. */
typedef enum lk_candidate_state {
  /** Does not take part: not started, resigned, ended. */
  LK_CANDIDATE_STOPPED = 0,
  LK_CANDIDATE_WAITING = 1, /**< queues, or pauses before it queues again */
  LK_CANDIDATE_LEADING = 2, /**< holds the lock */
  LK_CANDIDATE_UNSURE = 3 /**< perhaps no longer leading: see LK_LOCK_UNSURE */
} lk_candidate_state;

/** "stopped", "waiting", …: for logs. */
LK_API const char *lk_candidate_state_text(lk_candidate_state state);

/** The events for on_event. ELECTED and DEPOSED alternate, and so do UNSURE and
    RENEWED between them: DEPOSED may follow UNSURE. A program ignores an event
    of a type that it does not know. */
typedef enum lk_candidate_event_type {
  /** The candidate leads. `term`; `deadline_ms`. */
  LK_CANDIDATE_EVENT_ELECTED = 0,
  /** The lease ends soon or has ended (LK_LOCK_EVENT_UNSURE). Stop the work of
      the leader before `deadline_ms`. */
  LK_CANDIDATE_EVENT_UNSURE = 1,
  /** After UNSURE: the candidate still leads, in the same term. `term`;
      `deadline_ms`. */
  LK_CANDIDATE_EVENT_RENEWED = 2,
  /** The candidate does not lead any more. `term`: the term that has ended.
      `err`: 0 after lk_candidate_resign(); else the reason, as that of
      LK_LOCK_EVENT_LOST. After a loss the candidate takes part again in
      `retry_ms`. */
  LK_CANDIDATE_EVENT_DEPOSED = 3,
  /** The candidate cannot take part at present: its acquire failed with `err`,
      which lk_lock_acquire() describes. It tries again in `retry_ms`. */
  LK_CANDIDATE_EVENT_RETRYING = 4,
  /** The client has ended with `err`: LK_ERR_CLOSED, LK_ERR_AUTH_FAILED, or
      LK_ERR_SESSION_EXPIRED (with lk_client_config.one_session). The candidate
      is stopped, and cannot start again. This is its last event. A candidate
      that was stopped before does not get it. */
  LK_CANDIDATE_EVENT_ENDED = 5
} lk_candidate_event_type;

/** "elected", "unsure", …: for logs. */
LK_API const char *lk_candidate_event_text(lk_candidate_event_type type);

/** An event. Members that its type does not name are 0. */
typedef struct lk_candidate_event {
  lk_candidate_event_type type;
  int err;             /**< DEPOSED, RETRYING, ENDED */
  uint64_t term;       /**< ELECTED, UNSURE, RENEWED, DEPOSED: the fencing token
                            of the lock, see lk_lock_token() */
  int64_t deadline_ms; /**< ELECTED, UNSURE, RENEWED: lease deadline on
                            lk_client_clock() */
  int64_t retry_ms;    /**< RETRYING, DEPOSED: the length of the pause */
} lk_candidate_event;

/** Options of a candidate. Set `size`; 0 selects the default of every other
    option. All is copied. */
typedef struct lk_candidate_config {
  size_t size; /**< sizeof(lk_candidate_config) */
  /** The pause after a loss or a failed acquire, in ms. 0: 100. Each further
      pause is twice as long, up to `max_pause_ms`; a term that has lasted that
      long ends the doubling. Each pause is lengthened at random by up to half.
      At most 3,600,000. */
  int32_t pause_ms;
  int32_t max_pause_ms; /**< 0: 10,000, or `pause_ms` if that is larger. At most
                             3,600,000, and not less than `pause_ms` */
  void (*on_event)(lk_candidate *c, const lk_candidate_event *event, void *arg);
  void *arg;
} lk_candidate_config;

/**
 * Make a candidate for `lock`, which must be idle; of a read-write lock, either
 * side. No request is sent. The candidate uses the lock until it is freed: do
 * not acquire, release or reset the lock, nor free it before the candidate.
 * The lock's own on_event still gets the events that lk_candidate_event_type
 * does not have: WAITING with the position in the queue, PLACE_LOST, SUSPENDED,
 * MIXED_QUEUE, UNWATCHED and REVOKED. `config` NULL selects the defaults.
 *
 * @return 0; LK_ERR_STATE: the lock is not idle, or has a candidate already;
 *         LK_ERR_BAD_ARGUMENT, LK_ERR_NO_MEMORY. After an error `*out` is
 *         NULL.
 */
LK_API int lk_candidate_new(lk_candidate **out, lk_lock *lock,
                            const lk_candidate_config *config);

/**
 * Make a candidate for the election at `path`, with a mutex of its own. All
 * programs that take part in one election use the same `layout`:
 *   LK_LAYOUT_LATCH    Curator's LeaderLatch;
 *   LK_LAYOUT_CURATOR  Curator's LeaderSelector, whose nodes are those of a
 *                      mutex;
 *   LK_LAYOUT_KAZOO    kazoo's Election;
 *   LK_LAYOUT_NATIVE   hand-written programs: `prefix` of `lock`, and a number;
 *   another one        programs of this library.
 * If no other library takes part, use LK_LAYOUT_LATCH, which is also the
 * default of `latchkey elect`.
 *
 * `lock`: NULL, or the options of the mutex. Its `data` are the identity that
 * other candidates read, text in UTF-8 in Curator and kazoo. Its `layout` is
 * not used. The candidate may be freed before `client` or after it.
 *
 * @return as lk_lock_new() and lk_candidate_new().
 */
LK_API int lk_election_new(lk_candidate **out, lk_client *client,
                           const char *path, lk_layout layout,
                           const lk_lock_config *lock,
                           const lk_candidate_config *config);

/** Free the candidate, which resigns first, and its lock if lk_election_new()
    has made it. No event is reported. NULL is allowed. */
LK_API void lk_candidate_free(lk_candidate *c);

/**
 * Take part, from the end of the queue. A candidate that takes part already
 * stays as it is.
 *
 * @return 0, or what lk_lock_acquire() returns; then the candidate is stopped.
 */
LK_API int lk_candidate_start(lk_candidate *c);

/** Take part no more. A leader gets DEPOSED with `err` 0 before this returns,
    and its node is deleted without waiting for the reply: finish the work of
    the leader before this call. A candidate that waits leaves the queue without
    an event; one that is stopped stays so. lk_candidate_start() may follow at
    once. */
LK_API void lk_candidate_resign(lk_candidate *c);

LK_API lk_candidate_state lk_candidate_get_state(const lk_candidate *c);

/** Whether the candidate leads for certain, by the clock read now:
 * lk_lock_ok().
 */
LK_API bool lk_candidate_ok(const lk_candidate *c);

/** The lock of the candidate: for its term (lk_lock_token()), deadline, node
    and path, and for lk_lock_verify() and lk_lock_guarded_multi(). */
LK_API lk_lock *lk_candidate_lock(const lk_candidate *c);

#ifdef __cplusplus
}
#endif
#endif
