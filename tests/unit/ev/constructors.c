/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The constructors that need libev, including those of the blocking interface:
 * after wrong arguments and each failing allocation the result is NULL and
 * nothing is kept.
 */

#include <latchkey/ev.h>
#include <latchkey/sync.h>

#include "unit/api/constructors.h"

#include <ev.h>
#include <pthread.h>

static failing_mem mem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ev_loop *loop;
static lk_ev *ev;
static lk_sync_client *client;

/* Allocates from `mem` on any thread. */
static void *resize(void *arg, void *p, size_t size)
{
  (void)arg;
  pthread_mutex_lock(&mutex);
  void *got = mem.mem.resize(mem.mem.arg, p, size);

  pthread_mutex_unlock(&mutex);
  return got;
}

static const lk_mem shared_mem = {resize, NULL};

/* What is wrong with the arguments of a constructor of the blocking interface.
   Numbers that are not listed here stand at the arguments that they change. */
enum {
  NO_CLIENT = 1,
  RELATIVE_PATH = 2,
  ROOT_PATH = 3,
  NO_CONFIG_SIZE = 4
};

/* More allocations than any constructor makes. */
enum { MOST_ALLOCATIONS = 60 };

/* ---- the driver ---------------------------------------------------------- */

static int make_ev(void **out, unsigned mistake)
{
  lk_ev *e = *out;
  int err = lk_ev_new(&e, loop, &mem.mem);

  (void)mistake;
  *out = e;
  return err;
}

static void free_ev(void *made)
{
  lk_ev_free(made);
}

static lk_client_config client_config(unsigned mistake)
{
  return (lk_client_config){.size = mistake == 1 ? 0 : sizeof(lk_client_config),
                            .hosts = mistake == 2 ? "a:b" : "127.0.0.1:1",
                            .session_timeout_ms = mistake == 3 ? -1 : 0,
                            .mem = &shared_mem};
}

static int make_ev_client(void **out, unsigned mistake)
{
  const lk_client_config config = client_config(mistake);
  lk_client *c = *out;
  int err = lk_ev_client_new(&c, ev, mistake == 4 ? NULL : &config);

  *out = c;
  return err;
}

static void free_ev_client(void *made)
{
  lk_client_free(made);
}

static const constructor drivers[] = {
    {"lk_ev_new", make_ev, free_ev, 0},
    {"lk_ev_client_new", make_ev_client, free_ev_client, 4},
};

START_TEST(failed_driver_constructors_return_null)
{
  for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
    loop = ev_loop_new(EVFLAG_AUTO);
    failing_mem_init(&mem);
    ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), 0);
    expect_refusals(&drivers[i]);
    expect_no_leaks(&drivers[i], &mem);
    lk_ev_free(ev);
    ck_assert_uint_eq(mem.live, 0);
    ev_loop_destroy(loop);
  }
}
END_TEST

/* ---- the blocking interface ---------------------------------------------- */

static int make_sync(void **out, unsigned mistake)
{
  const lk_client_config config = client_config(mistake);
  const lk_lease_config lease = {.size = mistake == 4 ? 0 : sizeof lease};
  const lk_sync_config sync = {.size = mistake == 5 ? 0 : sizeof sync,
                               .client = &config,
                               .lease = &lease};
  lk_sync_client *c = *out;
  int err = lk_sync_client_new(&c, &sync);

  *out = c;
  return err;
}

static int make_cancel(void **out, unsigned mistake)
{
  lk_sync_cancel *x = *out;
  int err = lk_sync_cancel_new(&x, mistake == 1 ? NULL : client);

  *out = x;
  return err;
}

static lk_sync_client *client_or_none(unsigned mistake)
{
  return mistake == NO_CLIENT ? NULL : client;
}

static const char *path(unsigned mistake)
{
  switch (mistake) {
  case RELATIVE_PATH: return "a";
  case ROOT_PATH: return "/";
  default: return "/a";
  }
}

static lk_sync_lock_config lock_config(unsigned mistake)
{
  return (lk_sync_lock_config){
      .size = mistake == NO_CONFIG_SIZE ? 0 : sizeof(lk_sync_lock_config)};
}

static int make_lock(void **out, unsigned mistake)
{
  const lk_sync_lock_config config = lock_config(mistake);
  lk_sync_lock *l = *out;
  int err =
      lk_sync_lock_new(&l, client_or_none(mistake), path(mistake), &config);

  *out = l;
  return err;
}

static int make_semaphore(void **out, unsigned mistake)
{
  const lk_sync_lock_config config = lock_config(mistake);
  const lk_semaphore_config options = {.size =
                                           mistake == 5 ? 0 : sizeof options,
                                       .permits = mistake == 6 ? -1 : 3,
                                       .limit_path = mistake == 7 ? "b" : "/b"};
  lk_sync_lock *l = *out;
  int err = lk_sync_semaphore_new(&l, client_or_none(mistake), path(mistake),
                                  &config, &options);

  *out = l;
  return err;
}

static int make_multilock(void **out, unsigned mistake)
{
  const lk_sync_lock_config config = lock_config(mistake);
  const lk_multilock_config options = {.size =
                                           mistake == 5 ? 0 : sizeof options};
  lk_multilock_member members[] = {
      {mistake == 8 ? NULL : path(mistake), LK_MULTILOCK_MUTEX},
      {mistake == 6 ? "/a" : "/b", LK_MULTILOCK_READ},
  };
  lk_sync_lock *l = *out;

  if (mistake == 9)
    members[1].path = NULL;
  int err = lk_sync_multilock_new(&l, client_or_none(mistake), members,
                                  mistake == 7 ? 0 : 2, &config, &options);

  *out = l;
  return err;
}

static int make_single(void **out, unsigned mistake)
{
  const lk_sync_lock_config config = lock_config(mistake);
  const lk_single_config options = {.size = mistake == 5 ? 0 : sizeof options,
                                    .poll_ms = mistake == 6 ? -1 : 0};
  lk_sync_lock *l = *out;
  int err = lk_sync_single_new(&l, client_or_none(mistake), path(mistake),
                               &config, &options);

  *out = l;
  return err;
}

static int make_rwlock(void **out, unsigned mistake)
{
  lk_sync_lock_config config = lock_config(mistake);
  lk_sync_rwlock *rw = *out;

  if (mistake == 5)
    config.prefix = "p";
  int err =
      lk_sync_rwlock_new(&rw, client_or_none(mistake), path(mistake), &config);

  *out = rw;
  return err;
}

static lk_subscription_config subscription_config(unsigned mistake)
{
  return (lk_subscription_config){
      .size = mistake == 3 ? 0 : sizeof(lk_subscription_config),
      .check_ms = mistake == 4 ? -2 : 0};
}

static int make_children(void **out, unsigned mistake)
{
  const lk_subscription_config config = subscription_config(mistake);
  lk_sync_subscription *s = *out;
  int err = lk_sync_subscribe_children(&s, client_or_none(mistake),
                                       mistake == RELATIVE_PATH ? "a" : "/a",
                                       &config);

  *out = s;
  return err;
}

static int make_data(void **out, unsigned mistake)
{
  const lk_subscription_config config = subscription_config(mistake);
  lk_sync_subscription *s = *out;
  int err =
      lk_sync_subscribe_data(&s, client_or_none(mistake),
                             mistake == RELATIVE_PATH ? "a" : "/a", &config);

  *out = s;
  return err;
}

static int make_result(void **out, unsigned mistake)
{
  const lk_sync_call call = {.size = mistake == 1 ? 0 : sizeof call,
                             .timeout_ms = 1};
  lk_sync_result *r = *out;
  int err =
      lk_sync_get(client, &r, mistake == RELATIVE_PATH ? "a" : "/a", &call);

  *out = r;
  return err;
}

static void free_sync(void *made)
{
  lk_sync_client_free(made);
}

static void free_cancel(void *made)
{
  lk_sync_cancel_free(made);
}

static void free_lock(void *made)
{
  lk_sync_lock_free(made);
}

static void free_rwlock(void *made)
{
  lk_sync_rwlock_free(made);
}

static void free_subscription(void *made)
{
  lk_sync_subscription_free(made);
}

static const constructor blocking[] = {
    {"lk_sync_client_new", make_sync, free_sync, 5},
    {"lk_sync_cancel_new", make_cancel, free_cancel, 1},
    {"lk_sync_lock_new", make_lock, free_lock, 4},
    {"lk_sync_semaphore_new", make_semaphore, free_lock, 7},
    {"lk_sync_multilock_new", make_multilock, free_lock, 9},
    {"lk_sync_single_new", make_single, free_lock, 6},
    {"lk_sync_rwlock_new", make_rwlock, free_rwlock, 5},
    {"lk_sync_subscribe_children", make_children, free_subscription, 4},
    {"lk_sync_subscribe_data", make_data, free_subscription, 4},
};

/* Let the next `n` allocations of all threads succeed, and then one fail. */
static void fail_after(size_t n)
{
  pthread_mutex_lock(&mutex);
  mem.fail_at = n == 0 ? 0 : mem.count + n;
  pthread_mutex_unlock(&mutex);
}

/* The client's thread allocates, too. If its allocation is the one that fails,
   the constructor succeeds. */
static void expect_null_without_memory(const constructor *k)
{
  unsigned made = 0;

  for (size_t n = 1; n <= MOST_ALLOCATIONS; n++) {
    void *out = pointer_before_call();

    fail_after(n);
    int err = k->make(&out, NO_MISTAKE);

    fail_after(0);
    ck_assert_msg(err == 0 || err == LK_ERR_NO_MEMORY, "%s: error %d", k->name,
                  err);
    ck_assert_msg((out == NULL) == (err != 0), "%s left a pointer", k->name);
    if (err == 0) {
      k->destroy(out);
      made++;
    }
  }
  ck_assert_msg(made > 0 && made < MOST_ALLOCATIONS, "%s was made %u times",
                k->name, made);
}

START_TEST(failed_blocking_constructors_return_null)
{
  const constructor result = {"lk_sync_get", make_result, NULL, 2};
  void *made = NULL, *out = pointer_before_call();

  failing_mem_init(&mem);
  ck_assert_int_eq(make_sync(&made, NO_MISTAKE), 0);
  client = made;
  for (size_t i = 0; i < sizeof blocking / sizeof blocking[0]; i++) {
    expect_refusals(&blocking[i]);
    expect_null_without_memory(&blocking[i]);
  }
  expect_refusals(&result);
  ck_assert_int_eq(make_result(&out, NO_MISTAKE), LK_ERR_DEADLINE);
  ck_assert_ptr_null(out);
  lk_sync_client_free(client);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

SUITE("constructors", failed_driver_constructors_return_null,
      failed_blocking_constructors_return_null)
