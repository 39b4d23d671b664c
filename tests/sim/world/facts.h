/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_FACTS_H
#define LK_SIM_WORLD_FACTS_H

#include "sim/world/change_log.h"
#include "sim/world/checker.h"
#include "sim/world/lock_mix.h"

#include <latchkey/rwlock.h>

/**
 * @file
 * What the checker is told, by actors through their handles and requests, by
 * processes, and by the ensemble; and what it keeps of those who told it.
 */

enum { SIM_MOST_PARTS = 4 };

/** What is held with a grant: a node for each part of the attempt. */
typedef struct sim_nodes {
  size_t count;
  sim_entry *at[SIM_MOST_PARTS];
} sim_nodes;

/** Something that cannot last: since when it does. */
typedef struct sim_grace {
  const sim_entry *entry;
  int64_t zxid;     /**< what its client has to see to know */
  int64_t since_us; /**< … and when it did */
} sim_grace;

/** A handle of a lock, as the API has answered to its actor. */
typedef struct sim_handle {
  struct sim_handle *next; /**< of its process */
  struct sim_handle *next_of_all; /**< the checker's */
  sim_process *process;
  char name[12]; /**< "p0.1" */
  sim_kind kind;
  size_t nplaces;
  sim_place places[SIM_MOST_PLACES_IN_QUEUE];
  bool backwards;
  int32_t permits;
  lk_session_lease *lease;  /**< its session lease, while it has a lock */
  bool local;               /**< it queues behind a node of its process */
  size_t max_queue;         /**< it waits behind so many; 0: behind any */
  lk_lock *lock;            /**< NULL: freed, or its process is gone */
  lk_rwlock *rwlock;        /**< whose side it is, or NULL */
  struct sim_handle *other; /**< … its other side's */
  bool freeing;             /**< lk_lock_free() is called */

  uint64_t
      acquire_number; /**< how many have begun, without those that count up */
  uint64_t accepted_acquires; /**< how many were accepted, with those */
  bool acquiring;             /**< an acquire has not ended */
  bool in_acquire;            /**< … and its call has not returned */
  int64_t timeout_ms; /**< of it */
  int64_t acquire_called_ms;   /**< when it was called, on the process' clock */
  int64_t acquire_returned_ms; /**< … and when that returned */
  int64_t acquire_called_us;   /**< when it was called, in true time */
  size_t count;       /**< as lk_lock_count() should be */
  bool is_reentry;    /**< the acquire counts up */
  bool lost;          /**< LOST was told; not released */
  bool unsure;        /**< UNSURE was told last */
  bool cancelling;    /**< in lk_lock_cancel() */
  bool in_release;    /**< in lk_lock_release() */
  bool releasing;     /**< `done` of a release has not been called */
  bool verifying;     /**< the same of a verify */
  size_t guarded_writes; /**< the same of guarded writes, how many */

  void (*on_callback)(struct sim_handle *h, int news, int err,
                      const lk_lock_event *event); /**< its actor's */
  void *arg;

  /* the checker's */
  int64_t first_node_us; /**< when the first node of this acquire was made; 0 */
  bool displaced;       /**< one of its nodes was taken away since */
  unsigned nodes_taken; /**< how many */
  unsigned places_lost; /**< how often it was told so */
  unsigned dirs_vanished; /**< how often its directories had, when it asked */
  const sim_entry
      *other_side_node; /**< what the other side held, when it asked */
  int64_t granted_us;
  int64_t granted_ms; /**< the same on its clock */
  int64_t granted_lease_ms; /**< until its lease ran out, as known then */
  bool node_is_watched;     /**< its node is, as far as answers prove */
  sim_grace complete_but_ungranted; /**< it has all, and is not granted */
  sim_grace
      unreported_revocation; /**< it was asked to let go, and is not told */
  unsigned revoked;   /**< how often it was told so, since the grant */
  bool was_waiting;   /**< it was told that somebody is ahead */
  sim_grace held_node_gone; /**< it holds, and a part of it is gone */
  sim_grace idle_node;      /**< nobody uses the node that it waits for */
  sim_nodes held;     /**< what it was granted with */
  sim_nodes releasing_nodes; /**< what it waits for to be gone */
} sim_handle;

/** What a request is, and of a watch what it was set by. */
typedef enum sim_verb {
  SIM_CREATE,
  SIM_DELETE,
  SIM_EXISTS,
  SIM_GET,
  SIM_SET,
  SIM_CHILDREN,
  SIM_SYNC,
  SIM_MULTI,
  /* an rare requester's */
  SIM_BATCH, /**< a multi of its parts */
  SIM_READS, /**< a multiRead of them */
  SIM_MAKE,  /**< a create with its part: any kind */
  SIM_LIST,
  SIM_COUNT,
  SIM_OWNED, /**< getEphemerals */
  SIM_WHO,
  SIM_GET_ACL,
  SIM_SET_ACL,
  /* a watcher's */
  SIM_ADD_WATCH,
  /* a identity user's */
  SIM_ADD_AUTH
} sim_verb;

enum { SIM_MOST_OPS = 4 };

/** One thing that an rare requester asks for. */
typedef struct sim_request_op {
  int32_t type; /**< enum lk_op_type, enum lk_read_type */
  char path[SIM_CHANGE_PATH];
  char data[24]; /**< what it writes; unique */
  int flags;
  int32_t version;
  int64_t ttl_ms;
} sim_request_op;

enum { SIM_MOST_PLACES = 64 };

/** A watch that stays, as far as it was told. */
typedef struct sim_persistent_watch {
  lk_watch_mode mode;
  bool registered; /**< on the connection at hand, since a zxid that is known */
  size_t
      candidates[SIM_MOST_PLACES]; /**< the change that it must be told of next,
                  or one behind; several, ascending, where an event
                  was that change or was made up for another like it */
  size_t ncandidates;              /**< how many of these there are */
  size_t next_frame; /**< behind what it was told of last on this connection */
  size_t first_missed; /**< the first of `next` when its connection broke */
  int reregistrations; /**< how often it was told on this connection to be back
                        */
} sim_persistent_watch;

/** A request that an actor has made by itself. */
typedef struct sim_request {
  struct sim_request *next; /**< of its process */
  sim_process *process;
  uint64_t number; /**< counts up in the order of the calls */
  sim_verb verb;
  char path[SIM_CHANGE_PATH];
  char data[24]; /**< what it writes; unique */
  int flags;     /**< of a create */
  bool sequential;
  bool in_call; /**< its call has not returned */
  unsigned completions;
  int err;
  bool timed; /**< with a timeout of its own */
  size_t nops;
  sim_request_op *ops;
  int32_t perms; /**< setACL: for everybody */

  /* its watch */
  lk_watch *watch; /**< NULL: none */
  bool sets_watch;
  bool until_disconnect;
  bool may_report_anything; /**< it was with a server without a quorum: whatever
                               happens */
  bool watch_registered;
  int64_t watch_zxid;  /**< zxid of the answer that made it stand */
  uint64_t connection; /**< on which it was set, or was told to be back */
  sim_persistent_watch *persistent; /**< NULL: it is for one event */
  int64_t
      late_since_us;   /**< since when an event is due that may come late; 0 */
  int64_t event_us;    /**< when a watch for one event was told; 0: never */
  bool throttled;      /**< a setWatches was while it stood, on this connection
                            or the one before */
  int64_t late_set_watches; /**< one behind the zxid of the oldest that was sent
                       later than for a reconnect, while it stood or was
                       under way; 0: none was, or all have succeeded */
} sim_request;

enum { SIM_MOST_IDENTITIES = 3 };

/** An identity that is added, or a request that needs the first one. */
typedef struct sim_identity_use {
  struct sim_actor *actor;
  sim_verb verb;
  unsigned identities_before; /**< identities that had been added before */
  unsigned completions;
  bool missing; /**< the server does not know one of them */
} sim_identity_use;

/** A write that is retried until its outcome is known. */
typedef struct sim_write {
  struct sim_write *next; /**< the checker's: older ones */
  struct sim_actor *actor;
  sim_verb verb;
  bool shared; /**< others write to that node, too */
  bool ended;
  int err;
  char path[SIM_CHANGE_PATH];
  char data[24]; /**< unique */
} sim_write;

/** What became of a request; the pointers are borrowed. */
typedef struct sim_result {
  int err;
  const char *path;
  const lk_stat *stat;
  const lk_bytes *data;
  const lk_bytes *names;
  size_t count; /**< also of what follows */
  const lk_op_result *done;
  const lk_read_result *read;
  const lk_acls *acl;
} sim_result;

typedef enum sim_fact_type {
  /* the run */
  SIM_JOB_DONE, /**< a job was done */
  SIM_PERIODIC, /**< the same, a few times in each session timeout */
  SIM_QUIESCENT,
  /* what is committed */
  SIM_NODE_CREATED,  /**< entry */
  SIM_NODE_DELETED,  /**< entry, and how in it */
  SIM_COMMITTED,     /**< commit; after those */
  SIM_SESSION_ENDED, /**< session: it has ended */
  /* a process: `life` */
  SIM_STATE,          /**< from, state, err */
  SIM_REPLY,          /**< answer */
  SIM_SENT,           /**< xid, op, looks */
  SIM_CLIENT_CLOSED,  /**< err: its close has ended */
  SIM_CONNECTED,      /**< its connection stands */
  SIM_PROCESS_ENDED,  /**< left: it was freed; else it died */
  SIM_CONTENDER_STEP, /**< attempt, event, before */
  /* a handle */
  SIM_ACQUIRE_CALLED,  /**< an acquire was called: err, and should */
  SIM_ACQUIRE_ENDED,   /**< it ended: err */
  SIM_LOCK_EVENT,      /**< told */
  SIM_CANCEL_RETURNED, /**< lk_lock_cancel() has returned; err: not 0 if the
                    acquire goes on */
  SIM_RELEASE_CALLED, /**< a release was called: err, and should: what it should
                         be */
  SIM_RELEASE_ENDED,  /**< it ended: err */
  SIM_VERIFY_ENDED,   /**< a verify ended: err */
  SIM_GUARDED_WRITE_ENDED, /**< a guarded write ended: err, request */
  SIM_HANDLE_FREED,        /**< lk_lock_free() has returned */
  SIM_STRAY_CALLBACK,      /**< a callback that must not be; why */
  /* a request */
  SIM_REQUEST_ENDED,   /**< request, result */
  SIM_WATCH_EVENT,     /**< request (its watch), watched */
  SIM_WRITE_ENDED,     /**< write */
  SIM_IDENTITY_USED,   /**< proof: it ended: err */
  SIM_TREE_CALL_ENDED, /**< write, of a tree maker: it ended: err */
  /* a subscription */
  SIM_SUBSCRIPTION_EVENT, /**< notice as it was before, known: what it is told,
                             stray */
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
      bool is_recovery; /* it checks the directory of a lock */
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
      const sim_nodes *nodes; /* of a guarded write, and what it wrote */
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
      bool after_free; /* nobody wants to know any more */
    };
  };
} sim_fact;

void sim_checker_report(sim_checker *j, const sim_fact *f);

/** Memory of a handle of a process; the checker's, until the end of the run. */
sim_handle *sim_checker_new_handle(sim_checker *j, sim_process *p);
/** Memory of a request; the checker's, until the process is gone. */
sim_request *sim_checker_new_request(sim_checker *j, sim_process *p);
/** How many watches stand or are asked for, and one of those that stand. */
size_t sim_checker_count_watches(const sim_checker *j, const sim_process *p);
sim_request *sim_checker_registered_watch(const sim_checker *j,
                                          const sim_process *p, size_t number);
/** The handle acquires: a new one, or it counts up. */
void sim_checker_acquire_called(sim_checker *j, sim_handle *h);
/** It is granted. */
void sim_checker_acquire_granted(sim_checker *j, sim_handle *h);
/** A write, which the checker keeps. */
sim_write *sim_checker_new_write(sim_checker *j);
/** Other memory, until the end of the run. */
void *sim_checker_allocate(sim_checker *j, size_t size);
/** Whether a handle holds, as far as it was told. */
static inline bool sim_holds(const sim_handle *h)
{
  return h->lock != NULL && h->count > 0 && !h->lost;
}
/** Whether a node is one of those. */
bool sim_nodes_contain(const sim_nodes *n, const sim_entry *e);
/** The handle is freed. */
void sim_checker_handle_freed(sim_checker *j, sim_handle *h);

#endif
