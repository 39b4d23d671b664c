/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_API_ARGUMENTS_H
#define LK_UNIT_API_ARGUMENTS_H

#include <latchkey/client.h>
#include <latchkey/multilock.h>
#include <string.h>

/** Arguments of the calls that from_headers.py writes. */

/** For callbacks that are not invoked: converted to their type. */
static inline void ignore(void)
{
}

static const lk_multilock_part two_members[] = {{"/a", LK_MULTILOCK_MUTEX},
                                                {"/b", LK_MULTILOCK_READ}};
static const lk_multilock_part relative_member[] = {{"a", LK_MULTILOCK_MUTEX},
                                                    {"/b", LK_MULTILOCK_READ}};
static const lk_multilock_part no_path_of_member[] = {
    {"/a", LK_MULTILOCK_MUTEX}, {NULL, LK_MULTILOCK_READ}};
static const lk_multilock_part one_member_with_two_sides[] = {
    {"/a", LK_MULTILOCK_MUTEX}, {"/a", LK_MULTILOCK_READ}};

static inline int64_t hooks_now(void *arg)
{
  (void)arg;
  return 5000;
}

static inline void hooks_random(void *arg, void *out, size_t len)
{
  (void)arg;
  memset(out, 0x5a, len);
}

static inline void hooks_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

/** Hooks of a client that is never connected. Its time stands still. */
static const lk_hooks test_hooks = {.size = sizeof test_hooks,
                                    .now = hooks_now,
                                    .random = hooks_random,
                                    .wake = hooks_wake};

#endif
