/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_INVARIANTS_H
#define LK_SIM_WORLD_INVARIANTS_H

#include "sim/world/facts.h"
#include "sim/world/scenario.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_step.h"

#include <inttypes.h>

/**
 * @file
 * The invariants, and what they may ask. To add one: a line in the list, a
 * function of its name that gets the facts listed, and a mutant that only it
 * finds.
 */

/* clang-format off */
#define ON(fact) SIM_FACT(SIM_##fact)
#define SIM_INVARIANTS(P) \
  /* invariants_queue.c */ \
  P(mutex_exclusion, "MUTEX-EXCLUSION", ON(LOOK) | ON(GOT), \
    "lk_lock_ok() is never true for two handles of one mutex") \
  P(mutex_fifo, "MUTEX-FIFO", ON(GOT), \
    "a contender that was in the queue before another asked is granted first") \
  P(no_barging, "NO-BARGING", ON(STEP), \
    "no contender is granted while a predecessor exists") \
  P(handoff_rule, "HANDOFF-RULE", ON(STEP), \
    "a deletion alone grants only where rule H proves the lock") \
  P(no_lost_wakeup, "NO-LOST-WAKEUP", ON(PATROL) | ON(CALM), \
    "the first contender is granted soon after it can know that it is first") \
  P(crash_everywhere, "CRASH-EVERYWHERE", ON(PATROL), \
    "nodes of a process that died are gone after T + 2 ticks") \
  P(token_monotone, "TOKEN-MONOTONE", ON(GOT), \
    "fencing tokens grow, and are the czxids of the own nodes") \
  P(seq_unsafe, "SEQ-UNSAFE", ON(GOT), \
    "sequence numbers that cannot be trusted grant nothing") \
  P(queue_full, "QUEUE-FULL", ON(GOT) | ON(STEP), \
    "a limit of predecessors is never exceeded, and nothing below it is refused") \
  /* invariants_local_queue.c */ \
  P(local_queue, "LOCAL-QUEUE", ON(GOT) | ON(PATROL), \
    "owners behind one node take turns, and release after sixteen handoffs") \
  /* invariants_rwlock.c */ \
  P(rw_matrix, "RW-MATRIX", ON(LOOK) | ON(STEP), \
    "a writer excludes all, readers share; each watches its direct predecessor") \
  P(rw_downgrade, "RW-DOWNGRADE", ON(MADE) | ON(GOT), \
    "a writer reads under its own number and keeps its token") \
  P(rw_upgrade, "RW-UPGRADE", ON(WANTED), \
    "a reader that wants to write is refused and leaves nothing") \
  /* invariants_semaphore.c */ \
  P(sem_limit, "SEM-LIMIT", ON(GOT), \
    "never more permits are held than there are") \
  P(sem_speculation, "SEM-SPECULATION", ON(GOT) | ON(PATROL) | ON(CALM), \
    "a contender that is not first keeps no permits and blocks nobody for ever") \
  /* invariants_multilock.c */ \
  P(all_or_nothing, "ALL-OR-NOTHING", ON(GOT) | ON(PATROL), \
    "a multi-lock holds all of its members or none") \
  P(multi_no_deadlock, "MULTI-NO-DEADLOCK", ON(PATROL), \
    "multi-locks never wait for each other in a circle") \
  /* invariants_single.c */ \
  P(single_node_no_steal, "SINGLE-NODE-NO-STEAL", ON(REMOVED) | ON(LOOK) | ON(CALM), \
    "no delete removes the next holder's node, and only one holds") \
  /* invariants_node.c */ \
  P(no_orphan, "NO-ORPHAN", ON(STEP) | ON(PATROL) | ON(CALM), \
    "each node of a living session has an owner") \
  P(create_ambiguity, "CREATE-AMBIGUITY", ON(MADE), \
    "one contender never has two nodes") \
  P(xid_continues, "XID-CONTINUES", ON(SENT) | ON(COMMITTED), \
    "no xid is used twice in a session") \
  P(own_deleted, "OWN-DELETED", ON(TOLD) | ON(ANSWER) | ON(PATROL), \
    "the deletion of an own node is reported once, to its owner alone") \
  P(expiry, "EXPIRY", ON(MADE) | ON(STATE) | ON(TOLD) | ON(LOOK) | ON(GOT), \
    "the end of a session is reported once, and its nodes have no names any more") \
  P(timeout_clean, "TIMEOUT-CLEAN", ON(GOT) | ON(PATROL), \
    "an acquire that timed out leaves nothing") \
  P(cancel_everywhere, "CANCEL-EVERYWHERE", ON(GOT) | ON(CANCELLED) | ON(PATROL), \
    "a cancelled acquire is never granted and leaves nothing") \
  P(release_async, "RELEASE-ASYNC", ON(STATE) | ON(SENT) | ON(STEP) | ON(RELEASED) | ON(PATROL) | ON(CALM), \
    "a release is never lost and precedes later requests") \
  P(container_reap, "CONTAINER-REAP", ON(GOT), \
    "no acquire fails because its directory was swept") \
  P(acl, "ACL", ON(GOT) | ON(RELEASED) | ON(TOLD), \
    "NO_AUTH is reported only of what is denied") \
  P(throttled, "THROTTLED", ON(GOT) | ON(RELEASED) | ON(VERIFIED), \
    "no transient error of a server or connection ends an acquire") \
  /* invariants_hold.c */ \
  P(lease_deadline, "LEASE-DEADLINE", ON(REMOVED), \
    "no session expires before the lease deadline of its locks") \
  P(lease_pause, "LEASE-PAUSE", ON(LOOK) | ON(GOT) | ON(TOLD), \
    "nothing is granted or held after the lease deadline") \
  P(grant_lease, "GRANT-LEASE", ON(GOT), \
    "a grant has a quarter of the session timeout until its lease deadline") \
  P(grant_deadline, "GRANT-DEADLINE", ON(GOT), \
    "with quorum assurance a grant has a quarter of the session timeout left") \
  P(no_needless_unsure, "NO-NEEDLESS-UNSURE", ON(TOLD), \
    "no holder becomes unsure in less than T/4 of trouble") \
  P(reentry_count, "REENTRY-COUNT", ON(WANTED) | ON(GOT) | ON(LET_GO) | ON(REMOVED), \
    "n acquires of one handle need n releases") \
  P(timeout_bound, "TIMEOUT-BOUND", ON(GOT), \
    "an acquire ends at its deadline, neither earlier nor later") \
  P(callback_safety, "CALLBACK-SAFETY", ON(STRAY) | ON(CALM), \
    "each callback is invoked once, and never for a freed handle") \
  P(guarded_write, "GUARDED-WRITE", ON(GUARDED), \
    "a guarded write is executed if and only if the own node exists") \
  P(revoke, "REVOKE", ON(TOLD) | ON(PATROL), \
    "a revocation is reported to the holder it names and to no other") \
  /* invariants_subscribe.c */ \
  P(subscribe_converges, "SUBSCRIBE-CONVERGES", ON(NEWS) | ON(PATROL), \
    "after the last change each subscriber has seen it, and nothing twice") \
  /* invariants_persistent_watch.c */ \
  P(watch_stays, "WATCH-STAYS", ON(ENDED) | ON(SENT) | ON(ANSWER) | ON(EVENT), \
    "a persistent watch reports each change once and in order, or that it was interrupted") \
  /* invariants_rare_requests.c */ \
  P(multi_whole, "MULTI-WHOLE", ON(ENDED) | ON(GONE), \
    "a transaction is executed whole or not at all, with the results of its operations") \
  P(multi_read, "MULTI-READ", ON(ENDED), \
    "all results of a multiRead are of one zxid") \
  /* invariants_client.c */ \
  P(request_ends_once, "REQUEST-ENDS-ONCE", ON(ENDED) | ON(GONE), \
    "an accepted request completes once; NOT_SENT is never executed") \
  P(reply_matches, "REPLY-MATCHES", ON(ENDED), \
    "a reply is what was true at its zxid") \
  P(order, "ORDER", ON(ENDED), \
    "replies come in the order of the requests and never go back in time") \
  P(watch_events, "WATCH-EVENTS", ON(ANSWER) | ON(EVENT), \
    "a one-shot watch reports one event, before any reply that shows the change") \
  P(reliable_write, "RELIABLE-WRITE", ON(SETTLED) | ON(CALM), \
    "a reliable write with result 0 was executed once, a refused one never") \
  P(identities, "IDENTITIES", ON(PROVED), \
    "on each connection an identity is sent before all later requests") \
  P(deep, "DEEP", ON(GROWN), \
    "a node created with its parents exists, a tree that was deleted does not") \
  P(session_states, "SESSION-STATES", ON(STATE) | ON(SENT), \
    "the session state changes along known edges only") \
  /* invariants_process.c */ \
  P(close_ends, "CLOSE-ENDS", ON(LOOK) | ON(GOT) | ON(CLOSED), \
    "nothing is held after close is called, and no node of the session remains") \
  P(lock_ok, "LOCK-OK", ON(STATE) | ON(GOT) | ON(TOLD) | ON(CANCELLED) | ON(LET_GO) | ON(PATROL), \
    "lk_lock_ok() implies state, count, token, node and lease") \
  P(reconnects, "RECONNECTS", ON(PATROL), \
    "a client with a reachable quorum is connected soon") \
  P(bytes_arrive, "BYTES-ARRIVE", ON(STATE), \
    "no connection is given up as silent while bytes arrive") \
  P(budget, "BUDGET", ON(SENT) | ON(DIALED) | ON(PATROL), \
    "requests and connections of a session timeout are bounded") \
  P(memory_returns, "MEMORY-RETURNS", ON(GONE) | ON(LOOK), \
    "a freed client leaves no memory")
/* clang-format on */

#define SIM_DECLARE_INVARIANT(function, name, facts, text) \
  void sim_##function(sim_checker *j, const sim_fact *f);
SIM_INVARIANTS(SIM_DECLARE_INVARIANT)

/** Why a contender deletes its nodes. */
typedef enum sim_leave {
  SIM_STAYS,
  SIM_FAILED,
  SIM_TIMED_OUT,
  SIM_CANCELS,
  SIM_RELEASES,
  SIM_FREES
} sim_leave;

/** A contender, from its first step to its last. */
typedef struct sim_contender {
  struct sim_contender *next;
  const lk_contender *ct;
  struct sim_life *life;
  sim_handle *handle;            /**< its owner at first */
  uint64_t acquire;              /**< … and the number of that acquire */
  sim_leave leave;               /**< why it is LEAVING */
  int64_t list_zxid;             /**< zxid of its last list */
  uint64_t list_connection;      /**< … and the connection it came on */
  const lk_contender *before[4]; /**< to be gone when its node is made */
  size_t nbefore;
  sim_stuck first;  /**< it is first and is not granted */
  sim_stuck gone;   /**< its node is deleted, and it goes on */
  sim_stuck stays;  /**< its node exists and is wanted no more */
  sim_stuck early;  /**< it has permits and is not first */
  sim_stuck rest;   /**< its node exists without an acquire */
  sim_stuck circle; /**< it waits for an acquire that waits for it */
} sim_contender;

/** An event, or the reply to a setWatches, as received. */
typedef struct sim_heard {
  int32_t type; /**< of an event; 0: an answer to a reconnect's; -1: to one
                     that the client sent later; -2: one that was throttled */
  int64_t zxid; /**< of an answer */
  char path[SIM_CHANGE_PATH];
} sim_heard;

enum { SIM_MOST_MENDS = 16 };

/** Frames received on a connection (received.c). The client reports them later,
    one after the other. */
typedef struct sim_received {
  sim_heard *heard;
  size_t count;
  size_t cap;
  size_t told;     /**< the event that a watch reported last */
  size_t asked;    /**< setWatches that were sent */
  size_t together; /**< of these: for the reconnect, each with its zxid */
  size_t nmends;   /**< of these later than for the reconnect */
  int32_t mends[SIM_MOST_MENDS]; /**< xids of the last ones */
  int64_t mended_zxid; /**< newest zxid of the client at the oldest of all */
  int64_t asked_zxid;  /**< likewise, with those for the reconnect */
  bool throttled;      /**< one of this connection was */
  bool lost; /**< one for an earlier connection has not succeeded since */
  unsigned char frame[96]; /**< the beginning of what is coming */
  size_t came;             /**< bytes of it */
  size_t len;              /**< its length, with the four bytes before it */
  bool welcomed;           /**< the handshake was answered */
} sim_received;

/** A process from start to end. */
typedef struct sim_life {
  sim_process *process; /**< NULL: it is over */
  lk_listener listener;
  lk_contender_observer observer;
  lk_state state;
  sim_session *session;
  int64_t smooth_us; /**< since when it runs, on one connection */
  bool was_paused;
  int64_t resumed_us; /**< its last pause ended */
  int64_t within_us;  /**< since when it could reach a quorum, and has not; 0 */
  int64_t hears_us;   /**< when bytes came last on this connection … */
  int64_t heard_us;   /**< … and when before that */
  int64_t count_us;   /**< since when these are counted */
  size_t nsent;       /**< requests that it sent … */
  size_t ndialed;     /**< … and connections that stood */
  int64_t seen_zxid;  /**< the newest of that connection's answers */
  sim_handle *handles;
  sim_request *requests;
  uint64_t asked;         /**< how many there were */
  uint64_t last_answered; /**< the newest request's number */
  int64_t top_zxid;       /**< of the last of these in the session */
  int32_t xid;            /**< the last that was sent in the session */
  size_t deletes_due;     /**< to be sent first on this connection */
  unsigned char head[72]; /**< of the frame being sent */
  size_t sent;            /**< bytes of it */
  size_t frame;           /**< its length, with the four bytes before it */
  bool greeted;           /**< the handshake was sent */
  bool must_lose;         /**< its session has ended: notify holders */
  bool must_be_empty;     /**< it was freed: so is its memory */

  sim_received received; /**< only with watchers, or where servers throttle */
} sim_life;

struct sim_checker {
  sim_world *world;
  sim_history history;
  sim_change_log change_log;
  sim_life lives[SIM_MOST_PROCESSES];
  bool restores; /**< the changes it gets come from a restored snapshot */
  sim_contender *attempts;
  sim_handle *all; /**< that ever were */
  struct sim_chunk *chunks;
  sim_write *writes;              /**< newest first */
  int64_t patrol_us;              /**< when the next one is due */
  uint64_t token[SIM_MOST_LOCKS]; /**< the newest that was reported */
  uint64_t turn[SIM_MOST_LOCKS];  /**< … and by how many it was handed on */
  int leader;
  unsigned last_leader;
  int64_t stood_us;   /**< when a leader last stood still; 0 */
  int64_t led_us;     /**< since when it leads */
  int64_t slow_us;    /**< when servers last heard late of each other; 0 */
  int64_t slowest_us; /**< what the slowest of their links takes more */
  int64_t late_us;    /**< when that last grew by more than a lease bears; 0 */
  int64_t calming_us; /**< since when nothing is wrong; 0 */
  size_t current;     /**< the invariant being asked */
  size_t violations;
  unsigned char cares[SIM_NFACTS][64]; /**< the invariants that get a fact */
  size_t ncares[SIM_NFACTS];
  struct {
    bool off;
    size_t broken;
    char what[160]; /**< the first time */
  } * verdicts;
};

/* contenders.c, process_facts.c, milestones.c, received.c */
/** Count the fact for the coverage if it is new. */
void sim_milestones_see(const sim_fact *f);
/** lk_contender_observer.on_step of all. */
void sim_contender_step(void *arg, const lk_contender *ct,
                        lk_contender_event ev, lk_contender_state from);
/** Those of a life, or all. */
void sim_contenders_forget(sim_checker *j, const sim_life *l);
void sim_life_end(sim_life *l);
void sim_received_begin(sim_life *l);
void sim_received_end(sim_life *l);
/** Whether what follows is noted: with watchers, or where servers throttle. */
bool sim_hears(const sim_world *w);
/** A setWatches has not been answered. */
bool sim_received_waits(const sim_received *h);
/** A setWatches was sent. */
void sim_received_asked(sim_life *l, int32_t xid);

/** Whether a one-shot watch may report that event at this moment. It may have
    been re-registered late: a setWatches was throttled, or one that was sent
    after that of the reconnect was lost. */
bool sim_is_told_late(const sim_checker *j, const sim_life *l,
                      const lk_event *e);

/** The current invariant is broken. */
void sim_violated(sim_checker *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline int64_t sim_now_us(const sim_checker *j)
{
  return j->world->agenda.now_us;
}

/** T in true time: the longest that servers grant. */
static inline int64_t sim_T_us(const sim_checker *j)
{
  return j->world->longest_ms * SIM_MS;
}

/** How long a client needs at most to notice something and to act. */
int64_t sim_patience_us(const sim_checker *j);
/** The most permits there were at any time since then. */
int32_t sim_limit_since(const sim_checker *j, int64_t us);
/** Whether something that `e` shows (NULL: it does not) has lasted for longer
    than its client needs to notice and to act. */
bool sim_overdue(sim_checker *j, const sim_life *l, sim_stuck *s,
                 const sim_entry *e);
/** Whether something was denied there at `us` or later. */
static inline bool sim_denied(const sim_checker *j, int lock_at, int64_t us)
{
  return j->history.denied_us[lock_at] > us;
}
/** The same for any of the directories of a handle. */
static inline bool sim_denies(const sim_checker *j, const sim_handle *h,
                              int64_t us)
{
  for (size_t i = 0; i < h->nseats; i++) {
    if (sim_denied(j, (int)h->places[i].lock_at, us))
      return true;
  }
  return false;
}
/** Whether a handle holds by its own word, and nothing of it was taken away
    of which its client cannot know. */
bool sim_is_sure(const sim_checker *j, const sim_handle *h);
/** Whether a session's end came before its time, or is beyond what the
    assurance of its process promises. */
bool sim_beyond_promise(const sim_checker *j, const sim_entry *e);
/** The process whose session's a node is now, also if it stands still; NULL:
    none, or its client is closed. */
sim_life *sim_owner_of(sim_checker *j, const sim_entry *e);
/** The attempt that made a node; NULL: it is over. */
sim_contender *sim_contender_for(const sim_checker *j, const sim_entry *e);
/** The node of an attempt that stands, or stood last; NULL: there was none. */
sim_entry *sim_entry_of(const sim_checker *j, const lk_contender *ct);
/** How often the directories of a handle have gone. */
unsigned sim_vanished(const sim_checker *j, const sim_handle *h);
/** Where it stands, or wants to stand, in a queue; NULL: nowhere. */
static inline const sim_place *sim_place_at(const sim_handle *h, int lock_at)
{
  for (size_t i = 0; i < h->nseats; i++) {
    if ((int)h->places[i].lock_at == lock_at)
      return &h->places[i];
  }
  return NULL;
}
static inline sim_life *sim_life_of(sim_checker *j, const sim_process *p)
{
  return &j->lives[p->index];
}

/** What is wrong with the answer to an rare requester (invariants_rare_requests.c). */
const char *sim_wrong_audit(const sim_checker *j, const sim_request *r,
                            const sim_result *res, int64_t zxid);
/** Whether a node ever had these data. */
bool sim_is_written(const sim_checker *j, const char *data);
/** Walk over all handles. */
#define SIM_EACH_HANDLE(j, h)                                     \
  for (size_t h##_at = 0; h##_at < SIM_MOST_PROCESSES; h##_at++)  \
    for (sim_handle *h = (j)->lives[h##_at].handles; (h) != NULL; \
         (h) = (h)->next)

#endif
