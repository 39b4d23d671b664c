/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_HISTORY_H
#define LK_SIM_WORLD_HISTORY_H

#include "sim/world/world.h"

#include <latchkey/lease.h>

/**
 * The history of all nodes in the directories of locks and in SIM_REQUEST_DIR,
 * so that the checker knows the right reply of a server at any zxid.
 */

/** Why a node was deleted. */
typedef enum sim_deletion_cause {
  SIM_NOT_DELETED,
  SIM_DELETED_BY_OWNER,   /**< by a request of the session that owns it */
  SIM_DELETED_BY_OTHERS,  /**< by a request of another session */
  SIM_DELETED_BY_CLOSE,   /**< its session was closed by the client */
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
  char key[SIM_ENTRY_KEY]; /**< the id of the contender that created it; "":
                              unknown */
  const char *name;        /**< the last component of `path` */
  size_t dir_len;          /**< length of the parent's path */
  int lock_index;          /**< index in the world's locks, or SIM_NO_LOCK */
  int64_t created_zxid;
  int64_t deleted_zxid; /**< 0: the node exists */
  int64_t created_us;
  int64_t deleted_us;
  int64_t session;                           /**< 0: not ephemeral */
  const struct sim_session *creator_session; /**< NULL: not ephemeral */
  int64_t changed_us;       /**< when its data were last set; 0: never */
  int64_t unowned_since_us; /**< when CRASH-EVERYWHERE first found it without an
                               owner; 0: it did not */
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
  struct sim_handle
      *handle;             /**< the handle whose acquire created it, or NULL */
  uint64_t acquire_number; /**< number of that acquire */
  lk_assurance assurance;  /**< of its creator's session lease */
  bool is_excused;    /**< its owner need not delete it: the owner may not, or
                         cannot know that it exists */
  bool restored;      /**< restored from a snapshot */
  bool foreign_holds; /**< a foreign locker believes that it holds with this
                         node */
  bool revoked;       /**< its data are the revocation message */
  bool ownerless;     /**< its data, which held the id of its contender, were
                         replaced before the contender knew the node: any contender
                         of the session may adopt it */
  bool blocked;       /**< it waits for a blocked node; used by find_circle() */
} sim_entry;

/** The xids of a range that were committed. */
typedef struct sim_xids {
  struct sim_xids *next;
  int32_t page;            /**< number of the range: xid / SIM_XIDS */
  unsigned char bits[128]; /**< one bit for each xid */
} sim_xids;

enum { SIM_XIDS = 128 * 8 };

typedef struct sim_session {
  struct sim_session *next;
  int64_t id;
  unsigned process;       /**< index of the last process that had it */
  uint64_t life;          /**< sim_process.life at that time */
  bool ended_by_operator; /**< an operator has ended it */
  bool resumed; /**< another process than its creator has resumed it */
  bool over;
  bool expired;
  int64_t over_us;
  int32_t granted_ms; /**< its timeout by the last resume; 0: none */
  int32_t known_ms; /**< its timeout as the client knows it; 0: the client does
                       not know the session */
  int64_t unheard_us;    /**< when the leader was last seen not to hear from the
                            server of its client; 0: never */
  struct sim_xids *xids; /**< xids that were committed */
  int32_t top_xid;       /**< the largest of them */
} sim_session;

/** Permissions are missing now: later than any time. */
#define SIM_DENIED_NOW INT64_MAX

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
  /** when permissions were last missing in each directory or in its nodes, or
      SIM_DENIED_NOW */
  int64_t denied_us[SIM_MOST_LOCKS];
  sim_entry
      *being_deleted; /**< entries that the current transaction has deleted */
} sim_history;

/** Part of the names of all nodes that foreign actors create. */
#define SIM_FOREIGN "-0000-4000-8000-"

/** The directory that the requests of actors use. Its nodes are recorded as
    well, and the node SIM_LIMIT. */
#define SIM_REQUEST_DIR "/raw"
/** The single-node lock, in the same directory. */
#define SIM_SINGLE_PATH SIM_REQUEST_DIR "/single"

/** The directories of the election and of the group. Their nodes are recorded,
    too. */
#define SIM_ELECTION_DIR "/election"
#define SIM_GROUP_DIR    "/group"

void sim_history_free(sim_history *history);
/** Record a new node. NULL: its path is not one of those that are recorded. */
sim_entry *sim_history_add_node(sim_history *history, const sim_node *node);
/** Record a deletion. The entry moves to `being_deleted` until the checker has
    reported it at the end of the transaction. */
void sim_history_delete_node(sim_history *history, const sim_node *node,
                             int64_t zxid);
/** A transaction was committed. Called after the nodes that it created and
    deleted were recorded. */
void sim_history_committed(sim_history *history, const sim_commit *c,
                           const sim_tree *committed);
void sim_history_end_session(sim_history *history, int64_t session,
                             bool expired);

/** The record of a session; made if there is none. */
sim_session *sim_history_session(sim_history *history, int64_t id);

/** The incarnation of the ensemble that executed `zxid`. Each wipe starts
    another, with other epochs. */
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

/** The node at `path` now, or the one that existed at `zxid`; NULL: none. */
sim_entry *sim_history_find(const sim_history *history, const char *path);
sim_entry *sim_history_at(const sim_history *history, const char *path,
                          int64_t zxid);
/** The node that the transaction with this zxid created; NULL: none. */
sim_entry *sim_history_by_zxid(const sim_history *history,
                               int64_t created_zxid);
/** The data of the node at `zxid`; NULL: it did not exist. */
const sim_version *sim_version_at(const sim_entry *e, int64_t zxid);

/** Whether `own` must wait for `rival`: `rival` has a smaller number and was
    created before, and not both are readers. A downgraded reader counts as
    created together with its write node. */
bool sim_excludes(const sim_entry *rival, const sim_entry *own);
/** Whether the node is a child of SIM_REQUEST_DIR. */
static inline bool sim_is_request_node(const sim_entry *e)
{
  return e->lock_index == SIM_NO_LOCK &&
         strncmp(e->path, SIM_REQUEST_DIR "/", sizeof SIM_REQUEST_DIR) == 0;
}
/** Whether one contender created both nodes, judged by its id. */
bool sim_same_contender(const sim_entry *a, const sim_entry *b);

#endif
