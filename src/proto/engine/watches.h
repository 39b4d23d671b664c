/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_WATCHES_H
#define LK_PROTO_ENGINE_WATCHES_H

/**
 * @file
 * The watches of a client: their handles, the table of watches by path, the
 * watches that an event concerns, and reporting it to them.
 */

#include <latchkey/client.h>

#include "base/list.h"
#include "base/map.h"

/** Kinds of watches, in the order of the lists in setWatches2. The first three
    are one-shot watches, the others are persistent watches (addWatch). */
typedef enum lk_watch_kind {
  LK_WATCH_KIND_DATA,
  LK_WATCH_KIND_EXIST,
  LK_WATCH_KIND_CHILD,
  LK_WATCH_KIND_PERSISTENT, /**< LK_WATCH_PERSISTENT */
  LK_WATCH_KIND_RECURSIVE,  /**< LK_WATCH_RECURSIVE */
  LK_WATCH_KINDS,
  LK_ONE_SHOT_KINDS = LK_WATCH_KIND_PERSISTENT /**< number of one-shot kinds */
} lk_watch_kind;

/** Whether `kind` is a persistent one: such watches stay after an event. */
static inline bool lk__watch_stays(lk_watch_kind kind)
{
  return kind >= LK_WATCH_KIND_PERSISTENT;
}

/** The value in lk_watched.missing_after of watches that are registered. */
#define LK_REGISTERED INT64_MAX

/** All watches of one path. It exists as long as one of the watches exists. */
typedef struct lk_watched {
  lk_map_node map;               /**< in lk_watches.paths */
  lk_link kinds[LK_WATCH_KINDS]; /**< standing watches of each kind */
  lk_link pending;               /**< watches whose request has no reply */
  uint32_t pending_count[LK_WATCH_KINDS]; /**< pending watches of each kind */
  uint32_t unsent_count[LK_WATCH_KINDS]; /**< pending watches of each kind whose
                                            request waits for a connection */
  /** The zxid after which the server may have reported no changes to the
      standing watches of the kind; LK_REGISTERED: it reports all changes. See
      set_watches.h. */
  int64_t missing_after[LK_WATCH_KINDS];
  bool asked[LK_WATCH_KINDS]; /**< the setWatches under way contain the kind */
  uint32_t last_request; /**< number of the last setWatches under way with this
                              path; see set_watches.h */
  size_t refs;     /**< watches that point here, also those whose last event is
                        being reported */
  size_t path_cap; /**< bytes of memory at `path` */
  char *path;      /**< server path, NUL-terminated */
  struct lk_watched *spare; /**< the next one in lk_watches.spare_paths */
} lk_watched;

/** The watches whose `map` is this node, of which it is the first member. */
static inline lk_watched *lk__watched_of_node(lk_map_node *node)
{
  return (lk_watched *)(void *)node;
}

/**
 * A watch. It is in one of three stages:
 *
 * - pending: its request has no reply. `standing` is clear, and `link` is in
 *   lk_watched.pending. `cb` is NULL if the watch was cancelled.
 * - standing: it gets events. `standing` is set, `link` is in lk_watched.kinds,
 *   and `cb` is not NULL.
 * - ending: it gets its last event next, or is getting it. `link` is in no
 *   list. `cb` is NULL during the callback. In lk_watches.ended, `standing` is
 *   clear.
 *
 * `unsent` is set only in a pending watch: its request is in the list `waiting`
 * or was set aside from there. `remove_at_reply` is set only in a pending watch
 * with `cb` NULL.
 * `reported_too_early` is set only in a persistent watch that has stood.
 * `relies` concerns pending one-shot watches, and is chosen when the request is
 * sent.
 */
struct lk_watch {
  lk_link link; /**< in a list of `on`, or in that of unused ones; in no list
                     while its last event is reported */
  lk_link event_link; /**< in a list of watches that get an event, or in none */
  lk_watched *on;
  lk_watch_cb cb; /**< NULL: cancelled while its request was under way */
  void *arg;
  lk_watch_kind kind;
  uint32_t slot;         /**< its index in the table of handles */
  uint32_t serial;       /**< the serial number in its handle */
  bool until_disconnect; /**< it ends when the connection is lost */
  bool standing;         /**< its request succeeded, and it gets events */
  bool
      unsent; /**< its request waits for a connection; lk__watch_set_unsent() */
  bool remove_at_reply;    /**< it was cancelled before its request had a reply:
                                remove it on the server when the reply comes */
  bool reported_too_early; /**< a persistent watch: it was not registered when
                                LK_EVENT_REREGISTERED was reported, so the event
                                is reported again */
  bool outside_chroot;     /**< events have the path on the server */
  bool relies; /**< a one-shot watch whose request has no reply: the server
                    registers no watch for it, or removes it. So it ends with
                    the reply if no persistent watch serves it then. */
};

/** A slot of the table of handles. */
typedef struct lk_watch_slot {
  lk_watch *watch; /**< NULL: the slot is free */
  uint32_t next;   /**< of a free slot: index of the next free one */
} lk_watch_slot;

/** The watch table of a client. Paths in it are server paths. */
typedef struct lk_watches {
  const lk_mem *mem;
  lk_map paths;
  size_t standing;  /**< number of standing watches */
  size_t added;     /**< number of standing persistent and recursive watches */
  size_t recursive; /**< number of standing recursive watches */
  size_t longest_recursive;   /**< no path of these is longer; 0: none stands */
  bool set_watches_under_way; /**< and none of these setWatches was throttled */
  lk_link ended; /**< one-shot watches of which the server has none, by
                      `event_link`; see lk__watches_report_ended() */
  lk_watched *spare_paths; /**< unused ones; NULL: none */
  size_t nspare_paths;
  lk_link spare_watches; /**< unused ones */
  size_t nspare_watches;
  lk_watch_slot *slots; /**< the table of handles */
  uint32_t nslots;
  uint32_t free_slot; /**< index of a free slot; `nslots`: none is free */
  uint32_t serial;    /**< serial number of the last handle */
} lk_watches;

/** @return false: no memory. */
bool lk__watches_init(lk_watches *ws, const lk_mem *mem);
/** Free the table, in which no watch may be left. */
void lk__watches_free(lk_watches *ws);

/**
 * The handle that a program gets for a watch. It is no address, but the index
 * of a slot and a serial number. So the handle of a watch that has ended is
 * recognised, until 2^32 more watches were created.
 */
lk_watch *lk__watch_handle(const lk_watch *w);
/** The watch of a handle; NULL: the watch has ended. */
lk_watch *lk__watch_of(const lk_watches *ws, const lk_watch *handle);

/** Create a watch whose request is about to be sent; NULL: no memory. The watch
    of an exists request has the kind DATA here; lk__watch_stand() makes that
    EXIST if the node does not exist. */
lk_watch *lk__watch_new(lk_watches *ws, lk_bytes path, lk_watch_kind kind,
                        const lk_call *call);
/** Note that the request of the watch waits for a connection, or that it does
    not wait any more. */
void lk__watch_set_unsent(lk_watch *w);
void lk__watch_set_sent(lk_watch *w);
/** The request has succeeded: from now on the watch is standing and gets
    events. */
void lk__watch_stand(lk_watches *ws, lk_watch *w, lk_watch_kind kind);
/** Free the watch without invoking its callback. */
void lk__watch_drop(lk_watches *ws, lk_watch *w);

/** The watches of a path; NULL: there are none. */
lk_watched *lk__watched_find(const lk_watches *ws, lk_bytes path);
/** Add and drop a reference, which keeps the lk_watched even if its path has no
    watches any more. */
void lk__watched_ref(lk_watched *on);
void lk__watched_unref(lk_watches *ws, lk_watched *on);

/** The `w` with which lk__watched_has() counts all watches. */
#define LK_ANY_WATCH ((const lk_watch *)NULL)

/** Whether the path has a watch of `kind`, standing or not, other than `w`. */
bool lk__watched_has(const lk_watched *on, lk_watch_kind kind,
                     const lk_watch *w);
/** Whether the server has a persistent watch on the path that reports all
    events that a one-shot watch of `kind` waits for. */
bool lk__watched_serves(const lk_watched *on, lk_watch_kind kind);
/** Whether it has such a watch, or has been sent a request for one. Then a
    request that is sent now must not set a watch of `kind`. */
bool lk__watched_will_serve(const lk_watches *ws, const lk_watched *on,
                            lk_watch_kind kind);

/** The server has no watch for `w`, a standing one-shot watch: let it end. */
void lk__watch_end(lk_watches *ws, lk_watch *w);
/** The server has registered a persistent watch of kind `staying` on the path:
    let the one-shot watches end of which it does not report all events. */
void lk__watched_end_replaced(lk_watches *ws, lk_watched *on,
                              lk_watch_kind staying);
/** A removeWatches was sent that removes all watches of the path from the
    server: let all one-shot watches of earlier requests end. */
void lk__watched_end_removed(lk_watches *ws, lk_watched *on);

/** Whether the server's watch of `w` may be removed: no other watch of the
    client needs it. */
bool lk__watch_is_removable(const lk_watch *w);

/* The following functions add watches to `out`, a list of watches that get an
   event. */

/** Add the watches that get an event of `type` on `path`. One-shot watches
    leave their lists. */
void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out);
/** Add all watches but pending ones. They leave their lists. */
void lk__watches_take_all(lk_watches *ws, lk_link *out);
/** Add the watches that end with the connection, which leave their lists: those
    with until_disconnect, one-shot watches on the path of a persistent watch,
    and those that were about to end. */
void lk__watches_take_disconnected(lk_watches *ws, lk_link *out);
/** Add the standing persistent watches, which leave their lists and are
    standing no more. */
void lk__watches_take_staying(lk_watches *ws, lk_link *out);

/** Report an event on `path` to the watches in `list`; if path.at is NULL, the
    path is that of each watch. One-shot watches are dropped then, and at
    LK_EVENT_ENDED all watches. */
void lk__watches_notify(lk_client *c, lk_link *list, lk_event_type type,
                        lk_bytes path, int err);
/** Report LK_EVENT_ENDED to the watches in `list`. */
void lk__watches_notify_ended(lk_client *c, lk_link *list, int err);
/** Report it, with LK_ERR_NO_WATCHER, to the watches in lk_watches.ended. This
    is called before the next reply or event is processed, which may rely on
    these watches. */
static inline void lk__watches_report_ended(lk_client *c, lk_watches *ws)
{
  if (!lk__list_empty(&ws->ended))
    lk__watches_notify_ended(c, &ws->ended, LK_ERR_NO_WATCHER);
}
/** Report LK_EVENT_REREGISTERED to all persistent watches. */
void lk__watches_notify_reregistered(lk_client *c);
/** Report LK_EVENT_REREGISTERED again to the persistent watches that got it
    before they were registered (lk_watch.reported_too_early), and are
    registered now. */
void lk__watches_notify_reregistered_late(lk_client *c);

#endif
