/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_SYNC_WORLD_H
#define LK_LIVE_CLIENT_SYNC_WORLD_H

/**
 * @file
 * One real server; for each test a handle `here` with `lock`, and another one,
 * `there`, with `rival` for the same path. What `lock` tells is kept in `told`.
 */

#include "support/real_server.h"
#include "support/waiters.h"

#include <check.h>
#include <stdatomic.h>

extern server zk;
extern lk_sync_client *here;
extern lk_sync_client *there;
extern lk_sync_lock *lock;
extern lk_sync_lock *rival;

/** What the callbacks of `lock` were told, counted. */
typedef struct telling {
  atomic_uint waiting, unsure, held, lost;
  atomic_int lost_err;
  atomic_ullong token; /**< of the last one with a token */
} telling;

extern telling told;

/** Ten seconds, for calls that should not take long. */
extern const lk_sync_call soon;

void sync_world_set_up(void);
void sync_world_tear_down(void);
/** `here` and `lock` anew, with another session timeout. */
void sync_world_timeout(int32_t ms);
/** Until it is not 0 any more; fails after ten seconds. */
void sync_world_await(const atomic_uint *count);

/** The children of the lock's path, by `there`. */
size_t contenders(void);
/** Delete them all, as an operator would. */
void evict_all(void);
/** Whether a descriptor is readable. */
bool readable(int fd);

/* For waiter_start(); `arg` is a lk_sync_call, or NULL. */
int take_lock(void *arg);
int try_lock(void *arg);
int take_rival(void *arg);

/* Parts of this program. */
TCase *call_tests(void);
TCase *lock_tests(void);
TCase *lease_tests(void);
TCase *thread_tests(void);
TCase *kind_tests(void);

#endif
