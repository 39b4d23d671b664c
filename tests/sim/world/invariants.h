/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_INVARIANTS_H
#define LK_SIM_WORLD_INVARIANTS_H

#include "sim/world/facts.h"
#include "sim/world/scenario.h"
#include "support/server_version.h"

#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

#include <inttypes.h>

/**
 * @file The list of invariants, and the records and functions that they use. To
 * add one: a line in the list, the function, and a mutant that only it finds.
 */

/* clang-format off */
#define ON(fact) SIM_FACT(SIM_##fact)
#define SIM_INVARIANTS(P) \
  /* invariants_queue.c */ \
  P(mutex_exclusion, "MUTEX-EXCLUSION", ON(JOB_DONE) | ON(ACQUIRE_ENDED), \
    "the leases of two handles of one mutex never last at the same time") \
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
  P(create_ambiguity, "CREATE-AMBIGUITY", ON(COMMITTED), \
    "one contender never has two nodes") \
  P(xid_continues, "XID-CONTINUES", ON(SENT) | ON(COMMITTED), \
    "no xid is used twice in a session") \
  P(own_deleted, "OWN-DELETED", ON(LOCK_EVENT) | ON(REPLY) | ON(PERIODIC), \
    "the deletion of an own node is reported once, to its owner alone, in time") \
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
  P(survives_one_silent, "SURVIVES-ONE-SILENT", ON(LOCK_EVENT), \
    "no holder becomes unsure while one follower is silent and the others serve") \
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
  /* invariants_election.c */ \
  P(one_leader, "ONE-LEADER", ON(JOB_DONE) | ON(NODE_DELETED) | ON(CANDIDATE_EVENT), \
    "at most one candidate leads, in a larger term than all before, and is told so once") \
  P(election_ends, "ELECTION-ENDS", ON(PERIODIC) | ON(QUIESCENT), \
    "an election with candidates gets a leader, and no node is left behind") \
  /* invariants_group.c */ \
  P(member_listed, "MEMBER-LISTED", ON(MEMBER_EVENT) | ON(PERIODIC), \
    "a member is in the group with its data, and leaves no node") \
  P(roster_converges, "ROSTER-CONVERGES", ON(ROSTER_EVENT) | ON(PERIODIC), \
    "after the last change each roster has been reported") \
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
    "lk_lock_ok() implies HELD, count, token, node and lease") \
  P(reconnects, "RECONNECTS", ON(PERIODIC) | ON(STATE), \
    "a client with a reachable quorum is connected soon") \
  P(bytes_arrive, "BYTES-ARRIVE", ON(STATE), \
    "no connection is given up as silent while bytes arrive, or parts of replies") \
  P(moves_bounded, "MOVES-BOUNDED", ON(STATE), \
    "a client leaves a server for its holders once in a session timeout") \
  P(budget, "BUDGET", ON(SENT) | ON(CONNECTED) | ON(PERIODIC), \
    "requests and connections of a session timeout are bounded") \
  P(memory_returns, "MEMORY-RETURNS", ON(PROCESS_ENDED) | ON(JOB_DONE), \
    "a freed client leaves no memory")
/* clang-format on */

#define SIM_DECLARE_INVARIANT(function, name, facts, text) \
  void sim_##function(sim_checker *checker, const sim_fact *f);
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

/** A contender of the library, from its first step to its last. */
typedef struct sim_contender {
  struct sim_contender *next;
  const lk_contender *ct;
  struct sim_life *life;
  sim_handle *handle;          /**< whose acquire created it */
  uint64_t acquire_number;     /**< number of that acquire */
  sim_stop_reason stop_reason; /**< why it is cleaning up */
  int64_t list_zxid;           /**< zxid of its last list */
  uint64_t list_connection;    /**< the connection of its last list */
  const lk_contender *released_before[4]; /**< released contenders whose delete
                                             precedes its create */
  size_t nreleased_before;
  sim_grace first_ungranted; /**< it is first and is not granted */
  sim_grace own_deleted; /**< its node was deleted, and it does not notice */
  sim_grace undeleted;   /**< its node is no longer needed and exists */
  sim_grace kept_early;  /**< it keeps permits or members before its turn */
  sim_grace left_over;   /**< its node exists after the acquire ended */
  sim_grace in_circle;   /**< it waits for an acquire that waits for it */
} sim_contender;

/** Replies to setWatches. */
enum sim_frame_type {
  SIM_FRAME_SET_WATCHES = 0, /**< to one that has succeeded */
  SIM_FRAME_THROTTLED = -1   /**< to one that was refused as throttled */
};

/** An event or a reply to setWatches, as received. */
typedef struct sim_received_frame {
  int32_t type; /**< the lk_event_type of an event (> 0), or a sim_frame_type */
  int64_t zxid; /**< of a reply */
  char path[SIM_CHANGE_PATH];
} sim_received_frame;

static inline bool sim_frame_is_event(const sim_received_frame *frame)
{
  return frame->type > 0;
}

/** Frames received on a connection (received.c). The client reports them later,
    in the same order. */
typedef struct sim_received {
  sim_received_frame *frames;
  size_t count;
  size_t cap;
  size_t last_reported;    /**< index of the event that a watch reported last */
  size_t set_watches_sent; /**< number of setWatches sent */
  size_t at_reconnect; /**< of these, the ones that the reconnect sent; each had
                          its own zxid */
  int64_t late_zxid;   /**< smallest zxid of the later ones */
  int64_t oldest_zxid; /**< smallest zxid of all that were sent */
  bool throttled;      /**< one of them was refused as throttled */
  bool lost; /**< a setWatches was lost with an earlier connection, and none has
                succeeded since */
  unsigned char frame_head[96]; /**< first bytes of the frame being received */
  size_t frame_received;        /**< bytes of this frame received */
  size_t frame_len;    /**< length of this frame with its length field */
  bool handshake_done; /**< the connect reply was received */
} sim_received;

/** A process with one client, from its start to its end. */
typedef struct sim_life {
  sim_process *process; /**< NULL: ended */
  lk_listener listener;
  lk_contender_observer observer;
  lk_state state;
  sim_session *session;
  int64_t undisturbed_since_us; /**< since when it runs on this connection
                                   without a pause */
  bool was_paused;
  int64_t resumed_us;         /**< end of its last pause */
  int64_t reachable_since_us; /**< since when a quorum is reachable and the
                                 client is not connected; 0: not so */
  unsigned last_server;       /**< index of the server of the last connection */
  int64_t last_bytes_us;      /**< when bytes arrived last on this connection */
  int64_t previous_bytes_us;  /**< when bytes arrived before that */
  int64_t progress_us; /**< when a part of a reply, but not to a ping, arrived
                          last; only while frames are recorded */
  int64_t left_us; /**< when the client last left a server for its holders; 0:
                      not yet */
  int64_t throttled_us; /**< when a THROTTLED reply arrived last */
  int64_t count_us;     /**< when the counts below were last reset */
  size_t nsent;         /**< requests sent since then */
  size_t nconnects;     /**< connections opened since then */
  int64_t seen_zxid;    /**< the newest zxid of this connection's replies */
  int64_t replied_us; /**< when the newest request that has a reply was sent */
  sim_handle *handles;
  sim_request *requests;
  uint64_t nrequests;     /**< number of requests of actors */
  uint64_t last_answered; /**< number of the request that was answered last */
  int64_t top_zxid;       /**< newest zxid of its replies in this session */
  int32_t xid;            /**< the last xid sent in this session */
  size_t deletes_to_send; /**< number of deletes that must be sent before other
                             requests on this connection */
  unsigned char frame_head[72]; /**< first bytes of the frame being sent */
  size_t frame_sent;            /**< bytes of this frame sent */
  size_t frame_len;      /**< length of this frame with its length field */
  bool handshake_sent;   /**< the connect request was sent */
  bool must_report_loss; /**< its session ended, and its holders must be
                            notified in the same job */
  bool must_be_empty; /**< the client was freed, and no memory may be left after
                         the job */

  sim_received received; /**< only if sim_is_recording_frames() */
} sim_life;

struct sim_checker {
  sim_world *world;
  bool all_count_descendants; /**< all servers know getAllChildrenNumber */
  bool moved_in_results; /**< SESSION_MOVED may be in the results of a multi */
  sim_history history;
  sim_change_log change_log;
  sim_life lives[SIM_MOST_PROCESSES];
  bool restoring; /**< the ensemble is restoring a snapshot */
  sim_contender *contenders;
  sim_handle *all_handles; /**< of all processes, also ended ones */
  struct sim_chunk *chunks;
  sim_write *writes;        /**< newest first */
  int64_t next_periodic_us; /**< time of the next SIM_PERIODIC */
  /** the newest token granted for each lock */
  uint64_t last_token[SIM_MOST_LOCKS];
  uint64_t last_term;          /**< of the election */
  int64_t leaderless_since_us; /**< since when candidates wait and none leads;
                                  0: not so */
  int leader;                  /**< index of a server; -1: there is none */
  unsigned last_leader; /**< the leader, or the one before the election */
  int64_t leader_last_stopped_us; /**< when the leader was last seen stopped; 0:
                                     never */
  int64_t leader_since_us;        /**< since when the current leader leads */
  int64_t links_last_slow_us; /**< when a link between servers was last seen too
                                 slow for leases; 0: never */
  int64_t slowest_link_us;    /**< additional delay of the slowest link between
                                 servers */
  int64_t link_delay_grew_us; /**< when slowest_link_us last grew by more than a
                                 lease tolerates; 0: never */
  int64_t faults_over_us;     /**< since when no fault is active; 0: faults are
                                 active */
  size_t current;             /**< the invariant being checked */
  size_t violations;
  unsigned char invariants_of_fact[SIM_NFACTS]
                                  [64]; /**< indices of the invariants that
                                           receive a fact */
  size_t ninvariants_of_fact[SIM_NFACTS];
  struct {
    bool off;       /**< the invariant is not checked */
    size_t broken;  /**< number of violations */
    char what[160]; /**< text of the first violation */
  } * verdicts;
};

/* contenders.c, process_facts.c, milestones.c, received.c */
/** Count the milestones that the fact shows. */
void sim_milestones_note(const sim_fact *f);
/** lk_contender_observer.on_step of all contenders. */
void sim_contender_step(void *arg, const lk_contender *ct,
                        lk_contender_event ev, lk_contender_state from);
/** Free the contenders of a process. */
void sim_contenders_free_of(sim_checker *checker, const sim_life *l);
void sim_contenders_free_all(sim_checker *checker);
void sim_life_end(sim_life *l);
void sim_received_begin(sim_life *l);
void sim_received_end(sim_life *l);
/** Whether the run records the frames that processes receive: if it has
    watchers, or if servers may throttle. */
bool sim_is_recording_frames(const sim_world *w);
/** Whether a setWatches was sent and has no reply yet. */
bool sim_received_awaits_set_watches(const sim_received *h);
/** A setWatches was sent. */
void sim_received_set_watches_sent(sim_life *l);

/** Whether a one-shot watch of the process may report that event now, later
    than usual: a setWatches was throttled. */
bool sim_event_may_be_late(const sim_checker *checker, const sim_life *l,
                           const lk_event *e);

/** Report a violation of the current invariant. */
void sim_violated(sim_checker *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline int64_t sim_now_us(const sim_checker *checker)
{
  return checker->world->agenda.now_us;
}

/** The longest session timeout that servers grant, in virtual time. */
static inline int64_t sim_T_us(const sim_checker *checker)
{
  return checker->world->longest_ms * SIM_MS;
}

/** How long a client needs at most to notice a change and to act. */
int64_t sim_grace_us(const sim_checker *checker);
/** The largest number of permits at any time since `us`. */
int32_t sim_limit_since(const sim_checker *checker, int64_t us);
/** Whether the condition that `s` follows has lasted longer than
    sim_grace_us(). `e`: the node that has the condition now; NULL: none has it,
    and the grace period starts anew. */
bool sim_grace_is_over(sim_checker *checker, const sim_life *l, sim_grace *s,
                       const sim_entry *e);
/** Whether a condition of a client has lasted longer than `limit_us`, when the
    faults are over. `*since` is when it began, or 0. The time that the client
    needs to connect is not counted, since RECONNECTS checks it. Nor is the time
    until its last THROTTLED reply: a server that was told to throttle some
    requests does it when they arrive, and the pauses double. */
bool sim_is_overdue(sim_checker *checker, const sim_life *l, bool condition,
                    int64_t *since, int64_t limit_us);
/** sim_grace_is_over() for an own node that was deleted: a contender notices
    that within half a session timeout if the server replies. */
bool sim_own_deleted_is_overdue(sim_checker *checker, const sim_life *l,
                                sim_grace *s, const sim_entry *e);
/** Whether a permission was missing in the directory at `us` or later. */
static inline bool sim_dir_was_denied(const sim_checker *checker,
                                      int lock_index, int64_t us)
{
  return checker->history.denied_us[lock_index] > us;
}
/** Whether a permission was missing in a directory of the handle at `us` or
    later. */
static inline bool sim_handle_was_denied(const sim_checker *checker,
                                         const sim_handle *h, int64_t us)
{
  for (size_t i = 0; i < h->nplaces; i++) {
    if (sim_dir_was_denied(checker, (int)h->places[i].lock_index, us))
      return true;
  }
  return false;
}
/** Whether the lease of the lock lasts, and must be right. It may be wrong if a
    node of the handle was deleted in a way that its client cannot know of. */
bool sim_certainly_holds(const sim_checker *checker, const sim_handle *h);
/** Whether the deletion of a node is no fault of the client: by others, or an
    expiry that the assurance of its session lease does not cover. */
bool sim_deletion_is_excused(const sim_checker *checker, const sim_entry *e);
/** The process whose session owns the node. It may be paused. NULL: there is
    none, or its client is closed. */
sim_life *sim_owner_of(sim_checker *checker, const sim_entry *e);
/** The contender that created the node, or that has adopted it. NULL: it is
    finished. */
sim_contender *sim_contender_for(const sim_checker *checker,
                                 const sim_entry *e);
/** The existing node of a contender; if it has none, its last one; NULL: it
    never had one. */
sim_entry *sim_entry_of(const sim_checker *checker, const lk_contender *ct);
/** How often the directories of a handle have been deleted, in all. */
unsigned sim_dirs_vanished(const sim_checker *checker, const sim_handle *h);
/** The place of a handle in the queue of a lock; NULL: none. */
static inline const sim_place *sim_place_at(const sim_handle *h, int lock_index)
{
  for (size_t i = 0; i < h->nplaces; i++) {
    if ((int)h->places[i].lock_index == lock_index)
      return &h->places[i];
  }
  return NULL;
}
static inline sim_life *sim_life_of(sim_checker *checker, const sim_process *p)
{
  return &checker->lives[p->index];
}

/** What is wrong with the reply to a request of a rare requester
    (invariants_rare_requests.c); NULL: nothing. */
const char *sim_wrong_rare_reply(const sim_checker *checker,
                                 const sim_request *r, const sim_result *res,
                                 int64_t zxid);
/** Whether any node ever had these data. */
bool sim_is_written(const sim_checker *checker, const char *data);
/** Repeats the statement that follows for each handle `h` of each process. */
#define SIM_EACH_HANDLE(checker, h)                                     \
  for (size_t h##_at = 0; h##_at < SIM_MOST_PROCESSES; h##_at++)        \
    for (sim_handle *h = (checker)->lives[h##_at].handles; (h) != NULL; \
         (h) = (h)->next)

#endif
