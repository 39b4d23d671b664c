/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_FACTS_H
#define LK_SIM_WORLD_FACTS_H

#include "sim/world/change_log.h"
#include "sim/world/checker.h"
#include "sim/world/lock_mix.h"

#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/rwlock.h>

/**
 * @file Facts that actors, processes and the ensemble report to the checker,
 * and the records that the checker keeps of handles and requests.
 */

enum { SIM_MOST_PARTS = 4 };

/** The nodes that prove a grant: one for each contender of the acquisition. */
typedef struct sim_nodes {
  size_t count;
  sim_entry *at[SIM_MOST_PARTS];
} sim_nodes;

/** Since when a condition holds that must not last; see sim_grace_is_over(). */
typedef struct sim_grace {
  const sim_entry *entry; /**< the node with the condition; NULL: none */
  /** the client must have seen this zxid to know of the condition */
  int64_t zxid;
  int64_t since_us; /**< when the client had seen it; 0: not yet */
} sim_grace;

/** In place of a timeout of an acquire: try. */
enum { SIM_TRY = 0 };

/** A lock as the API has shown it to its actor. */
typedef struct sim_handle {
  struct sim_handle *next;        /**< of its process */
  struct sim_handle *next_of_all; /**< of all processes */
  sim_process *process;
  char name[12]; /**< "p0.1" */
  sim_kind kind;
  size_t nplaces;
  sim_place places[SIM_MOST_PLACES_IN_QUEUE];
  bool backwards;
  int32_t permits;
  lk_session_lease *lease; /**< its session lease, while it has a lock */
  size_t max_queue; /**< the largest number of predecessors that its acquires
                       accept; 0: no limit */
  lk_lock *lock;    /**< NULL: freed, or the process has no client */
  lk_rwlock
      *rwlock; /**< the lock of which it is one side; NULL: it is no side */
  struct sim_handle
      *other;   /**< the handle of the other side; NULL: it is no side */
  bool freeing; /**< lk_lock_free() has not returned */

  uint64_t acquire_number; /**< number of acquires, without re-entries */
  /** number of accepted acquires, with re-entries */
  uint64_t accepted_acquires;
  bool acquiring;            /**< an acquire is outstanding */
  bool in_acquire;           /**< lk_lock_acquire() has not returned */
  int64_t timeout_ms;        /**< of the acquire; SIM_TRY: a try */
  bool needs_connection;     /**< the acquire is an lk_lock_try() */
  int64_t acquire_called_ms; /**< when it was called, on the process' clock */
  /** when the call returned, on the process' clock */
  int64_t acquire_returned_ms;
  int64_t acquire_called_us; /**< when it was called, in virtual time */
  size_t count;              /**< the expected lk_lock_count() */
  bool is_reentry;           /**< the acquire is a re-entry */
  bool lost;   /**< LOST was reported, and the lock was not released since */
  bool unsure; /**< UNSURE was the last report */
  bool cancelling;       /**< lk_lock_cancel() has not returned */
  bool in_release;       /**< lk_lock_release() has not returned */
  bool resetting;        /**< lk_lock_reset() has not returned */
  bool releasing;        /**< the callback of a release is due */
  bool verifying;        /**< the callback of a verify is due */
  size_t guarded_writes; /**< callbacks of guarded writes that are due */

  void (*on_callback)(struct sim_handle *h, int callback, int err,
                      const lk_lock_event *event); /**< of its actor */
  void *arg;

  /* set and used by the checker */
  /** when the acquire created its first node; 0: not yet */
  int64_t first_node_us;
  /** one of its nodes was deleted since the acquire was called */
  bool displaced;
  unsigned nodes_taken;   /**< number of its nodes that were deleted, but not by
                             its own requests */
  unsigned places_lost;   /**< number of PLACE_LOST events */
  unsigned dirs_vanished; /**< how often its directories had been deleted when
                             acquire was called */
  /** what the other side held when acquire was called */
  const sim_entry *other_side_node;
  int64_t granted_us;
  int64_t granted_ms;       /**< granted_us on the process' clock */
  int64_t granted_lease_ms; /**< time until the lease deadline at the grant */
  bool node_is_watched;     /**< the own node is certainly watched */
  /** all nodes are held, and there is no grant */
  sim_grace complete_but_ungranted;
  sim_grace unreported_revocation; /**< the node was revoked, and there is no
                                      REVOKED event */
  unsigned revoked; /**< number of REVOKED events since the grant */
  bool was_waiting; /**< WAITING was reported */
  sim_grace
      held_node_gone; /**< one of its nodes was deleted, and it still holds */
  sim_nodes held;     /**< the nodes of the grant */
  sim_nodes releasing_nodes; /**< the nodes that must be deleted when the
                                release completes */
} sim_handle;

/** The kind of a request. A watch has the kind of the request that set it. */
typedef enum sim_verb {
  SIM_CREATE,
  SIM_DELETE,
  SIM_EXISTS,
  SIM_GET,
  SIM_SET,
  SIM_CHILDREN,
  SIM_SYNC,
  SIM_MULTI,
  /* of a rare requester */
  SIM_BATCH, /**< a multi of `ops` */
  SIM_READS, /**< a multiRead of `ops` */
  SIM_MAKE,  /**< a create of any kind, described by ops[0] */
  SIM_LIST,
  SIM_COUNT,
  SIM_EPHEMERALS, /**< getEphemerals */
  SIM_WHO_AM_I,
  SIM_GET_ACL,
  SIM_SET_ACL,
  SIM_RECONFIG,
  /* of a watcher */
  SIM_ADD_WATCH,
  /* of an identity user */
  SIM_ADD_AUTH
} sim_verb;

enum { SIM_MOST_OPS = 4 };

/** An operation of a rare requester's request. */
typedef struct sim_request_op {
  int32_t type; /**< enum lk_op_type or enum lk_read_type */
  char path[SIM_CHANGE_PATH];
  char data[72]; /**< the data that it writes; unique in the run */
  int flags;
  int32_t version;
  int64_t ttl_ms;
} sim_request_op;

enum { SIM_MOST_CANDIDATES = 64 };

/** A persistent watch, and which events must come next. */
typedef struct sim_persistent_watch {
  lk_watch_mode mode;
  bool registered; /**< on this connection, from a known zxid on */
  /** indices in the change log, ascending: from one of them on, the watch must
      report the next change. There are several if an event may be of a later
      change, or may have been sent again because a one-shot watch had missed
      it */
  size_t candidates[SIM_MOST_CANDIDATES];
  size_t ncandidates;
  size_t next_frame; /**< index in the received frames, behind the event that it
                        reported last */
  size_t first_missed; /**< the first candidate when the connection broke */
  int reregistrations; /**< number of REREGISTERED events on this connection */
} sim_persistent_watch;

/** A request that an actor sends, not a lock. */
typedef struct sim_request {
  struct sim_request *next; /**< of its process */
  sim_process *process;
  uint64_t number; /**< in the order of the calls */
  sim_verb verb;
  char path[SIM_CHANGE_PATH];
  char data[24]; /**< the data that it writes; unique in the run */
  int flags;     /**< of a create */
  bool sequential;
  bool in_call; /**< its call has not returned */
  unsigned completions;
  int err;
  size_t nops;
  sim_request_op *ops;
  int32_t perms; /**< setACL: of world:anyone */

  /* its watch */
  lk_watch *watch; /**< NULL: none */
  bool sets_watch;
  bool until_disconnect;
  bool may_report_anything; /**< registered with a read-only server: it may
                               report any event */
  bool watch_registered;
  int64_t watch_zxid;  /**< zxid of the reply that registered it */
  uint64_t connection; /**< on which it was registered, or last re-registered */
  sim_persistent_watch *persistent; /**< NULL: one-shot */
  int64_t late_since_us; /**< since when an event is due that may be late; 0:
                            none is */
  int64_t event_us; /**< when a one-shot watch reported its event; 0: never */
  bool throttled;   /**< a setWatches with this watch was throttled, on this
                       connection or the one before */
  /** 1 + the zxid in the oldest of the setWatches that were sent
      after the reconnect's own while the watch existed; 0: none was, or all
      have succeeded */
  int64_t late_set_watches;
} sim_request;

enum { SIM_MOST_IDENTITIES = 3 };

/** A call that adds an identity, or a request that needs the first identity. */
typedef struct sim_identity_use {
  struct sim_actor *actor;
  sim_verb verb;
  /** number of identities that had been added before */
  unsigned identities_before;
  unsigned completions;
  bool missing; /**< the server does not know one of them */
} sim_identity_use;

/** A reliable write. */
typedef struct sim_write {
  struct sim_write *next; /**< in the list of the checker, to older ones */
  struct sim_actor *actor;
  sim_verb verb;
  bool shared; /**< other actors write to the node, too */
  bool ended;
  int err;
  char path[SIM_CHANGE_PATH];
  char data[24]; /**< unique */
} sim_write;

/** The result of a request; the pointers are borrowed. */
typedef struct sim_result {
  int err;
  const char *path;
  const lk_stat *stat;
  const lk_bytes *data;
  const lk_bytes *names;
  size_t count; /**< number of entries in the arrays */
  const lk_op_result *done;
  const lk_read_result *read;
  const lk_acls *acl;
} sim_result;

typedef enum sim_fact_type {
  /* the run */
  SIM_JOB_DONE, /**< after each job */
  SIM_PERIODIC, /**< sixteen times in each session timeout */
  SIM_QUIESCENT,
  /* committed transactions */
  SIM_NODE_CREATED,  /**< entry */
  SIM_NODE_DELETED,  /**< entry, with its deletion_cause */
  SIM_COMMITTED,     /**< commit; after the two above */
  SIM_SESSION_ENDED, /**< session */
  /* a process: `life` */
  SIM_STATE,          /**< from, state, err */
  SIM_REPLY,          /**< reply */
  SIM_SENT,           /**< xid, op, is_recovery */
  SIM_CLIENT_CLOSED,  /**< err: of lk_client_close() */
  SIM_CONNECTED,      /**< its connection is open */
  SIM_PROCESS_ENDED,  /**< was_freed; else it died */
  SIM_CONTENDER_STEP, /**< contender, event, state_before */
  /* a handle */
  SIM_ACQUIRE_CALLED,  /**< lk_lock_acquire() has returned: err, expected_err */
  SIM_ACQUIRE_ENDED,   /**< the acquire completed: err */
  SIM_LOCK_EVENT,      /**< lock_event */
  SIM_CANCEL_RETURNED, /**< lk_lock_cancel() or lk_lock_reset() has returned;
                          err is not 0 if the acquire is still outstanding */
  SIM_RELEASE_CALLED,  /**< lk_lock_release() has returned: err, expected_err */
  SIM_RELEASE_ENDED,   /**< the release completed: err */
  SIM_VERIFY_ENDED,    /**< a verify completed: err */
  SIM_GUARDED_WRITE_ENDED, /**< a guarded write completed: err, nodes, data */
  SIM_STRAY_CALLBACK,      /**< an unexpected callback: why */
  /* a request */
  SIM_REQUEST_ENDED,   /**< request, result */
  SIM_WATCH_EVENT,     /**< request, with the watch: watch_event */
  SIM_WRITE_ENDED,     /**< write */
  SIM_IDENTITY_USED,   /**< identity_use: it completed: err */
  SIM_TREE_CALL_ENDED, /**< write, of a tree maker: it completed: err */
  /* a subscription */
  SIM_SUBSCRIPTION_EVENT, /**< subscribed, before the event; new_state;
                             after_free */
  /* an election and a group */
  SIM_CANDIDATE_EVENT, /**< candidate_actor, candidate_event, candidate_freed */
  SIM_MEMBER_EVENT,    /**< member_actor, member_event, member_freed */
  SIM_ROSTER_EVENT,    /**< roster_actor, roster_freed */
  SIM_NFACTS
} sim_fact_type;

#define SIM_FACT(type) (UINT32_C(1) << (type))

typedef struct sim_fact {
  sim_fact_type type;
  int err;
  union {
    sim_entry *entry;
    const sim_commit *commit;
    sim_session *session;
    struct {
      struct sim_life *life;
      lk_state from;
      lk_state state;
      const lk_reply *reply;
      int32_t xid;
      int32_t op;
      bool is_recovery; /* it checks whether a node exists */
      bool was_freed;
      struct sim_contender *contender;
      lk_contender_event event;
      lk_contender_state state_before;
    };
    struct {
      sim_handle *handle;
      const lk_lock_event *lock_event;
      int expected_err;
      const char *why;
      const sim_nodes *nodes; /* of a guarded write, with the data it wrote */
      const char *data;
    };
    struct {
      sim_request *request;
      const sim_result *result;
      const lk_event *watch_event;
    };
    const struct sim_write *write;
    const struct sim_identity_use *identity_use;
    struct {
      const struct sim_subscribed *subscribed;
      const struct sim_node_state *new_state;
      bool after_free; /* the subscription was freed */
    };
    struct {
      struct sim_actor *candidate_actor;
      const lk_candidate_event *candidate_event;
      bool candidate_freed;
    };
    struct {
      struct sim_actor *member_actor;
      const lk_membership_event *member_event;
      bool member_freed;
    };
    struct {
      struct sim_actor *roster_actor;
      bool roster_freed;
    };
  };
} sim_fact;

void sim_report_fact(sim_checker *checker, const sim_fact *f);

/** Make a handle. The checker frees it at the end of the run. */
sim_handle *sim_checker_new_handle(sim_checker *checker, sim_process *p);
/** Make a request. The checker frees it when the process ends. */
sim_request *sim_checker_new_request(sim_checker *checker, sim_process *p);
/** The number of watches of a process that are registered or requested. */
size_t sim_checker_count_watches(const sim_checker *checker,
                                 const sim_process *p);
/** The registered watch of this number, from 0 on; NULL: there are fewer. */
sim_request *sim_checker_registered_watch(const sim_checker *checker,
                                          const sim_process *p, size_t number);
/** The handle calls acquire. */
void sim_checker_note_acquire_called(sim_checker *checker, sim_handle *h);
/** The handle is granted. */
void sim_checker_note_granted(sim_checker *checker, sim_handle *h);
/** Make a record of a reliable write. The checker frees it. */
sim_write *sim_checker_new_write(sim_checker *checker);
/** Zeroed memory that is freed at the end of the run. */
void *sim_checker_allocate(sim_checker *checker, size_t size);
/** Whether the handle holds, judged by the callbacks that were invoked. */
static inline bool sim_holds(const sim_handle *h)
{
  return h->lock != NULL && h->count > 0 && !h->lost;
}
/** Whether `e` is among the nodes. */
bool sim_nodes_contain(const sim_nodes *n, const sim_entry *e);
/** The handle is freed. */
void sim_checker_note_handle_freed(sim_checker *checker, sim_handle *h);

#endif
