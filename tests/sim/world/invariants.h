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
  P(mutex_exclusion, "MUTEX-EXCLUSION", ON(JOB_DONE) | ON(ACQUIRE_ENDED), \
    "lk_lock_ok() is never true for two handles of one mutex") \
  P(mutex_fifo, "MUTEX-FIFO", ON(ACQUIRE_ENDED), \
    "a contender that was in the queue before another asked is granted first") \
  P(no_barging, "NO-BARGING", ON(CONTENDER_STEP), \
    "no contender is granted while a predecessor exists") \
  P(handoff_rule, "HANDOFF-RULE", ON(CONTENDER_STEP), \
    "a deletion alone grants only where rule H proves the lock") \
  P(no_lost_wakeup, "NO-LOST-WAKEUP", ON(PERIODIC) | ON(QUIESCENT), \
    "the first contender is granted soon after it can know that it is first") \
  P(crash_everywhere, "CRASH-EVERYWHERE", ON(PERIODIC), \
    "nodes of a process that died are gone after T + 2 ticks") \
  P(token_monotone, "TOKEN-MONOTONE", ON(ACQUIRE_ENDED), \
    "fencing tokens grow, and are the czxids of the own nodes") \
  P(seq_unsafe, "SEQ-UNSAFE", ON(ACQUIRE_ENDED), \
    "sequence numbers that cannot be trusted grant nothing") \
  P(queue_full, "QUEUE-FULL", ON(ACQUIRE_ENDED) | ON(CONTENDER_STEP), \
    "a limit of predecessors is never exceeded, and nothing below it is refused") \
  /* invariants_local_queue.c */ \
  P(local_queue, "LOCAL-QUEUE", ON(ACQUIRE_ENDED) | ON(PERIODIC), \
    "owners behind one node take turns, and release after sixteen handoffs") \
  /* invariants_rwlock.c */ \
  P(rw_matrix, "RW-MATRIX", ON(JOB_DONE) | ON(CONTENDER_STEP), \
    "a writer excludes all, readers share; each watches its direct predecessor") \
  P(rw_downgrade, "RW-DOWNGRADE", ON(NODE_CREATED) | ON(ACQUIRE_ENDED), \
    "a writer reads under its own number and keeps its token") \
  P(rw_upgrade, "RW-UPGRADE", ON(ACQUIRE_CALLED), \
    "a reader that wants to write is refused and leaves nothing") \
  /* invariants_semaphore.c */ \
  P(sem_limit, "SEM-LIMIT", ON(ACQUIRE_ENDED), \
    "never more permits are held than there are") \
  P(sem_speculation, "SEM-SPECULATION", ON(ACQUIRE_ENDED) | ON(PERIODIC) | ON(QUIESCENT), \
    "a contender that is not first keeps no permits and blocks nobody for ever") \
  /* invariants_multilock.c */ \
  P(all_or_nothing, "ALL-OR-NOTHING", ON(ACQUIRE_ENDED) | ON(PERIODIC), \
    "a multi-lock holds all of its members or none") \
  P(multi_no_deadlock, "MULTI-NO-DEADLOCK", ON(PERIODIC), \
    "multi-locks never wait for each other in a circle") \
  /* invariants_single.c */ \
  P(single_node_no_steal, "SINGLE-NODE-NO-STEAL", ON(NODE_DELETED) | ON(JOB_DONE) | ON(QUIESCENT), \
    "no delete removes the next holder's node, and only one holds") \
  /* invariants_node.c */ \
  P(no_orphan, "NO-ORPHAN", ON(CONTENDER_STEP) | ON(PERIODIC) | ON(QUIESCENT), \
    "each node of a living session has an owner") \
  P(create_ambiguity, "CREATE-AMBIGUITY", ON(NODE_CREATED), \
    "one contender never has two nodes") \
  P(xid_continues, "XID-CONTINUES", ON(SENT) | ON(COMMITTED), \
    "no xid is used twice in a session") \
  P(own_deleted, "OWN-DELETED", ON(LOCK_EVENT) | ON(REPLY) | ON(PERIODIC), \
    "the deletion of an own node is reported once, to its owner alone") \
  P(expiry, "EXPIRY", ON(NODE_CREATED) | ON(STATE) | ON(LOCK_EVENT) | ON(JOB_DONE) | ON(ACQUIRE_ENDED), \
    "the end of a session is reported once, and its nodes have no names any more") \
  P(timeout_clean, "TIMEOUT-CLEAN", ON(ACQUIRE_ENDED) | ON(PERIODIC), \
    "an acquire that timed out leaves nothing") \
  P(cancel_everywhere, "CANCEL-EVERYWHERE", ON(ACQUIRE_ENDED) | ON(CANCEL_RETURNED) | ON(PERIODIC), \
    "a cancelled acquire is never granted and leaves nothing") \
  P(release_async, "RELEASE-ASYNC", ON(STATE) | ON(SENT) | ON(CONTENDER_STEP) | ON(RELEASE_ENDED) | ON(PERIODIC) | ON(QUIESCENT), \
    "a release is never lost and precedes later requests") \
  P(container_reap, "CONTAINER-REAP", ON(ACQUIRE_ENDED), \
    "no acquire fails because its directory was swept") \
  P(acl, "ACL", ON(ACQUIRE_ENDED) | ON(RELEASE_ENDED) | ON(LOCK_EVENT), \
    "NO_AUTH is reported only of what is denied") \
  P(throttled, "THROTTLED", ON(ACQUIRE_ENDED) | ON(RELEASE_ENDED) | ON(VERIFY_ENDED), \
    "no transient error of a server or connection ends an acquire") \
  /* invariants_hold.c */ \
  P(lease_deadline, "LEASE-DEADLINE", ON(NODE_DELETED), \
    "no session expires before the lease deadline of its locks") \
  P(lease_pause, "LEASE-PAUSE", ON(JOB_DONE) | ON(ACQUIRE_ENDED) | ON(LOCK_EVENT), \
    "nothing is granted or held after the lease deadline") \
  P(grant_lease, "GRANT-LEASE", ON(ACQUIRE_ENDED), \
    "a grant has a quarter of the session timeout until its lease deadline") \
  P(grant_deadline, "GRANT-DEADLINE", ON(ACQUIRE_ENDED), \
    "with quorum assurance a grant has a quarter of the session timeout left") \
  P(no_needless_unsure, "NO-NEEDLESS-UNSURE", ON(LOCK_EVENT), \
    "no holder becomes unsure in less than T/4 of trouble") \
  P(reentry_count, "REENTRY-COUNT", ON(ACQUIRE_CALLED) | ON(ACQUIRE_ENDED) | ON(RELEASE_CALLED) | ON(NODE_DELETED), \
    "n acquires of one handle need n releases") \
  P(timeout_bound, "TIMEOUT-BOUND", ON(ACQUIRE_ENDED), \
    "an acquire ends at its deadline, neither earlier nor later") \
  P(callback_safety, "CALLBACK-SAFETY", ON(STRAY_CALLBACK) | ON(QUIESCENT), \
    "each callback is invoked once, and never for a freed handle") \
  P(guarded_write, "GUARDED-WRITE", ON(GUARDED_WRITE_ENDED), \
    "a guarded write is executed if and only if the own node exists") \
  P(revoke, "REVOKE", ON(LOCK_EVENT) | ON(PERIODIC), \
    "a revocation is reported to the holder it names and to no other") \
  /* invariants_subscribe.c */ \
  P(subscribe_converges, "SUBSCRIBE-CONVERGES", ON(SUBSCRIPTION_EVENT) | ON(PERIODIC), \
    "after the last change each subscriber has seen it, and nothing twice") \
  /* invariants_persistent_watch.c */ \
  P(watch_stays, "WATCH-STAYS", ON(REQUEST_ENDED) | ON(SENT) | ON(REPLY) | ON(WATCH_EVENT), \
    "a persistent watch reports each change once and in order, or that it was interrupted") \
  /* invariants_rare_requests.c */ \
  P(multi_whole, "MULTI-WHOLE", ON(REQUEST_ENDED) | ON(PROCESS_ENDED), \
    "a transaction is executed whole or not at all, with the results of its operations") \
  P(multi_read, "MULTI-READ", ON(REQUEST_ENDED), \
    "all results of a multiRead are of one zxid") \
  /* invariants_client.c */ \
  P(request_ends_once, "REQUEST-ENDS-ONCE", ON(REQUEST_ENDED) | ON(PROCESS_ENDED), \
    "an accepted request completes once; NOT_SENT is never executed") \
  P(reply_matches, "REPLY-MATCHES", ON(REQUEST_ENDED), \
    "a reply is what was true at its zxid") \
  P(order, "ORDER", ON(REQUEST_ENDED), \
    "replies come in the order of the requests and never go back in time") \
  P(watch_events, "WATCH-EVENTS", ON(REPLY) | ON(WATCH_EVENT), \
    "a one-shot watch reports one event, before any reply that shows the change") \
  P(reliable_write, "RELIABLE-WRITE", ON(WRITE_ENDED) | ON(QUIESCENT), \
    "a reliable write with result 0 was executed once, a refused one never") \
  P(identities, "IDENTITIES", ON(IDENTITY_USED), \
    "on each connection an identity is sent before all later requests") \
  P(deep, "DEEP", ON(TREE_CALL_ENDED), \
    "a node created with its parents exists, a tree that was deleted does not") \
  P(session_states, "SESSION-STATES", ON(STATE) | ON(SENT), \
    "the session state changes along known edges only") \
  /* invariants_process.c */ \
  P(close_ends, "CLOSE-ENDS", ON(JOB_DONE) | ON(ACQUIRE_ENDED) | ON(CLIENT_CLOSED), \
    "nothing is held after close is called, and no node of the session remains") \
  P(lock_ok, "LOCK-OK", ON(STATE) | ON(ACQUIRE_ENDED) | ON(LOCK_EVENT) | ON(CANCEL_RETURNED) | ON(RELEASE_CALLED) | ON(PERIODIC), \
    "lk_lock_ok() implies state, count, token, node and lease") \
  P(reconnects, "RECONNECTS", ON(PERIODIC), \
    "a client with a reachable quorum is connected soon") \
  P(bytes_arrive, "BYTES-ARRIVE", ON(STATE), \
    "no connection is given up as silent while bytes arrive") \
  P(budget, "BUDGET", ON(SENT) | ON(CONNECTED) | ON(PERIODIC), \
    "requests and connections of a session timeout are bounded") \
  P(memory_returns, "MEMORY-RETURNS", ON(PROCESS_ENDED) | ON(JOB_DONE), \
    "a freed client leaves no memory")
/* clang-format on */

#define SIM_DECLARE_INVARIANT(function, name, facts, text) \
  void sim_##function(sim_checker *j, const sim_fact *f);
SIM_INVARIANTS(SIM_DECLARE_INVARIANT)

/** Why a contender deletes its nodes. */
typedef enum sim_stop_reason {
  SIM_NOT_STOPPED,
  SIM_STOP_FAILED,
  SIM_STOP_TIMED_OUT,
  SIM_STOP_CANCELLED,
  SIM_STOP_RELEASED,
  SIM_STOP_FREED
} sim_stop_reason;

/** A contender, from its first step to its last. */
typedef struct sim_contender {
  struct sim_contender *next;
  const lk_contender *ct;
  struct sim_life *life;
  sim_handle *handle;            /**< its owner at first */
  uint64_t acquire_number;       /**< … and the number of that acquire */
  sim_stop_reason stop_reason;   /**< why it is LEAVING */
  int64_t list_zxid;             /**< zxid of its last list */
  uint64_t list_connection;      /**< … and the connection it came on */
  const lk_contender
      *released_before[4]; /**< to be gone when its node is made */
  size_t nreleased_before;
  sim_grace first_ungranted; /**< it is first and is not granted */
  sim_grace own_deleted;     /**< its node is deleted, and it goes on */
  sim_grace undeleted;       /**< its node exists and is wanted no more */
  sim_grace kept_early;      /**< it has permits and is not first */
  sim_grace left_over;       /**< its node exists without an acquire */
  sim_grace in_circle;       /**< it waits for an acquire that waits for it */
} sim_contender;

/** An event, or the reply to a setWatches, as received. */
typedef struct sim_received_frame {
  int32_t type; /**< of an event; 0: an answer to a reconnect's; -1: to one
                     that the client sent later; -2: one that was throttled */
  int64_t zxid; /**< of an answer */
  char path[SIM_CHANGE_PATH];
} sim_received_frame;

enum { SIM_MOST_MENDS = 16 };

/** Frames received on a connection (received.c). The client reports them later,
    one after the other. */
typedef struct sim_received {
  sim_received_frame *frames;
  size_t count;
  size_t cap;
  size_t last_reported;    /**< the event that a watch reported last */
  size_t set_watches_sent; /**< setWatches that were sent */
  size_t at_reconnect; /**< of these: for the reconnect, each with its zxid */
  size_t nlate;        /**< of these later than for the reconnect */
  int32_t late_xids[SIM_MOST_MENDS]; /**< xids of the last ones */
  int64_t late_zxid;   /**< newest zxid of the client at the oldest of all */
  int64_t oldest_zxid; /**< likewise, with those for the reconnect */
  bool throttled;      /**< one of this connection was */
  bool lost; /**< one for an earlier connection has not succeeded since */
  unsigned char frame_head[96]; /**< the beginning of what is coming */
  size_t frame_received;        /**< bytes of it */
  size_t frame_len;    /**< its length, with the four bytes before it */
  bool handshake_done; /**< the handshake was answered */
} sim_received;

/** A process from start to end. */
typedef struct sim_life {
  sim_process *process; /**< NULL: it is over */
  lk_listener listener;
  lk_contender_observer observer;
  lk_state state;
  sim_session *session;
  int64_t undisturbed_since_us; /**< since when it runs, on one connection */
  bool was_paused;
  int64_t resumed_us; /**< its last pause ended */
  int64_t reachable_since_us; /**< since when it could reach a quorum, and has
                                 not; 0 */
  int64_t last_bytes_us;     /**< when bytes came last on this connection … */
  int64_t previous_bytes_us; /**< … and when before that */
  int64_t count_us;   /**< since when these are counted */
  size_t nsent;       /**< requests that it sent … */
  size_t ndialed;     /**< … and connections that stood */
  int64_t seen_zxid;  /**< the newest of that connection's answers */
  sim_handle *handles;
  sim_request *requests;
  uint64_t nrequests;     /**< how many there were */
  uint64_t last_answered; /**< the newest request's number */
  int64_t top_zxid;       /**< of the last of these in the session */
  int32_t xid;            /**< the last that was sent in the session */
  size_t deletes_to_send; /**< to be sent first on this connection */
  unsigned char frame_head[72]; /**< of the frame being sent */
  size_t frame_sent;            /**< bytes of it */
  size_t frame_len;       /**< its length, with the four bytes before it */
  bool handshake_sent;    /**< the handshake was sent */
  bool must_report_loss;  /**< its session has ended: notify holders */
  bool must_be_empty;     /**< it was freed: so is its memory */

  sim_received received; /**< only with watchers, or where servers throttle */
} sim_life;

struct sim_checker {
  sim_world *world;
  sim_history history;
  sim_change_log change_log;
  sim_life lives[SIM_MOST_PROCESSES];
  bool restoring; /**< the changes it gets come from a restored snapshot */
  sim_contender *contenders;
  sim_handle *all_handles; /**< that ever were */
  struct sim_chunk *chunks;
  sim_write *writes;              /**< newest first */
  int64_t next_periodic_us;       /**< when the next one is due */
  uint64_t token[SIM_MOST_LOCKS]; /**< the newest that was reported */
  uint64_t turn[SIM_MOST_LOCKS];  /**< … and by how many it was handed on */
  int leader;
  unsigned last_leader;
  int64_t leader_stopped_us; /**< when a leader last stood still; 0 */
  int64_t leader_since_us;   /**< since when it leads */
  int64_t slow_us;    /**< when servers last heard late of each other; 0 */
  int64_t slowest_us; /**< what the slowest of their links takes more */
  int64_t
      late_since_us; /**< when that last grew by more than a lease bears; 0 */
  int64_t faults_over_us; /**< since when nothing is wrong; 0 */
  size_t current;     /**< the invariant being asked */
  size_t violations;
  unsigned char invariants_of_fact[SIM_NFACTS]
                                  [64]; /**< the invariants that get a fact */
  size_t ninvariants_of_fact[SIM_NFACTS];
  struct {
    bool off;
    size_t broken;
    char what[160]; /**< the first time */
  } * verdicts;
};

/* contenders.c, process_facts.c, milestones.c, received.c */
/** Count the fact for the coverage if it is new. */
void sim_milestones_note(const sim_fact *f);
/** lk_contender_observer.on_step of all. */
void sim_contender_step(void *arg, const lk_contender *ct,
                        lk_contender_event ev, lk_contender_state from);
/** Those of a life, or all. */
void sim_contenders_free(sim_checker *j, const sim_life *l);
void sim_life_end(sim_life *l);
void sim_received_begin(sim_life *l);
void sim_received_end(sim_life *l);
/** Whether what follows is noted: with watchers, or where servers throttle. */
bool sim_records_received(const sim_world *w);
/** A setWatches has not been answered. */
bool sim_received_awaits_set_watches(const sim_received *h);
/** A setWatches was sent. */
void sim_received_set_watches_sent(sim_life *l, int32_t xid);

/** Whether a one-shot watch may report that event at this moment. It may have
    been re-registered late: a setWatches was throttled, or one that was sent
    after that of the reconnect was lost. */
bool sim_event_may_be_late(const sim_checker *j, const sim_life *l,
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
int64_t sim_grace_us(const sim_checker *j);
/** The most permits there were at any time since then. */
int32_t sim_limit_since(const sim_checker *j, int64_t us);
/** Whether something that `e` shows (NULL: it does not) has lasted for longer
    than its client needs to notice and to act. */
bool sim_grace_is_over(sim_checker *j, const sim_life *l, sim_grace *s,
                       const sim_entry *e);
/** Whether something was denied there at `us` or later. */
static inline bool sim_dir_was_denied(const sim_checker *j, int lock_index,
                                      int64_t us)
{
  return j->history.denied_us[lock_index] > us;
}
/** The same for any of the directories of a handle. */
static inline bool sim_handle_was_denied(const sim_checker *j,
                                         const sim_handle *h, int64_t us)
{
  for (size_t i = 0; i < h->nplaces; i++) {
    if (sim_dir_was_denied(j, (int)h->places[i].lock_index, us))
      return true;
  }
  return false;
}
/** Whether a handle holds by its own word, and nothing of it was taken away
    of which its client cannot know. */
bool sim_certainly_holds(const sim_checker *j, const sim_handle *h);
/** Whether a session's end came before its time, or is beyond what the
    assurance of its process promises. */
bool sim_deletion_is_excused(const sim_checker *j, const sim_entry *e);
/** The process whose session's a node is now, also if it stands still; NULL:
    none, or its client is closed. */
sim_life *sim_owner_of(sim_checker *j, const sim_entry *e);
/** The attempt that made a node; NULL: it is over. */
sim_contender *sim_contender_for(const sim_checker *j, const sim_entry *e);
/** The node of an attempt that stands, or stood last; NULL: there was none. */
sim_entry *sim_entry_of(const sim_checker *j, const lk_contender *ct);
/** How often the directories of a handle have gone. */
unsigned sim_dirs_vanished(const sim_checker *j, const sim_handle *h);
/** Where it stands, or wants to stand, in a queue; NULL: nowhere. */
static inline const sim_place *sim_place_at(const sim_handle *h, int lock_index)
{
  for (size_t i = 0; i < h->nplaces; i++) {
    if ((int)h->places[i].lock_index == lock_index)
      return &h->places[i];
  }
  return NULL;
}
static inline sim_life *sim_life_of(sim_checker *j, const sim_process *p)
{
  return &j->lives[p->index];
}

/** What is wrong with the answer to an rare requester (invariants_rare_requests.c). */
const char *sim_wrong_rare_reply(const sim_checker *j, const sim_request *r,
                                 const sim_result *res, int64_t zxid);
/** Whether a node ever had these data. */
bool sim_is_written(const sim_checker *j, const char *data);
/** Walk over all handles. */
#define SIM_EACH_HANDLE(j, h)                                     \
  for (size_t h##_at = 0; h##_at < SIM_MOST_PROCESSES; h##_at++)  \
    for (sim_handle *h = (j)->lives[h##_at].handles; (h) != NULL; \
         (h) = (h)->next)

#endif
