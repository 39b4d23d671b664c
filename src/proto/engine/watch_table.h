/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCH_TABLE_H
#define LK_PROTO_ENGINE_WATCH_TABLE_H

#include <latchkey/client.h>

#include "base/list.h"
#include "base/map.h"

/** Kinds of watches, in the order of the lists of setWatches2. The first three
    are one-shot watches, the others persistent ones (addWatch). */
typedef enum lk_watch_kind {
  LK_WATCH_KIND_DATA,
  LK_WATCH_KIND_EXIST,
  LK_WATCH_KIND_CHILD,
  LK_WATCH_KIND_PERSISTENT, /**< LK_WATCH_PERSISTENT */
  LK_WATCH_KIND_RECURSIVE,  /**< LK_WATCH_RECURSIVE */
  LK_WATCH_KINDS,
  LK_WATCH_KIND_ADDED =
      LK_WATCH_KIND_PERSISTENT /**< the first persistent one */
} lk_watch_kind;

static inline bool lk__watch_stays(lk_watch_kind kind)
{
  return kind >= LK_WATCH_KIND_ADDED;
}

/** In lk_watched.missing: no setWatches is due. */
#define LK_REGISTERED INT64_MAX

/** All watches of one path. Exists as long as one of them does. */
typedef struct lk_watched {
  lk_map_node map;
  lk_link kinds[LK_WATCH_KINDS];      /**< standing watches */
  lk_link pending;                    /**< watches whose request is under way */
  uint32_t under_way[LK_WATCH_KINDS]; /**< pending watches of each kind */
  uint32_t held[LK_WATCH_KINDS]; /**< pending watches whose request waits for a
                                      connection */
  bool covered[LK_WATCH_KIND_ADDED]; /**< some standing watches may have no
                                        watch of their own on the server */
  /** Of standing watches: the zxid after which the server may have reported
      nothing, or LK_REGISTERED; see set_watches.h. */
  int64_t missing[LK_WATCH_KINDS];
  bool asked[LK_WATCH_KINDS]; /**< the setWatches under way contain that kind */
  uint32_t chunk; /**< number of the last setWatches under way with this path */
  size_t refs;                /**< watches that point here, also those firing */
  size_t path_cap;
  char *path;               /**< server path, NUL-terminated */
  struct lk_watched *spare; /**< next in the list of those to be used again */
} lk_watched;

struct lk_watch {
  lk_link link; /**< in a list of `on`, or of the spares; in none while its last
                     event is reported */
  lk_link tell; /**< in a list of watches that get an event */
  lk_watched *on;
  lk_watch_cb cb; /**< NULL: cancelled while its request was under way */
  void *arg;
  lk_watch_kind kind;
  uint32_t slot;   /**< in the table of handles */
  uint32_t serial; /**< of its handle */
  bool until_disconnect;
  bool standing; /**< its request succeeded */
  bool held;     /**< its request waits for a connection; lk__watch_hold() */
  bool remove;   /**< cancelled while under way: remove it on the server */
  bool resumes;  /**< persistent: LK_EVENT_REREGISTERED was reported too early,
                      since its setWatches was throttled */
  bool covered;  /**< one-shot: a persistent watch may serve it, without a watch
                      of its own on the server */
  bool bare;     /**< one-shot, its request under way: the persistent watch that
                      covered it failed or was removed, and later ones do not
                      report earlier events */
};

/** A slot of the table of handles. */
typedef struct lk_watch_slot {
  lk_watch *watch; /**< NULL: free */
  uint32_t next;   /**< of a free one: the next free one */
} lk_watch_slot;

/** The watch table of a client. Paths in it are server paths. */
typedef struct lk_watches {
  const lk_mem *mem;
  lk_map paths;
  size_t standing;
  size_t added;     /**< standing persistent and recursive watches */
  size_t recursive; /**< standing recursive watches */
  size_t adding;   /**< persistent ones, standing or with a request under way */
  bool on_its_way; /**< setWatches are under way, and none was throttled */
  lk_watched *spare_paths;
  size_t nspare_paths;
  lk_link spare_watches;
  size_t spares;
  lk_watch_slot *slots;
  uint32_t nslots;
  uint32_t free_slot; /**< `nslots`: none is free */
  uint32_t serial;    /**< of the last handle */
} lk_watches;

bool lk__watches_init(lk_watches *ws, const lk_mem *mem);
/** All watches must be gone. */
void lk__watches_free(lk_watches *ws);

/**
 * The handle that a user gets for a watch: not a pointer, but a slot of the
 * table and a serial number. A handle of a watch that has ended is recognised,
 * until 2^32 more watches were created.
 */
lk_watch *lk__watch_handle(const lk_watch *w);
/** Give a new watch its handle. @return false: no memory, or too many. */
bool lk__watch_take_handle(lk_watches *ws, lk_watch *w);
void lk__watch_free_handle(lk_watches *ws, const lk_watch *w);
/** The watch of a handle; NULL: it has ended. */
lk_watch *lk__watch_of(const lk_watches *ws, const lk_watch *handle);

/** Create a watch whose request is about to be sent; NULL: no memory. `kind` is
    not EXIST; lk__watch_stand() can turn DATA into EXIST. */
lk_watch *lk__watch_new(lk_watches *ws, lk_bytes path, lk_watch_kind kind,
                        const lk_call *call);
/** Set whether the request of the watch waits for a connection. */
void lk__watch_hold(lk_watch *w, bool held);
/** The request succeeded: from now on the watch gets events. */
void lk__watch_stand(lk_watches *ws, lk_watch *w, lk_watch_kind kind);
/** The watch gets no events any more. */
void lk__watch_fall(lk_watches *ws, lk_watch *w);
/** Free the watch; its callback is not invoked. */
void lk__watch_drop(lk_watches *ws, lk_watch *w);

/** The watches of a path, or NULL. */
lk_watched *lk__watched_find(const lk_watches *ws, lk_bytes path);
/** Add and drop a reference, which keeps the entry of a path without watches.
 */
void lk__watched_ref(lk_watched *on);
void lk__watched_unref(lk_watches *ws, lk_watched *on);

/** Whether there is a watch of `kind`, standing or with its request under way,
    other than `w` (or NULL). */
bool lk__watched_has(const lk_watched *on, lk_watch_kind kind,
                     const lk_watch *w);
/** Whether a persistent watch on the path reports all events that a one-shot
    watch of `kind` waits for. `sent`: only persistent watches count whose
    request was sent; else also those whose request waits. A watch that is older
    than the connection counts if the server has registered it, or its
    setWatches is under way. */
bool lk__watched_covers(const lk_watches *ws, const lk_watched *on,
                        lk_watch_kind kind, bool sent);

/** A persistent watch that covers others failed: one-shot watches whose request
    was sent without a watch are not registered. `all`: it was removed, and with
    it the watches that their requests register. */
void lk__watched_bare(lk_watched *on, bool all);

/** Whether no other watch of the client needs the server's watch of `w`. */
bool lk__watch_alone(const lk_watch *w);

/* These functions add watches to a list of those that get an event. */

/** The watches that get an event of `type` on `path`. One-shot watches fall. */
void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out);
/** The standing watches, all or only those until a disconnect; they fall. */
void lk__watches_take(lk_watches *ws, bool all, lk_link *out);
/** The standing persistent watches. */
void lk__watches_staying(lk_watches *ws, lk_link *out);
/** The same; they fall. */
void lk__watches_take_staying(lk_watches *ws, lk_link *out);

#endif
