/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H
#define LK_RECIPES_MULTILOCK_MULTILOCK_ACQUISITION_H

#include "recipes/lease/session_lease.h"

/**
 * @file
 * An attempt at several locks at once: a node in each queue, made in one
 * transaction. Where one of them has to wait, those after it are given back, so
 * that the nodes it has are always those of the first members; when it is
 * granted, the rest is asked for again: the next round.
 */

typedef struct lk_multilock_plan {
  lk_contender_config *members; /**< in the order in which they are taken */
  size_t count;
  bool once; /**< end with LK_ERR_BUSY instead of waiting */
  bool fail_on_expiry;
} lk_multilock_plan;

typedef struct lk_multilock_acquisition lk_multilock_acquisition;

/** One node of it. */
typedef struct lk_multilock_part {
  lk_multilock_acquisition *team;
  size_t index;
} lk_multilock_part;

struct lk_multilock_acquisition {
  lk_acquisition
      acquisition; /* of the contends there are: those of the first mates */
  lk_session_lease *lease;
  size_t refs; /* the owner's, a multi's, callers, and those of nodes that will
                  tell when they are gone */
  const lk_acquisition_callbacks *callbacks;
  void *owner_arg;
  lk_multilock_plan *config;
  bool over;      /* no more is wanted */
  bool unsure;    /* told */
  bool revoked;   /* told */
  bool listens;   /* to the client */
  bool suspended; /* told of this break */
  bool asked;     /* a round's multi is under way */
  bool again;     /* after it all is to be begun anew */
  bool parents;   /* the next round makes directories first */
  size_t fresh;   /* first mate of the newest round */
  size_t orphans; /* nodes given back that may exist: no round before they are
                     gone, since it would find them ahead of its own */
  size_t leaving; /* mates that will tell when they are gone */
  int left_err;   /* why one of them stays */
  unsigned misses;
  unsigned missing; /* rounds in a row that met a missing directory */
  lk_listener listener;
  lk_timer rest;
  lk_contender **parts; /* behind the mates */
  lk_multilock_part mates[];
};

/** Prepare an attempt; NULL: no memory. `config` must stay until it is stopped,
    has ended or was lost. */
lk_multilock_acquisition *
lk__multilock_acquisition_new(lk_session_lease *k, lk_multilock_plan *config,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg);

/* ---- between team.c and round.c ---------------------------------------- */

void lk__multilock_ref(lk_multilock_acquisition *t);
void lk__multilock_unref(lk_multilock_acquisition *t);
/** Give back the nodes of mate `from` and those after it. */
void lk__multilock_drop_from(lk_multilock_acquisition *t, size_t from);
/** It ends by itself: not granted, or lost. */
void lk__multilock_end(lk_multilock_acquisition *t, int err);
lk_contender *lk__multilock_new_contender(lk_multilock_acquisition *t,
                                          size_t index);
/** Ask for the nodes that are lacking, if that can be done now. */
void lk__multilock_begin_transaction(lk_multilock_acquisition *t);

#endif
