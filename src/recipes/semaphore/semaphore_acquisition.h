/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H
#define LK_RECIPES_SEMAPHORE_SEMAPHORE_ACQUISITION_H

#include "recipes/lease/session_lease.h"

/**
 * @file
 * An attempt at permits of a semaphore: a place in the queue of `locks`, and a
 * node in `leases` for each permit. The last of these is the one that counts:
 * it is made after the others, lists them all, and waits until they are not too
 * many. They are kept when it is granted and the place in the queue is, too.
 */

/** What is remembered between attempts. */
typedef struct lk_semaphore_plan {
  lk_contender_config place;
  lk_contender_config permit; /**< of those that do not count */
  lk_contender_config count;  /**< of the one that does */
  size_t take;
  int32_t limit;          /**< how many there are, as last known */
  const char *limit_path; /**< or NULL */
  /** kazoo's: `limit_path` is the directory of the permits, made with this, the
      number in decimal; and it must not say another. `at` NULL: it counts. */
  lk_bytes limit_text;
  bool fail_on_expiry;
  unsigned *failures; /**< of asking for all at once, in a row */
} lk_semaphore_plan;

typedef struct lk_semaphore_acquisition lk_semaphore_acquisition;

typedef struct lk_semaphore_permit {
  lk_semaphore_acquisition *of;
} lk_semaphore_permit;

struct lk_semaphore_acquisition {
  lk_acquisition acquisition; /* its parts are the permits */
  lk_session_lease *lease;
  size_t refs; /* the owner's, permits' that are leaving, requests, callers */
  const lk_acquisition_callbacks *callbacks;
  void *owner_arg;
  lk_semaphore_plan *config;
  lk_contender *place; /* in the queue; NULL: none */
  bool first;          /* the place is the first */
  bool over;           /* no more is wanted */
  bool queued;         /* somebody was ahead */
  bool told_waiting;
  bool unsure;    /* told */
  bool revoked;   /* told */
  size_t leaving; /* permits that will tell when they are gone */
  int left_err;   /* why one of them stays */
  unsigned misses;
  bool limit_known;
  bool limit_moved;      /* and has changed since, or may have */
  unsigned limit_misses; /* creates in a row that met no directory */
  bool limit_later;      /* the next create comes after a pause */
  lk_watch *limit_watch;
  lk_timer limit_rest;  /**< ends a pause before it is asked for again */
  lk_contender **parts; /* behind the permits */
  lk_semaphore_permit permits[];
};

/** Prepare an attempt; NULL: no memory. `config` must stay until it is stopped,
    has ended or was lost. */
lk_semaphore_acquisition *
lk__semaphore_acquisition_new(lk_session_lease *k, lk_semaphore_plan *config,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

/* ---- limit.c: the node that says how many there are --------------------- */

/** Ask for it, if there is one: 0, or why a request was refused. */
int lk__permit_limit_read(lk_semaphore_acquisition *p);
void lk__permit_limit_forget(lk_semaphore_acquisition *p);
/** `limit_rest` has fired. */
void lk__permit_limit_on_timer(lk_client *c, void *arg);

/* ---- between permits.c and limit.c -------------------------------------- */

void lk__semaphore_ref(lk_semaphore_acquisition *p);
void lk__semaphore_unref(lk_semaphore_acquisition *p);
void lk__semaphore_end(lk_semaphore_acquisition *p, int err);
/** So many there are now. */
void lk__semaphore_set_limit(lk_semaphore_acquisition *p, int32_t limit);

/* ---- between permits.c and leases.c -------------------------------------- */

/** Ask for all permits that are lacking. */
void lk__permit_nodes_create(lk_semaphore_acquisition *p);
/** Want them no more; `wait`: and tell when they are gone. */
void lk__permit_nodes_stop(lk_semaphore_acquisition *p, bool wait);
/** The same, and forget them. */
void lk__permit_nodes_drop(lk_semaphore_acquisition *p);

/** See whether all of it is there. */
void lk__semaphore_try_grant(lk_semaphore_acquisition *p);
/** Place or permit ended with `err`. */
void lk__semaphore_failed(lk_semaphore_acquisition *p, int err);
/** Something of it was deleted, or went with its session: begin anew. */
void lk__semaphore_begin_again(lk_semaphore_acquisition *p, int err);
void lk__semaphore_notify(lk_semaphore_acquisition *p, const lk_notice *notice);
/** First, and not enough permits. */
void lk__semaphore_notify_first(lk_semaphore_acquisition *p);
/** It was asked to let go of a part, perhaps before it had the whole. */
void lk__semaphore_notify_revoked(lk_semaphore_acquisition *p);

#endif
