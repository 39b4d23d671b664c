/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_HISTORY_H
#define LK_SIM_WORLD_HISTORY_H

#include "sim/world/world.h"

#include <latchkey/lease.h>

/**
 * The history of all nodes in the directories that matter, so that the reply of
 * a server at any zxid is known.
 */

/** Why a node was deleted. */
typedef enum sim_deletion_cause {
  SIM_NOT_DELETED,
  SIM_DELETED_BY_OWNER,   /**< by a request of the session that created it */
  SIM_DELETED_BY_OTHERS,  /**< by a request of another session */
  SIM_DELETED_BY_CLOSE,   /**< its session was closed */
  SIM_DELETED_BY_EXPIRY,  /**< its session expired */
  SIM_DELETED_BY_OPERATOR /**< an operator ended its session */
} sim_deletion_cause;

enum {
  SIM_ENTRY_PATH = 104,
  SIM_ENTRY_KEY = 44,
  SIM_ENTRY_DATA = 24,
  SIM_NO_LOCK = -1
};

/** The data of a node from one transaction on. */
typedef struct sim_version {
  struct sim_version *older;
  int64_t zxid;
  int32_t version;
  int64_t at_us;
  char data[SIM_ENTRY_DATA]; /**< the first bytes, as text */
} sim_version;

typedef struct sim_entry {
  struct sim_entry *older; /**< the entry that was created before it */
  char path[SIM_ENTRY_PATH];
  char key[SIM_ENTRY_KEY]; /**< the id of its contender */
  const char *name;        /**< the last component of `path` */
  size_t dir_len;          /**< of the parent's path */
  int lock_index;          /**< index in the world's locks, or SIM_NO_LOCK */
  int64_t created_zxid;    /**< zxid */
  int64_t deleted_zxid;    /**< 0: it exists */
  int64_t created_us;
  int64_t deleted_us;
  int64_t session;                           /**< 0: not ephemeral */
  const struct sim_session *creator_session; /**< NULL: not ephemeral */
  int64_t changed_us; /**< when an operator last set its data */
  sim_deletion_cause deletion_cause;
  bool is_contender;  /**< it has the name of a contender node */
  bool is_reader;     /**< it shares the lock with other readers */
  bool is_write_side; /**< Curator's write node, which may become a reader */
  bool is_foreign;    /**< created by another library */
  bool is_permit;     /**< the node of a semaphore's permit */
  int64_t suffix;     /**< its sequence number */
  /** of a downgraded reader: the write node with its number, or NULL */
  const struct sim_entry *downgraded_from;
  sim_version *newest;
  struct sim_entry *next; /**< in `existing` or in `being_deleted` */
  struct sim_entry *prev;
  struct sim_handle *handle; /**< whose acquire created it, or NULL */
  uint64_t acquire_number;   /**< number of that acquire */
  /** the process whose local queue shares it, or NULL */
  struct sim_life *local_queue_life;
  lk_assurance assurance; /**< of its creator's session lease */
  bool is_excused;    /**< the owner may not delete it, or cannot know that it
                         exists */
  bool restored;      /**< restored from a snapshot */
  bool foreign_holds; /**< a foreign locker holds with it */
  bool revoked;       /**< its data are the revocation message */
  bool ownerless;     /**< its data, which held the id of its contender, were
                         replaced before the contender knew the node: any contender
                         of the session may adopt it */
  bool blocked;       /**< for find_circle() */
} sim_entry;

/** A range of xids. */
typedef struct sim_xids {
  struct sim_xids *next;
  int32_t page;            /**< number of the range: xid / SIM_XIDS */
  unsigned char bits[128]; /**< one for each xid */
} sim_xids;

enum { SIM_XIDS = 128 * 8 };

typedef struct sim_session {
  struct sim_session *next;
  int64_t id;
  unsigned process;
  uint64_t life;
  bool ended_by_operator; /**< an operator has ended it */
  bool resumed; /**< by another process than the one that created it */
  bool over;
  bool expired;
  int64_t over_us;
  int32_t granted_ms;    /**< its timeout by the last resume; 0: none */
  int32_t known_ms;      /**< its timeout as the client knows it; 0 */
  struct sim_xids *xids; /**< that were committed */
  int32_t top_xid;       /**< the largest of them */
} sim_session;

typedef struct sim_history {
  const sim_agenda *agenda;
  char (*locks)[SIM_LOCK_PATH]; /**< of the world */
  const size_t *nlocks;
  const sim_lock_style *const *style; /**< of the world */
  sim_entry *newest;
  sim_entry *existing; /**< newest first */
  sim_session *sessions;
  bool wiped;   /**< zxids may be smaller than those of older entries */
  int64_t zxid; /**< of the last transaction */
  unsigned dirs_vanished[SIM_MOST_LOCKS]; /**< how often each directory was
                                             deleted */
  /** when permissions were last missing there; INT64_MAX: they are missing
      now */
  int64_t denied_us[SIM_MOST_LOCKS];
  sim_entry *being_deleted; /**< by the current transaction */
} sim_history;

/** In the names of nodes that foreign actors create. */
#define SIM_FOREIGN "-0000-4000-8000-"

/** The directory of the requests of actors. It is recorded besides the locks,
    as is SIM_LIMIT. */
#define SIM_REQUEST_DIR "/raw"
/** The single-node lock, in the same directory. */
#define SIM_SINGLE_PATH SIM_REQUEST_DIR "/single"

void sim_history_free(sim_history *l);
/** NULL: a node that is not recorded. */
sim_entry *sim_history_add_node(sim_history *l, const sim_node *node);
/** The entry moves to `being_deleted` until the end of its transaction. */
void sim_history_delete_node(sim_history *l, const sim_node *node,
                             int64_t zxid);
/** Called after the changes of the transaction. */
void sim_history_committed(sim_history *l, const sim_commit *c,
                           const sim_tree *committed);
void sim_history_end_session(sim_history *l, int64_t session, bool expired);

/** The record of a session, which is added if it is new. */
sim_session *sim_history_session(sim_history *l, int64_t id);

/** The incarnation of the ensemble that executed `zxid`: each wipe starts
    another. */
static inline int64_t sim_incarnation(int64_t zxid)
{
  return (zxid >> 32) / SIM_INCARNATION_EPOCHS;
}
/** Whether the node existed at `zxid`, in the same incarnation. */
static inline bool sim_entry_existed_at(const sim_entry *e, int64_t zxid)
{
  return sim_incarnation(e->created_zxid) == sim_incarnation(zxid) &&
         e->created_zxid <= zxid &&
         (e->deleted_zxid == 0 || e->deleted_zxid > zxid);
}

/** The node at a path now, or at `zxid`. */
sim_entry *sim_history_find(const sim_history *l, const char *path);
sim_entry *sim_history_at(const sim_history *l, const char *path, int64_t zxid);
/** The node that a transaction created. */
sim_entry *sim_history_by_zxid(const sim_history *l, int64_t created_zxid);
/** Its data at `zxid`. */
const sim_version *sim_version_at(const sim_entry *e, int64_t zxid);

/** Whether `rival` excludes `own`: it has a smaller number, not both are
    readers, and it was created before. A downgraded reader counts from its
    write node on. */
bool sim_excludes(const sim_entry *rival, const sim_entry *own);
/** Whether it is a child of SIM_REQUEST_DIR. */
static inline bool sim_is_request_node(const sim_entry *e)
{
  return e->lock_index == SIM_NO_LOCK && e->dir_len > 0;
}
/** Whether both have the id of one contender. */
bool sim_same_contender(const sim_entry *a, const sim_entry *b);

#endif
