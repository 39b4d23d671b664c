/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_ACTOR_H
#define LK_SIM_WORLD_ACTOR_H

#include "sim/world/actors.h"
#include "sim/world/handle.h"

#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/roster.h>

/** A kind of actor. */
typedef struct sim_actor_kind {
  /** A client was made: set up the actor and schedule `job`. */
  void (*start)(struct sim_actor *a);
  /** `job` is due, and the process is neither paused nor without a client.
      Schedules `job` again, unless the actor is done. */
  void (*act)(struct sim_actor *a);
  /** The process frees its client. NULL: the actor has nothing to free. */
  void (*leave)(struct sim_actor *a);
  /** the actor sets sim_actor.idle itself */
  bool reports_idle;
} sim_actor_kind;

extern const sim_actor_kind sim_locker, sim_requester, sim_foreign_waiter,
    sim_foreign_locker, sim_permit_setter, sim_single_locker, sim_subscriber,
    sim_rare_requester, sim_watcher, sim_reliable_writer, sim_identity_user,
    sim_many_readers, sim_tree_maker, sim_candidate_actor, sim_member_actor,
    sim_roster_reader;

/** The lock of a single locker. */
typedef struct sim_single_state {
  lk_lock *lock; /**< NULL: the process has no client */
  bool acquiring;
  bool lost;
} sim_single_state;

/** What a subscriber knows of a node: its children or its data. */
typedef struct sim_node_state {
  int err;
  int64_t czxid;
  int64_t zxid; /**< of the last change */
  int32_t version;
  uint64_t digest; /**< of the names or of the data */
} sim_node_state;

/** The subscription of a subscriber, and the state it reported last. */
typedef struct sim_subscribed {
  /** NULL: it has unsubscribed, or the process has no client */
  lk_subscription *subscription;
  bool children;
  char path[24];
  bool notified;
  sim_node_state last;
  int64_t stale_since_us; /**< since when `last` differs from the committed
                             state; 0: they are equal */
} sim_subscribed;

/** The candidate of an actor. */
typedef struct sim_candidate {
  lk_candidate *candidate; /**< NULL: the process has no client */
  bool has_led;            /**< since it was made, or since the faults ended */
  bool stops;              /**< the faults have ended */
  /* of the checker */
  bool leads;
  bool unsure; /**< while it leads: UNSURE was the last report */
  bool ended;
  uint64_t term;
} sim_candidate;

/** The member of an actor. */
typedef struct sim_member {
  lk_membership *membership; /**< NULL: freed, or the process has no client */
  bool wanted;               /**< it has joined, or is joining */
  bool joined;               /**< JOINED was the last report */
  bool ended;
  bool stops;      /**< the faults have ended */
  unsigned writes; /**< number of data so far */
  char path[16];
  char data[24];              /**< that the node must have; unique */
  /* 0: the node is as the member wants it. */
  int64_t unsettled_since_us;
  int64_t joining_since_us; /**< likewise; also 0 during a pause */
} sim_member;

/** The layout of the election, which all candidates have: by the seed. */
lk_layout sim_election_layout(const struct sim_world *w);

/** Whether the node of the member exists if and only if the member takes part,
    and has its data; or its name is taken. */
bool sim_member_is_settled(const struct sim_actor *a);

/** The roster of an actor, and what it reported last. */
typedef struct sim_roster {
  lk_roster *roster; /**< NULL: unsubscribed, or the process has no client */
  bool election;     /**< of the election; else of the group */
  const char *path;
  bool notified;
  int err;
  uint64_t digest;        /**< of all entries, in their order */
  int64_t stale_since_us; /**< since when it differs from the committed state;
                             0: it does not */
} sim_roster;

/** Whether the last report of the roster is the committed state. */
bool sim_roster_is_up_to_date(const struct sim_actor *a);

bool sim_node_state_equals(const sim_node_state *a, const sim_node_state *b);
/** Whether the last report of the subscription is the committed state. */
bool sim_subscriber_is_up_to_date(const struct sim_actor *a);

/** An actor of a process. */
typedef struct sim_actor {
  struct sim_actor *next; /**< of the same process */
  sim_process *process;
  const sim_actor_kind *kind;
  unsigned number; /**< in its process */
  char name[12];
  sim_rng rng;
  sim_job job;
  bool stopping; /**< it starts nothing new */
  bool idle; /**< it is stopping and has nothing left to do; see reports_idle */

  /* of a locker */
  sim_handle *handle; /**< of a read-write lock the write side */
  unsigned lock_index;
  int64_t until_us;    /**< end of the current hold */
  unsigned call_depth; /**< number of act_on_random_side() calls on the stack */
  lk_lock_config lock_config;

  /* of a requester or an identity user */
  lk_listener listener;
  bool reading; /**< of the large node */

  /* of a single locker */
  sim_single_state single;

  /* of a subscriber */
  sim_subscribed *subscribed;

  sim_candidate *candidate; /**< of a candidate */
  sim_member *member;       /**< of a member */
  sim_roster *roster;       /**< of a roster reader */

  /* of a reliable writer or a tree maker */
  struct sim_write *write; /**< outstanding, or NULL */
  unsigned tree_number;    /**< number of the directory that it uses now */

  /* of an identity user */
  unsigned identities; /**< number of identities added to this client */

  /* of sim_many_readers */
  struct sim_many_readers *many_readers;

  /* of a foreign waiter or a foreign locker */
  struct sim_foreign_state *foreign_state;
} sim_actor;

/** Call `act` after this time. */
void sim_actor_act_in(sim_actor *a, int64_t us);
/** An operator deletes one of the first children of `dir`, if there are any. */
void sim_actor_delete_any_child(sim_actor *a, const char *dir);

static inline int64_t sim_actor_T_us(const sim_actor *a)
{
  return a->process->world->timeout_ms * SIM_MS;
}

#endif
