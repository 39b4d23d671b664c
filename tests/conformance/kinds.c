/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/kinds.h"

#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static int make_mutex(locker *l, bool is_rival, const lk_lock_config *c)
{
  (void)is_rival;
  return lk_lock_new(&l->lock, l->p->link->client, "/c/x", c);
}

/* Makes the side `side_of`() of a read-write lock. */
static int make_side(locker *l, lk_lock *(*side_of)(const lk_rwlock *),
                     const lk_lock_config *c)
{
  int err = lk_rwlock_new(&l->rw, l->p->link->client, "/c/x", c);

  if (err == 0)
    l->lock = side_of(l->rw);
  return err;
}

/* The rival takes the write side, since readers do not exclude each other. */
static int make_read_side(locker *l, bool is_rival, const lk_lock_config *c)
{
  return make_side(l, is_rival ? lk_rwlock_write_side : lk_rwlock_read_side, c);
}

/* The rival takes the read side. */
static int make_write_side(locker *l, bool is_rival, const lk_lock_config *c)
{
  return make_side(l, is_rival ? lk_rwlock_read_side : lk_rwlock_write_side, c);
}

/* Makes a semaphore of which each holder takes all permits. */
static int make_semaphore(locker *l, const lk_lock_config *c, int32_t permits)
{
  const lk_semaphore_config options = {
      .size = sizeof options, .permits = permits, .take = permits};

  return lk_semaphore_new(&l->lock, l->p->link->client, "/c/x", c, &options);
}

static int make_one_permit(locker *l, bool is_rival, const lk_lock_config *c)
{
  (void)is_rival;
  return make_semaphore(l, c, 1);
}

static int make_two_permits(locker *l, bool is_rival, const lk_lock_config *c)
{
  (void)is_rival;
  return make_semaphore(l, c, 2);
}

static int make_multilock(locker *l, bool is_rival, const lk_lock_config *c)
{
  static const lk_multilock_part members[] = {{"/c/y", LK_MULTILOCK_MUTEX},
                                              {"/c/x", LK_MULTILOCK_MUTEX},
                                              {"/c/z", LK_MULTILOCK_MUTEX}};

  (void)is_rival;
  return lk_multilock_new(&l->lock, l->p->link->client, members, COUNT(members),
                          c, NULL);
}

/* The rival's lock is the second of the three members. The own client then
   waits while it holds the first member and has not requested the third. */
static int make_multilock_or_member(locker *l, bool is_rival,
                                    const lk_lock_config *c)
{
  return is_rival ? lk_lock_new(&l->lock, l->p->link->client, "/c/y", c)
                  : make_multilock(l, is_rival, c);
}

static int make_single(locker *l, bool is_rival, const lk_lock_config *c)
{
  /* -1: waiters try at once when the holder's node is deleted. */
  const lk_single_config options = {.size = sizeof options, .spread_ms = -1};

  (void)is_rival;
  return lk_single_new(&l->lock, l->p->link->client, "/c/the-lock", c,
                       &options);
}

static const char *const one_dir[] = {"/c", "/c/x", NULL};
static const char *const semaphore_dirs[] = {"/c", "/c/x", "/c/x/locks",
                                             "/c/x/leases", NULL};
static const char *const kazoo_dirs[] = {"/c", "/c/x", "/c/x-__lock__", NULL};
static const char *const kazoo_queues[] = {"/c/x-__lock__", "/c/x", NULL};
static const char *const multilock_dirs[] = {"/c", "/c/x", "/c/y", "/c/z",
                                             NULL};
static const char *const parent[] = {"/c", NULL};

#define MUTEX(constructor)                                                   \
  .make = constructor, .dirs = one_dir, .queues = one_dir + 1,               \
  .held_nodes = 1, .waiting_nodes = 1, .position = 1, .reentrant = true,     \
  .queued = true, .acquire = "create2 getChildren2",                         \
  .wait = "create2 getChildren2 | getData getData", .grant = "",             \
  .give_up = "removeWatches delete", .try = "create2 getChildren2 | delete", \
  .release = "delete", .turn = "delete create2 getChildren2 | getData getData"

#define CONTAINER                                                       \
  .containers = true, .cold = "create2 getChildren2 | createContainer " \
                              "createContainer create2 getChildren2"
#define PERSISTENT \
  .cold = "create2 getChildren2 | create create create2 getChildren2"

#define SEMAPHORE                                                    \
  .dirs = semaphore_dirs, .queues = semaphore_dirs + 2, .places = 1, \
  .position = 1, .containers = true, .queued = true,                 \
  .grant = "getChildren2 | removeWatches delete"
#define KAZOO_SEMAPHORE(permits)                                        \
  .config = {.layout = LK_LAYOUT_KAZOO}, .dirs = kazoo_dirs,            \
  .queues = kazoo_queues, .limit = permits, .places = 1, .position = 1, \
  .queued = true, .grant = "getChildren2 | removeWatches delete"
#define ONE_PERMIT  "create2 getChildren2 create2 getChildren2"
#define TWO_PERMITS "create2 getChildren2 create2 create2 getChildren2"
#define MAKE_DIRS   "createContainer createContainer createContainer"
#define THREE_LOCKS "multi getChildren2 getChildren2 getChildren2"
#define MULTILOCK(constructor)                                               \
  .make = constructor, .dirs = multilock_dirs, .queues = multilock_dirs + 1, \
  .held_nodes = 3, .position = 1, .containers = true, .reentrant = true,     \
  .queued = true, .acquire = THREE_LOCKS,                                    \
  .cold = THREE_LOCKS                                                        \
      " | createContainer createContainer createContainer"                   \
      " createContainer createContainer createContainer " THREE_LOCKS,       \
  .try = THREE_LOCKS " | delete delete delete",                              \
  .release = "delete delete delete"

/* clang-format off */
const kind kinds[] = {
    {.name = "mutex", MUTEX(make_mutex), CONTAINER},
    {.name = "mutex-kazoo", MUTEX(make_mutex), PERSISTENT,
     .config = {.layout = LK_LAYOUT_KAZOO}},
    {.name = "mutex-native", MUTEX(make_mutex), PERSISTENT,
     .config = {.layout = LK_LAYOUT_NATIVE}},
    {.name = "mutex-native-unprefixed", MUTEX(make_mutex), PERSISTENT,
     .config = {.layout = LK_LAYOUT_NATIVE, .prefix = ""}},
    {.name = "mutex-native-lock", MUTEX(make_mutex), PERSISTENT,
     .config = {.layout = LK_LAYOUT_NATIVE, .prefix = "lock"}},
    {.name = "mutex-native-uuid", MUTEX(make_mutex), PERSISTENT,
     .config = {.layout = LK_LAYOUT_NATIVE_UUID, .prefix = "seq-"}},
    {.name = "mutex-latch", MUTEX(make_mutex), CONTAINER,
     .config = {.layout = LK_LAYOUT_LATCH}},
    {.name = "read-side", MUTEX(make_read_side), CONTAINER,
     .rival_differs = true},
    {.name = "write-side", MUTEX(make_write_side), CONTAINER,
     .rival_differs = true},
    {.name = "semaphore", SEMAPHORE, .make = make_one_permit,
     .held_nodes = 1, .waiting_nodes = 2,
     .acquire = ONE_PERMIT " | removeWatches delete",
     .cold = ONE_PERMIT " | " MAKE_DIRS " create2 getChildren2 " MAKE_DIRS
             " create2 getChildren2 | removeWatches delete",
     .wait = ONE_PERMIT,
     .try = ONE_PERMIT " | removeWatches delete delete",
     .give_up = "removeWatches delete delete",
     .release = "delete",
     .turn = "delete " ONE_PERMIT " | getData getData delete removeWatches |"
             " create2 getChildren2"},
    {.name = "semaphore-several", SEMAPHORE, .make = make_two_permits,
     .held_nodes = 2, .waiting_nodes = 3,
     .acquire = TWO_PERMITS " | removeWatches delete",
     .cold = TWO_PERMITS " | " MAKE_DIRS " create2 getChildren2 " MAKE_DIRS
             " create2 " MAKE_DIRS " create2 getChildren2 |"
             " removeWatches delete",
     .wait = TWO_PERMITS,
     .try = TWO_PERMITS " | removeWatches delete delete delete",
     .give_up = "delete removeWatches delete delete",
     .release = "delete delete",
     .turn = "delete delete " TWO_PERMITS " | getData getData delete delete"
             " removeWatches | create2 create2 getChildren2"},
    {.name = "semaphore-kazoo", KAZOO_SEMAPHORE("1"), .make = make_one_permit,
     .held_nodes = 1, .waiting_nodes = 2,
     .acquire = "getData " ONE_PERMIT " | removeWatches delete",
     .cold = "getData " ONE_PERMIT " | create getData create create create2"
             " getChildren2 create create create2 getChildren2 |"
             " create getData removeWatches | delete",
     .wait = "getData " ONE_PERMIT,
     .try = "getData " ONE_PERMIT " | removeWatches delete delete",
     .give_up = "removeWatches delete delete",
     .release = "delete",
     .turn = "delete getData " ONE_PERMIT " | getData getData delete"
             " removeWatches | create2 getChildren2"},
    {.name = "semaphore-kazoo-several", KAZOO_SEMAPHORE("2"),
     .make = make_two_permits,
     .held_nodes = 2, .waiting_nodes = 3,
     .acquire = "getData " TWO_PERMITS " | removeWatches delete",
     .cold = "getData " TWO_PERMITS " | create getData create create create2"
             " getChildren2 create create create2 create create create2"
             " getChildren2 | create getData removeWatches | delete",
     .wait = "getData " TWO_PERMITS,
     .try = "getData " TWO_PERMITS " | removeWatches delete delete delete",
     .give_up = "delete removeWatches delete delete",
     .release = "delete delete",
     .turn = "delete delete getData " TWO_PERMITS " | getData getData delete"
             " delete removeWatches | create2 create2 getChildren2"},
    {.name = "multi-lock", MULTILOCK(make_multilock_or_member),
     .rival_differs = true, .waiting_nodes = 2,
     .wait = THREE_LOCKS " | getData getData delete",
     .grant = "multi getChildren2",
     .give_up = "delete removeWatches delete",
     .turn = "delete delete delete " THREE_LOCKS " | getData getData delete"},
    {.name = "multi-lock-alike", MULTILOCK(make_multilock), .waiting_nodes = 1,
     .wait = THREE_LOCKS " | getData getData delete delete",
     .grant = "multi getChildren2 getChildren2",
     .give_up = "removeWatches delete",
     .turn = "delete delete delete " THREE_LOCKS
             " | getData getData delete delete"},
    {.name = "single-node",
     .make = make_single,
     .dirs = parent,
     .queues = parent,
     .held_nodes = 1,
     .reentrant = true,
     .acquire = "create2 getData",
     .cold = "create2 getData | create create2 getData",
     .wait = "create2 getData",
     .grant = "create2 getData",
     .try = "create2 getData | removeWatches",
     .give_up = "removeWatches",
     .release = "delete",
     .turn = "delete create2 getData"},
};
/* clang-format on */

const size_t kind_count = COUNT(kinds);
