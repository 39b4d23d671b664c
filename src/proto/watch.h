/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WATCH_H
#define LK_PROTO_WATCH_H

#include <latchkey/client.h>

#include "base/list.h"
#include "base/map.h"

/** What a one-shot watch waits for; the lists of a setWatches. */
typedef enum lk_watch_kind {
  LK_WATCH_DATA,
  LK_WATCH_EXIST,
  LK_WATCH_CHILD,
  LK_WATCH_NKINDS
} lk_watch_kind;

/** All watches of one path. Lives as long as one of them does. */
typedef struct lk_watched {
  lk_map_node map;
  lk_link kinds[LK_WATCH_NKINDS]; /**< standing watches */
  lk_link pending;                /**< watches whose request is under way */
  size_t refs; /**< watches that point here, also those firing */
  size_t path_cap;
  char *path;               /**< server path, NUL-terminated */
  struct lk_watched *spare; /**< next in the list of those to be used again */
} lk_watched;

struct lk_watch {
  lk_link link; /**< in a list of `on`, of what fires, or of the spares */
  lk_watched *on;
  lk_watch_cb cb; /**< NULL: cancelled while its request was under way */
  void *arg;
  lk_watch_kind kind;
  bool until_break;
  bool standing; /**< its request succeeded */
  bool remove;   /**< cancelled while under way: tell the server */
};

/** The watch table of a client. Paths in it are server paths. */
typedef struct lk_watches {
  const lk_mem *mem;
  lk_map paths;
  size_t standing;
  lk_watched *spare_paths;
  lk_link spare_watches;
  size_t spares;
} lk_watches;

bool lk__watches_init(lk_watches *ws, const lk_mem *mem);
/** All watches must be gone. */
void lk__watches_free(lk_watches *ws);

/** A watch of which the request is about to be sent; NULL: no memory. `kind`
    DATA or CHILD; lk__watch_stand() can turn DATA into EXIST. */
lk_watch *lk__watch_new(lk_watches *ws, lk_bytes path, lk_watch_kind kind,
                        const lk_call *call);
/** Its request succeeded: from now on events find it. */
void lk__watch_stand(lk_watches *ws, lk_watch *w, lk_watch_kind kind);
/** End it without a call. */
void lk__watch_drop(lk_watches *ws, lk_watch *w);

/** Whether the server's watch behind `w` serves nobody else here. */
bool lk__watch_alone(const lk_watch *w);

/** Move the watches that an event of `type` on `path` fires to `out`. */
void lk__watches_match(lk_watches *ws, int32_t type, lk_bytes path,
                       lk_link *out);
/** Move the standing watches to `out`: all, or those marked until-break. */
void lk__watches_take(lk_watches *ws, bool all, lk_link *out);

#endif
