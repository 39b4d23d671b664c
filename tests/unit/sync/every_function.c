/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Properties of every function of <latchkey/sync.h>. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/every_call.h"
#include "support/suite.h"
#include "unit/fake/loopback.h"
#include "unit/fake/sockets.h"

static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 20};
static char hosts[64];
static every_object objects;

static void start(void)
{
  snprintf(hosts, sizeof hosts, "127.0.0.1:%u", (unsigned)sockets_dead_port());
  every_object_make(&objects, hosts, &brief);
}

/* ---- the header ---------------------------------------------------------- */

static bool is_listed(const char *name, size_t len)
{
  bool found = false;

  for (size_t i = 0; i < every_call_count; i++) {
    const char *listed = every_calls[i].name;

    found = found || (strlen(listed) == len && memcmp(listed, name, len) == 0);
  }
  return found;
}

/* Checks that the function declared in this line or the next is listed; counts
 * it. */
static void check_declaration(const char *line, unsigned *count)
{
  const char *paren = strchr(line, '(');
  const char *name = strstr(line, "lk_sync_");

  while (paren != NULL && name != NULL && name < paren) {
    const char *end = name + strspn(name, "abcdefghijklmnopqrstuvwxyz_");

    if (end == paren) {
      name += strlen("lk_sync_");
      ck_assert_msg(is_listed(name, (size_t)(end - name)), "%s", line);
      ++*count;
      return;
    }
    name = strstr(end, "lk_sync_");
  }
}

START_TEST(every_function_of_the_header_is_listed)
{
  const char *srcdir = getenv("srcdir");
  char path[4096], line[256];
  unsigned count = 0;
  bool declared = false;

  snprintf(path, sizeof path, "%s/include/latchkey/sync.h",
           srcdir == NULL ? "." : srcdir);
  FILE *f = fopen(path, "r");

  ck_assert_msg(f != NULL, "%s", path);
  while (fgets(line, sizeof line, f) != NULL) {
    if (declared || strncmp(line, "LK_API", 6) == 0)
      check_declaration(line, &count);
    declared = strncmp(line, "LK_API", 6) == 0 && strchr(line, '(') == NULL;
  }
  fclose(f);
  ck_assert_uint_eq(count, every_call_count);
}
END_TEST

/* ---- NULL ---------------------------------------------------------------- */

START_TEST(null_object_is_refused_or_does_not_hold)
{
  const every_object none = {.path = "/x", .hosts = "127.0.0.1:1"};

  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    ck_assert_msg(c->call(&none) == c->no_object, "%s", c->name);
  }
}
END_TEST

START_TEST(null_path_is_refused)
{
  start();
  objects.path = NULL;
  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];
    bool has_path = c->no_path != NOT_EXPECTED;

    if (!has_path)
      continue;
    int err = c->call(&objects);

    /* NOT_HELD: the path is not even looked at if the lock is not held. */
    ck_assert_msg(err == c->no_path || err == LK_ERR_NOT_HELD, "%s: %d",
                  c->name, err);
  }
  every_object_free(&objects);
}
END_TEST

START_TEST(null_result_is_refused_if_required)
{
  start();
  objects.no_out = true;
  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    if (strcmp(c->name, "client_close") == 0)
      continue; /* the client is of no use after it */
    int err = c->call(&objects);

    if (c->no_out != NOT_EXPECTED)
      ck_assert_msg(err == c->no_out, "%s: %d", c->name, err);
  }
  every_object_free(&objects);
}
END_TEST

START_TEST(more_operations_than_memory_are_refused)
{
  const lk_op op = lk_op_check("/x", -1);
  lk_sync_result *r;

  start();
  ck_assert_int_eq(lk_sync_multi(objects.client, &r, &op, SIZE_MAX, NULL),
                   LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(r);
  every_object_free(&objects);
}
END_TEST

START_TEST(null_array_is_refused_without_a_result)
{
  lk_sync_result junk, *r = &junk;

  start();
  ck_assert_int_eq(lk_sync_multi(objects.client, &r, NULL, 1, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(r);
  r = &junk;
  ck_assert_int_eq(lk_sync_multi_read(objects.client, &r, NULL, 1, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(r);
  every_object_free(&objects);
}
END_TEST

/* ---- the options of a call ----------------------------------------------- */

START_TEST(every_call_that_waits_ends_at_its_deadline_or_by_a_cancel)
{
  lk_sync_call cancelled = {.size = sizeof cancelled};
  const lk_sync_call unset = {.timeout_ms = 20};
  /* All calls that wait, except those that need a held lock. */
  const unsigned expected = 30;
  unsigned waits = 0;

  start();
  cancelled.cancel = objects.cancel;
  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    if (strcmp(c->name, "client_close") == 0)
      continue; /* the client is of no use after it */
    objects.call = &brief;
    if (c->call(&objects) != LK_ERR_DEADLINE)
      continue;
    waits++;
    lk_sync_cancel_set(objects.cancel);
    objects.call = &cancelled;
    ck_assert_msg(c->call(&objects) == LK_ERR_CANCELLED, "%s", c->name);
    lk_sync_cancel_clear(objects.cancel);
    objects.call = &unset;
    ck_assert_msg(c->call(&objects) == LK_ERR_BAD_ARGUMENT, "%s", c->name);
  }
  ck_assert_uint_eq(waits, expected);
  every_object_free(&objects);
}
END_TEST

/* ---- pthread_cancel() ---------------------------------------------------- */

static atomic_size_t returned;

/* Calls one function in a thread that holds a lock and has a pending
 * pthread_cancel(). */
static void *call_while_cancelled(void *arg)
{
  const every_call *c = arg;

  ck_assert_int_eq(lk_sync_lock_acquire(objects.lock, NULL), 0);
  ck_assert_int_ge(lk_sync_lock_fd(objects.lock), 0);
  pthread_cancel(pthread_self());
  (void)c->call(&objects);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  atomic_fetch_add(&returned, 1);
  return NULL;
}

static void expect_cancellable(const char *name)
{
  int previous_state;

  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &previous_state);
  ck_assert_msg(previous_state == PTHREAD_CANCEL_ENABLE, "%s", name);
}

START_TEST(calls_leave_cancellation_enabled)
{
  start();
  for (size_t i = 0; i < every_call_count; i++) {
    const every_call *c = &every_calls[i];

    if (strcmp(c->name, "client_close") == 0)
      continue; /* the client is of no use after it */
    (void)c->call(&objects);
    expect_cancellable(c->name);
  }
  every_object_free(&objects);
  expect_cancellable("free");
}
END_TEST

START_TEST(no_call_is_a_cancellation_point)
{
  lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 500};

  for (size_t i = 0; i < every_call_count; i++) {
    pthread_t thread;
    loopback zk;

    loopback_start(&zk);
    every_object_make(&objects, zk.hosts, &limit);
    ck_assert_int_eq(pthread_create(&thread, NULL, call_while_cancelled,
                                    (void *)(uintptr_t)&every_calls[i]),
                     0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(returned == i + 1, "%s", every_calls[i].name);
    every_object_free(&objects);
    loopback_stop(&zk);
  }
}
END_TEST

static void release(void *arg)
{
  ck_assert_int_eq(lk_sync_lock_release(arg), 0);
}

/* As a thread does that may be cancelled while it holds. */
static void *hold_and_end(void *arg)
{
  int previous_state;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_state);
  ck_assert_int_eq(lk_sync_lock_acquire(arg, NULL), 0);
  pthread_cleanup_push(release, arg);
  pthread_cancel(pthread_self());
  pthread_setcancelstate(previous_state, NULL);
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return NULL;
}

START_TEST(thread_that_is_cancelled_may_release_in_its_cleanup)
{
  lk_sync_call limit = {.size = sizeof limit, .timeout_ms = 5000};
  loopback zk;

  loopback_start(&zk);
  every_object_make(&objects, zk.hosts, &limit);
  for (int i = 0; i < 20; i++) {
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, hold_and_end, objects.lock),
                     0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(lk_sync_lock_acquire(objects.lock, &limit), 0);
    ck_assert_int_eq(lk_sync_lock_release(objects.lock), 0);
  }
  every_object_free(&objects);
  loopback_stop(&zk);
}
END_TEST

SUITE("every_function", every_function_of_the_header_is_listed,
      null_object_is_refused_or_does_not_hold, null_path_is_refused,
      null_result_is_refused_if_required,
      more_operations_than_memory_are_refused,
      null_array_is_refused_without_a_result,
      every_call_that_waits_ends_at_its_deadline_or_by_a_cancel,
      calls_leave_cancellation_enabled, no_call_is_a_cancellation_point,
      thread_that_is_cancelled_may_release_in_its_cleanup)
