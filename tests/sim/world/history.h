/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_HISTORY_H
#define LK_SIM_WORLD_HISTORY_H

#include "sim/world/world.h"

#include <latchkey/lease.h>

/**
 * All that was ever committed under the directories that matter, so that one
 * can ask what a server had to say at any zxid.
 */

/** How a node went. */
typedef enum sim_deletion_cause {
  SIM_NOT_DELETED,
  SIM_DELETED_BY_OWNER,   /**< the session that made it deleted it */
  SIM_DELETED_BY_OTHERS,  /**< somebody else did */
  SIM_DELETED_BY_CLOSE,   /**< its session was closed */
  SIM_DELETED_BY_EXPIRY,  /**< its session ran out */
  SIM_DELETED_BY_OPERATOR /**< an operator ended its session */
} sim_deletion_cause;

enum {
  SIM_ENTRY_PATH = 104,
  SIM_ENTRY_KEY = 44,
  SIM_ENTRY_DATA = 24,
  SIM_NO_LOCK = -1
};

/** What a node's data were, from a transaction on. */
typedef struct sim_version {
  struct sim_version *older;
  int64_t zxid;
  int32_t version;
  int64_t at_us;
  char data[SIM_ENTRY_DATA]; /**< its beginning, as text */
} sim_version;

typedef struct sim_entry {
  struct sim_entry *older; /**< the one made before it */
  char path[SIM_ENTRY_PATH];
  char key[SIM_ENTRY_KEY]; /**< what is the same for all nodes of an attempt */
  const char *name;        /**< in `path`, its last part */
  size_t dir_len;          /**< of the path before it */
  int lock_index;          /**< which of the world's locks it is a child of */
  int64_t created_zxid;    /**< zxid */
  int64_t deleted_zxid;    /**< zxid; 0: it stands */
  int64_t created_us;
  int64_t deleted_us;
  int64_t session;              /**< 0: it is not ephemeral */
  const struct sim_session *creator_session; /**< the same, or NULL */
  int64_t changed_us;           /**< when an operator last changed its data */
  sim_deletion_cause deletion_cause;
  bool is_contender;              /**< its name is one of a contender */
  bool is_reader;                 /**< … which shares */
  bool is_write_side;             /**< … which may come back as a reader */
  bool is_foreign;                /**< another library's made it */
  bool is_permit;                 /**< it is a permit of a semaphore */
  int64_t suffix;                 /**< of it */
  const struct sim_entry *downgraded_from; /**< of a reader: the writer whose
                                       number it has, or NULL */
  sim_version *newest;
  struct sim_entry *next; /**< of those that stand; of those that go */
  struct sim_entry *prev;
  struct sim_handle *handle;         /**< whose acquire made it, or NULL */
  uint64_t acquire_number;           /**< … and the number of that acquire */
  struct sim_life *local_queue_life; /**< in which those stand behind it who
                                queue locally; or NULL */
  lk_assurance assurance;  /**< of the session lease of who made it */
  bool is_excused; /**< its owner may not delete it, or cannot know it */
  bool restored; /**< it came back with an older snapshot */
  bool foreign_holds; /**< another library's, which holds by it */
  bool revoked;  /**< its owner was asked to let go */
  bool ownerless; /**< … and its data, which tell whose it is, were replaced
                      before its attempt knew of the node: any attempt of the
                      session may take it for its own */
  bool blocked;  /**< for the search for circles */
} sim_entry;

/** Some xids that follow each other: a client may begin with any of them. */
typedef struct sim_xids {
  struct sim_xids *next;
  int32_t page;            /**< the first one, by SIM_XIDS */
  unsigned char bits[128]; /**< one each */
} sim_xids;

enum { SIM_XIDS = 128 * 8 };

typedef struct sim_session {
  struct sim_session *next;
  int64_t id;
  unsigned process;
  uint64_t life;
  bool ended_by_operator; /**< an operator ends it */
  bool resumed; /**< by another process than began it */
  bool over;
  bool expired;
  int64_t over_us;
  int32_t granted_ms; /**< its timeout by the last resume; 0: there was none */
  int32_t known_ms;   /**< … as its client knows it; 0 */
  struct sim_xids *xids; /**< that were committed */
  int32_t top_xid;       /**< the largest of them */
} sim_session;

typedef struct sim_history {
  const sim_agenda *agenda;
  char (*locks)[SIM_LOCK_PATH]; /**< the world's */
  const size_t *nlocks;
  const sim_lock_style *const *style; /**< the world's */
  sim_entry *newest;
  sim_entry *existing; /**< newest first */
  sim_session *sessions;
  bool wiped;                        /**< newer ones may have smaller zxids */
  int64_t zxid;                      /**< of the last transaction told */
  unsigned dirs_vanished[SIM_MOST_LOCKS]; /**< how often each directory went */
  int64_t denied_us[SIM_MOST_LOCKS]; /**< until when permissions were missing
                             there, or INT64_MAX: they are */
  sim_entry *being_deleted; /**< deleted by the transaction being told */
} sim_history;

/** In the names of nodes that another library makes. */
#define SIM_FOREIGN "-0000-4000-8000-"

/** What is watched beside the locks: the directory of requests by actors, and
    SIM_LIMIT. */
#define SIM_REQUEST_DIR "/raw"
/** In it, the node that is a lock. */
#define SIM_SINGLE_PATH SIM_REQUEST_DIR "/single"

void sim_history_free(sim_history *l);
/** NULL: it is of no interest. */
sim_entry *sim_history_add_node(sim_history *l, const sim_node *node);
/** `being_deleted` has it from now on, until its transaction is known as a
 * whole. */
void sim_history_delete_node(sim_history *l, const sim_node *node,
                             int64_t zxid);
/** After all it made and removed. */
void sim_history_committed(sim_history *l, const sim_commit *c,
                           const sim_tree *committed);
void sim_history_end_session(sim_history *l, int64_t session, bool expired);

/** The session, made if it is new. */
sim_session *sim_history_session(sim_history *l, int64_t id);

/** The age of the ensemble that executed `zxid`: a wipe ends one. */
static inline int64_t sim_incarnation(int64_t zxid)
{
  return (zxid >> 32) / SIM_INCARNATION_EPOCHS;
}
/** Whether it stood when `zxid` had been executed, in the same age. */
static inline bool sim_entry_existed_at(const sim_entry *e, int64_t zxid)
{
  return sim_incarnation(e->created_zxid) == sim_incarnation(zxid) &&
         e->created_zxid <= zxid &&
         (e->deleted_zxid == 0 || e->deleted_zxid > zxid);
}

/** The node that stands at a path, or stood at `zxid`. */
sim_entry *sim_history_find(const sim_history *l, const char *path);
sim_entry *sim_history_at(const sim_history *l, const char *path, int64_t zxid);
/** The one that a transaction made. */
sim_entry *sim_history_by_zxid(const sim_history *l, int64_t created_zxid);
/** Its data when `zxid` had been executed. */
const sim_version *sim_version_at(const sim_entry *e, int64_t zxid);

/** Whether it keeps `own` out: it stands before it and was there first, or can
    have come there later, as the reader that a writer has turned into; and they
    are not both readers. */
bool sim_excludes(const sim_entry *rival, const sim_entry *own);
/** Whether it is a child of SIM_RAW. */
static inline bool sim_is_request_node(const sim_entry *e)
{
  return e->lock_index == SIM_NO_LOCK && e->dir_len > 0;
}
/** Whether they have the same key. */
bool sim_same_contender(const sim_entry *a, const sim_entry *b);

#endif
