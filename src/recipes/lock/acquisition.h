/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LOCK_ACQUISITION_H
#define LK_RECIPES_LOCK_ACQUISITION_H

/**
 * @file
 * What an owner has while it wants and holds something: an attempt. The usual
 * one is a single node in a single queue (contend.h). Others are made of
 * several such nodes, which are held together or not at all.
 */

#include <latchkey/client.h>

typedef struct lk_contend lk_contend;
typedef struct lk_attempt lk_attempt;

/** News for the owner, besides its callbacks. */
typedef enum lk_news_type {
  LK_NEWS_WAITING,    /* position, node */
  LK_NEWS_PLACE_LOST, /* err */
  LK_NEWS_MIXED,      /* node */
  LK_NEWS_UNWATCHED,
  LK_NEWS_NEAR_LIMIT, /* the counter of the queue nears its end */
  LK_NEWS_SUSPENDED,  /* deadline_ms */
  LK_NEWS_UNSURE,     /* deadline_ms */
  LK_NEWS_PROVEN,     /* deadline_ms */
  LK_NEWS_REVOKED
} lk_news_type;

typedef struct lk_news {
  lk_news_type type;
  int err;
  size_t position;
  const char *node; /**< full path, borrowed */
  int64_t deadline_ms;
} lk_news;

/** Who wants the lock. Each of these may free everything. */
typedef struct lk_owner {
  void (*granted)(void *arg);
  /** It will not be granted; the attempt cares for its node by itself. */
  void (*ended)(void *arg, int err);
  /** It was granted and is no longer held. */
  void (*lost)(void *arg, int err);
  void (*news)(void *arg, const lk_news *news);
  /** After lk__contend_stop() with `tell`: own is gone, or (`err`) stays. */
  void (*gone)(void *arg, int err);
} lk_owner;

typedef struct lk_attempt_kind {
  /** Begin. The owner may be told of an end before this returns. */
  void (*begin)(lk_attempt *a);
  /** Want it no more: cancel, give up or release. The owner is told nothing,
      except `gone` if `tell` is set. */
  void (*stop)(lk_attempt *a, bool tell);
  /** Nobody wants to be told `gone` any more. */
  void (*disown)(lk_attempt *a);
  void (*ref)(lk_attempt *a);
  void (*unref)(lk_attempt *a);
} lk_attempt_kind;

struct lk_attempt {
  const lk_attempt_kind *kind;
  bool whole;         /**< its parts are all there are */
  lk_contend **parts; /**< that make it when all of them are held */
  size_t count;
  uint64_t turn; /**< how many have held by the same node before */
};

/** Whether it is held, as far as is known. */
bool lk__attempt_holds(const lk_attempt *a);
bool lk__attempt_unsure(const lk_attempt *a);
/** Until when it is certain that it is held. */
int64_t lk__attempt_deadline(const lk_attempt *a);
/** Its parts are all there is: it becomes whole if all of them are held, none
    is unsure, and the lease is long enough for a grant. If only that is
    missing, LK_NEWS_PROVEN follows when it is. Whether it has become whole. */
bool lk__attempt_try(lk_attempt *a);
/** The fencing token; of several parts the largest. */
uint64_t lk__attempt_token(const lk_attempt *a);
/** The path of the first part's node, or NULL while there is none. */
const char *lk__attempt_node(const lk_attempt *a);

#endif
