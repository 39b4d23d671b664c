/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_ERRAND_H
#define LK_SYNC_ERRAND_H

#include "base/sized.h"
#include "sync/client.h"

struct lk_sync_cancel {
  lk_sync_client *client;
  atomic_bool set;
};

/**
 * What one caller waits for, and the handle's thread does. It ends once; its
 * memory may be gone as soon as it has.
 */
typedef struct lk_errand {
  lk_task task;
  lk_sync_client *client;
  lk_sync_cancel *cancel;
  int64_t deadline_ms; /**< on the client's clock; INT64_MAX: none */
  void (*begin)(struct lk_errand *e);

  /* Of the handle's thread. */
  void (*cut)(struct lk_errand *e, int err); /**< end it early */
  lk_link link;                              /**< in lk_sync_client.errands */
  lk_timer timer;

  /* Under the client's mutex. */
  pthread_cond_t end;
  bool ended;
  int err;
} lk_errand;

/* ---- for the caller ------------------------------------------------------ */

/** Copy a caller's struct, which begins with its size; `from` NULL: all its
    options are 0. LK_ERR_BAD_ARGUMENT: the client's log says why. */
int lk__sync_take(lk_sync_client *c, const lk_sized *what, void *out,
                  const void *from);
/** The same for the options of a call. */
int lk__sync_take_call(lk_sync_client *c, lk_sync_call *out,
                       const lk_sync_call *call);
/** Prepare one; `call` was copied; NULL: without end. 0, LK_ERR_BAD_ARGUMENT,
    NO_MEMORY: then there is nothing to be destroyed. */
int lk__errand_init(lk_errand *e, lk_sync_client *c, const lk_sync_call *call);
/** The same with the caller's own options, which may not ask for a watch. */
int lk__errand_open(lk_errand *e, lk_sync_client *c, const lk_sync_call *call);
/** Have it begun and wait until it has ended. Within a call, lk__sync_enter().
 */
int lk__errand_wait(lk_errand *e, void (*begin)(lk_errand *e));
void lk__errand_destroy(lk_errand *e);
/** A call that is only this, and cannot be cut short. */
int lk__errand_do(lk_errand *e, lk_sync_client *c, void (*begin)(lk_errand *e));

/* ---- for the handle's thread --------------------------------------------- */

/** Why it need not begin at `now`: 0, LK_ERR_CLOSED, CANCELLED, DEADLINE. */
int lk__errand_hindrance(const lk_errand *e, int64_t now);
/** The clock of deadlines, read now. */
static inline int64_t lk__errand_clock(const lk_errand *e)
{
  return lk_client_clock(e->client->client);
}
/** It can be cut short by a cancel from now on. */
void lk__errand_stay(lk_errand *e, void (*cut)(lk_errand *e, int err));
/** And by its deadline, which nobody else sees to. */
void lk__errand_watch(lk_errand *e);
void lk__errand_end(lk_errand *e, int err);
static inline bool lk__errand_stays(const lk_errand *e)
{
  return e->cut != NULL;
}
/** Cut short those whose cancel is set. */
void lk__errands_cancel(lk_sync_client *c);

#endif
