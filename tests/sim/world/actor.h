/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ACTOR_H
#define LK_SIM_WORLD_ACTOR_H

#include "sim/world/actors.h"
#include "sim/world/handle.h"

/** What an actor does for a living. */
typedef struct sim_actor_kind {
  /** It has nothing yet, and `job` is set. */
  void (*start)(struct sim_actor *a);
  /** Its job: the process runs. It puts itself down again. */
  void (*act)(struct sim_actor *a);
  /** The process frees its client. */
  void (*leave)(struct sim_actor *a);
  /** It says when it is idle. */
  bool reports_idle;
} sim_actor_kind;

extern const sim_actor_kind sim_locker, sim_requester, sim_foreign_waiter,
    sim_foreign_locker, sim_permit_setter, sim_single_locker, sim_subscriber,
    sim_rare_requester, sim_watcher, sim_reliable_writer, sim_identity_user,
    sim_many_readers, sim_tree_maker;

/** A handle for the lock of a single node. */
typedef struct sim_single_state {
  lk_lock *lock; /**< NULL: its process is gone */
  bool acquiring;
  bool lost;
} sim_single_state;

/** How a node stands, as its children or its data: what differs when those
    do. */
typedef struct sim_node_state {
  int err;
  int64_t czxid;
  int64_t zxid; /**< of the last change */
  int32_t version;
  uint64_t digest; /**< of the names, of the data */
} sim_node_state;

/** What somebody subscribes to, and was told. */
typedef struct sim_subscribed {
  lk_subscription *subscription; /**< NULL: none, or its process is gone */
  bool children;
  char path[24];
  bool notified;
  sim_node_state last;
  int64_t stale_since_us; /**< since when that is not so; 0: it is */
} sim_subscribed;

bool sim_node_state_equals(const sim_node_state *a, const sim_node_state *b);
/** Whether what a subscriber was told last is so. */
bool sim_subscriber_is_up_to_date(const struct sim_actor *a);

/** Somebody in a process. */
typedef struct sim_actor {
  struct sim_actor *next; /**< of its process */
  sim_process *process;
  const sim_actor_kind *kind;
  unsigned number; /**< in the process */
  char name[12];
  sim_rng rng;
  sim_job job;
  bool stopping; /**< it wants nothing new */
  bool idle;     /**< … and has nothing */

  /* a locker's */
  sim_handle *handle; /**< of a read-write lock the writers' */
  unsigned lock_index;
  int64_t until_us; /**< it holds so long */
  unsigned call_depth; /**< calls of it on the stack */
  lk_lock_config lock_config;

  /* a requester's, a identity user's */
  lk_listener listener;
  bool reading; /**< of the large node */

  /* a single locker's */
  sim_single_state single;

  /* a subscriber's */
  sim_subscribed *subscribed;

  /* a writer's, a tree maker's */
  struct sim_write *write; /**< under way, or NULL */
  unsigned tree_number;    /**< the one that it uses */

  /* a identity user's */
  unsigned identities; /**< that it has added in this life */

  /* a crowd's */
  struct sim_many_readers *many_readers;

  /* a foreign waiter's, a foreign locker's */
  struct sim_foreign_state *foreign_state;
} sim_actor;

/** Act again after so long. */
void sim_actor_act_in(sim_actor *a, int64_t us);

static inline int64_t sim_actor_T_us(const sim_actor *a)
{
  return a->process->world->timeout_ms * SIM_MS;
}

#endif
