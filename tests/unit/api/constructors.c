/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * All constructors except those that need libev and those of the blocking
 * interface: after wrong arguments and each failing allocation the result is
 * NULL and nothing is kept.
 */

#include <latchkey/acl.h>
#include <latchkey/latchkey.h>
#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/poll.h>
#include <latchkey/roster.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>

#include "unit/api/arguments.h"
#include "unit/api/constructors.h"

static failing_mem memory;

/* Their arguments. */
static const lk_mem *const test_mem = &memory.mem;
static lk_client *test_client;
static lk_lock *test_lock;
static lk_rwlock *test_rwlock;
static lk_poll *test_poll;

#include "tests/unit/api/constructors_from_headers.h"

/* Make a client and configure its session lease, which is freed with the
 * client. */
static int make_lease(void **out, unsigned mistake)
{
  const lk_lease_config config = {.size = mistake == 1 ? 0 : sizeof config,
                                  .gap_ms = mistake == 2 ? -1 : 0};
  int err = make_lk_client_new(out, NO_MISTAKE);

  if (err == 0)
    err = lk_lease_configure(*out, &config);
  if (err != 0) {
    lk_client_free(*out);
    *out = NULL;
  }
  return err;
}

static const constructor lease = {"lk_lease_configure", make_lease,
                                  free_lk_client_new, 2};

enum { COUNT = sizeof constructors / sizeof constructors[0] };

static void begin(void)
{
  void *made = NULL;

  failing_mem_init(&memory);
  ck_assert_int_eq(make_lk_client_new(&made, NO_MISTAKE), 0);
  test_client = made;
  ck_assert_int_eq(lk_lease_configure(test_client, NULL), 0);
  ck_assert_int_eq(lk_lock_new(&test_lock, test_client, "/l", NULL), 0);
  ck_assert_int_eq(lk_rwlock_new(&test_rwlock, test_client, "/r", NULL), 0);
  ck_assert_int_eq(lk_poll_new(&test_poll, test_mem), 0);
}

static void end(void)
{
  lk_rwlock_free(test_rwlock);
  lk_lock_free(test_lock);
  lk_client_free(test_client);
  lk_poll_free(test_poll);
  ck_assert_uint_eq(memory.live, 0);
}

START_TEST(constructors_with_wrong_arguments_return_null)
{
  begin();
  expect_refusals(&lease);
  for (size_t i = 0; i < COUNT; i++)
    expect_refusals(&constructors[i]);
  end();
}
END_TEST

START_TEST(constructors_without_memory_return_null)
{
  begin();
  expect_no_leaks(&lease, &memory);
  end();
  for (size_t i = 0; i < COUNT; i++) {
    begin();
    expect_no_leaks(&constructors[i], &memory);
    end();
  }
}
END_TEST

SUITE("constructors", constructors_with_wrong_arguments_return_null,
      constructors_without_memory_return_null)
