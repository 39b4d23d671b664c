/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_SEMAPHORE_PERMITS_H
#define LK_RECIPES_SEMAPHORE_PERMITS_H

#include "recipes/lease/session_lease.h"

/**
 * @file
 * An attempt at permits of a semaphore: a place in the queue of `locks`, and a
 * node in `leases` for each permit. The last of these is the one that counts:
 * it is made after the others, lists them all, and waits until they are not too
 * many. They are kept when it is granted and the place in the queue is, too.
 */

/** What is remembered between attempts. */
typedef struct lk_permits_config {
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
} lk_permits_config;

typedef struct lk_permits lk_permits;

typedef struct lk_permit {
  lk_permits *of;
} lk_permit;

struct lk_permits {
  lk_acquisition attempt; /* its parts are the permits */
  lk_keeper *lease;
  size_t refs; /* the owner's, permits' that are leaving, requests, callers */
  const lk_acquisition_callbacks *owner;
  void *owner_arg;
  lk_permits_config *config;
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
  lk_permit permits[];
};

/** Prepare an attempt; NULL: no memory. `config` must stay until it is stopped,
    has ended or was lost. */
lk_permits *lk__permits_new(lk_keeper *k, lk_permits_config *config,
                            const lk_acquisition_callbacks *owner, void *arg);

/* ---- limit.c: the node that says how many there are --------------------- */

/** Ask for it, if there is one: 0, or why a request was refused. */
int lk__limit_ask(lk_permits *p);
void lk__limit_forget(lk_permits *p);
/** `limit_rest` has fired. */
void lk__limit_fire(lk_client *c, void *arg);

/* ---- between permits.c and limit.c -------------------------------------- */

void lk__permits_ref(lk_permits *p);
void lk__permits_unref(lk_permits *p);
void lk__permits_end(lk_permits *p, int err);
/** So many there are now. */
void lk__permits_limit(lk_permits *p, int32_t limit);

/* ---- between permits.c and leases.c -------------------------------------- */

/** Ask for all permits that are lacking. */
void lk__leases_ask(lk_permits *p);
/** Want them no more; `wait`: and tell when they are gone. */
void lk__leases_stop(lk_permits *p, bool wait);
/** The same, and forget them. */
void lk__leases_drop(lk_permits *p);

/** See whether all of it is there. */
void lk__permits_try(lk_permits *p);
/** Place or permit ended with `err`. */
void lk__permits_failed(lk_permits *p, int err);
/** Something of it was deleted, or went with its session: begin anew. */
void lk__permits_again(lk_permits *p, int err);
void lk__permits_tell(lk_permits *p, const lk_notice *news);
/** First, and not enough permits. */
void lk__permits_tell_first(lk_permits *p);
/** It was asked to let go of a part, perhaps before it had the whole. */
void lk__permits_tell_revoked(lk_permits *p);

#endif
