/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCH_TABLE_H
#define LK_PROTO_ENGINE_WATCH_TABLE_H

#include <latchkey/client.h>

#include "base/list.h"
#include "base/map.h"

/** What a watch waits for; the lists of a setWatches2, in its order. The first
    three are of one shot, the others were added to stay. */
typedef enum lk_watch_kind {
  LK_WATCH_KIND_DATA,
  LK_WATCH_KIND_EXIST,
  LK_WATCH_KIND_CHILD,
  LK_WATCH_KIND_PERSISTENT, /**< LK_WATCH_PERSISTENT */
  LK_WATCH_KIND_RECURSIVE,  /**< LK_WATCH_RECURSIVE */
  LK_WATCH_KINDS,
  LK_WATCH_KIND_ADDED = LK_WATCH_KIND_PERSISTENT /**< from here on they stay */
} lk_watch_kind;

static inline bool lk__watch_stays(lk_watch_kind kind)
{
  return kind >= LK_WATCH_KIND_ADDED;
}

/** In lk_watched.missing: no setWatches is due. */
#define LK_REGISTERED INT64_MAX

/** All watches of one path. Lives as long as one of them does. */
typedef struct lk_watched {
  lk_map_node map;
  lk_link kinds[LK_WATCH_KINDS];      /**< standing watches */
  lk_link pending;                    /**< watches whose request is under way */
  uint32_t under_way[LK_WATCH_KINDS]; /**< of those: of each kind */
  uint32_t held[LK_WATCH_KINDS];      /**< of those: whose request waits */
  bool covered[LK_WATCH_KIND_ADDED];  /**< some that stand may have no watch of
                                      their  own on the server */
  int64_t missing[LK_WATCH_KINDS]; /**< of those that stand: the zxid from which
                                         on the server at hand may have reported
                                         nothing, or LK_REGISTERED; rearm.h */
  bool asked[LK_WATCH_KINDS]; /**< the setWatches under way have that kind */
  uint32_t chunk;             /**< the last of them with this path */
  size_t refs;                /**< watches that point here, also those firing */
  size_t path_cap;
  char *path;               /**< server path, NUL-terminated */
  struct lk_watched *spare; /**< next in the list of those to be used again */
} lk_watched;

struct lk_watch {
  lk_link link; /**< in a list of `on`, or of the spares; in none once it is
                     taken, to be told its last */
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
  bool resumes;  /**< it stays, and LK_EVENT_RESUMED was reported too early: its
                      setWatches was throttled */
  bool covered;  /**< one-shot: perhaps without a watch of its own on the
                      server, where one that stays serves it */
  bool bare;     /**< one-shot, its request under way: what covered it failed or
                      was removed. What is sent later does not tell it all */
};

/** A place in the table of handles. */
typedef struct lk_watch_slot {
  lk_watch *watch; /**< NULL: free */
  uint32_t next;   /**< of a free one: the next free one */
} lk_watch_slot;

/** The watch table of a client. Paths in it are server paths. */
typedef struct lk_watches {
  const lk_mem *mem;
  lk_map paths;
  size_t standing;
  size_t added;     /**< of those: that stay */
  size_t recursive; /**< of those: for what is below, too */
  size_t adding;    /**< that stay, standing or with their request under way */
  bool on_its_way;  /**< setWatches are, and none of them was throttled */
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
 * What the user has of a watch is no pointer but its place in a table and a
 * serial number, so that a handle that outlives its watch is known by that and
 * never mistaken for another's, before 2^32 watches were made.
 */
lk_watch *lk__watch_handle(const lk_watch *w);
/** Give a new watch its handle. @return false: no memory, or too many. */
bool lk__watch_take_handle(lk_watches *ws, lk_watch *w);
void lk__watch_free_handle(lk_watches *ws, const lk_watch *w);
/** The watch of a handle; NULL: it has ended. */
lk_watch *lk__watch_of(const lk_watches *ws, const lk_watch *handle);

/** A watch of which the request is about to be sent; NULL: no memory. `kind`
    is not EXIST; lk__watch_stand() can turn DATA into EXIST. */
lk_watch *lk__watch_new(lk_watches *ws, lk_bytes path, lk_watch_kind kind,
                        const lk_call *call);
/** Its request, which is under way, waits for a connection; or has left. */
void lk__watch_hold(lk_watch *w, bool held);
/** Its request succeeded: from now on events find it. */
void lk__watch_stand(lk_watches *ws, lk_watch *w, lk_watch_kind kind);
/** It stands no more, and is not counted as one that does. */
void lk__watch_fall(lk_watches *ws, lk_watch *w);
/** End it without a call. */
void lk__watch_drop(lk_watches *ws, lk_watch *w);

/** The watches of a path, or NULL. */
lk_watched *lk__watched_find(const lk_watches *ws, lk_bytes path);
/** Keep the path's entry, also when its last watch goes; and let go of it. */
void lk__watched_ref(lk_watched *on);
void lk__watched_unref(lk_watches *ws, lk_watched *on);

/** Whether there is a watch of `kind`, standing or with its request under way,
    other than `w` (or NULL). */
bool lk__watched_has(const lk_watched *on, lk_watch_kind kind,
                     const lk_watch *w);
/** Whether a watch that stays is on the path, which tells all that a one-shot
    one of `kind` waits for. `sent`: those count of which the request has left;
    else also those of which it waits. One that stood before the connection
    counts if the server has registered it, or its setWatches is on its way. */
bool lk__watched_covers(const lk_watches *ws, const lk_watched *on,
                        lk_watch_kind kind, bool sent);

/** A persistent watch, which covers others, failed: those that wait for the
    reply to a request without a watch are not registered. `all`: it was
   removed, and with it what their requests register. */
void lk__watched_bare(lk_watched *on, bool all);

/** Whether no other watch of the client needs the server's watch of `w`. */
bool lk__watch_alone(const lk_watch *w);

/* Each adds watches to a list of those that get an event. */

/** Those that an event of `type` on `path` is for. One-shot ones stand no more.
 */
void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out);
/** The standing ones, all or those marked until-break; they stand no more. */
void lk__watches_take(lk_watches *ws, bool all, lk_link *out);
/** The standing ones that stay. */
void lk__watches_staying(lk_watches *ws, lk_link *out);
/** The same, and they stand no more. */
void lk__watches_take_staying(lk_watches *ws, lk_link *out);

#endif
