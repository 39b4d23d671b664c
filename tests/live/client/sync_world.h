/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_CLIENT_SYNC_WORLD_H
#define LK_LIVE_CLIENT_SYNC_WORLD_H

/**
 * @file
 * One real server, and for each test two clients: `here` with the lock `lock`,
 * and `there` with the lock `rival` for the same path. `lock_events` counts the
 * events of `lock`.
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

/** The number of events of each type. */
typedef struct event_counts {
  atomic_uint waiting, unsure, renewed, lost;
  atomic_int lost_err; /**< the error of the last event `lost` */
} event_counts;

extern event_counts lock_events;

/** A call with a timeout of ten seconds, for calls that should be fast. */
extern const lk_sync_call ten_seconds;

void sync_world_set_up(void);
void sync_world_tear_down(void);
/** Free `here` and `lock`, and make new ones with this session timeout. */
void renew_here_with_timeout(int32_t ms);
/** Wait until `*count` is not 0; fails after ten seconds. */
void wait_for_event(const atomic_uint *count);

/** The number of contender nodes of the lock, as `there` sees them. */
size_t count_contenders(void);
/** Delete all contender nodes of the lock with the client `there`. */
void delete_contender_nodes(void);
/** Whether a descriptor is readable. */
bool is_readable(int fd);

/** Another handle of `l`, whose events are counted in `lock_events`, too. */
lk_sync_lock *clone_of(lk_sync_lock *l);

/* For waiter_start(); `arg` is a lk_sync_call, or NULL. The first two use a
   clone of `lock`, and free it. */
int acquire_clone(void *arg);
int try_clone(void *arg);
int acquire_rival(void *arg);

/* Parts of this program. */
TCase *call_tests(void);
TCase *lock_tests(void);
TCase *lease_tests(void);
TCase *thread_tests(void);
TCase *kind_tests(void);

#endif
