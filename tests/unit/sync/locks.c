/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The locks of the blocking interface with a model server on loopback: what
 * happens if several threads do something in one iteration of the client's
 * thread. */

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "sync/lock.h"
#include "unit/fake/loopback.h"

static loopback zk;
static lk_sync_client *client;
static lk_sync_lock *lock;

/* ---- memory that the handle's thread gives back slowly ------------------- */

static struct {
  atomic_bool on;
  /** number of threads that have returned from their calls */
  atomic_uint ended;
} slow;

static atomic_int blocks; /* number of allocated blocks */

/* If `slow.on`, the client's thread frees memory only after another thread has
 * returned from its call, or after a while. So a sanitizer finds memory of that
 * other thread which the client's thread uses too late. */
static void *resize(void *arg, void *p, size_t size)
{
  (void)arg;
  if (slow.on && size == 0 && pthread_equal(pthread_self(), client->thread)) {
    for (int i = 0; i < 200 && slow.ended == 0; i++)
      usleep(1000);
  }
  if (size > 0) {
    if (p == NULL)
      blocks++;
    return realloc(p, size);
  }
  blocks--;
  free(p);
  return NULL;
}

static const lk_lease_config
    *lease; /* options of the next client's session lease */
static lk_sync_lock_event_cb on_lock_event; /* of the next lock */

static void start_with(const lk_lock_config *config)
{
  static const lk_mem mem = {.resize = resize};
  lk_client_config client_config = {
      .size = sizeof client_config, .hosts = zk.hosts, .mem = &mem};
  lk_sync_config options = {
      .size = sizeof options, .client = &client_config, .lease = lease};

  loopback_start(&zk);
  model_create(&zk.server, "/locks");
  ck_assert_int_eq(lk_sync_client_new(&client, &options), 0);
  ck_assert_int_eq(
      lk_sync_lock_new(&lock, client, "/locks/a", config, on_lock_event, NULL),
      0);
}

static void stop(void)
{
  lk_sync_lock_free(lock);
  lk_sync_client_free(client);
  loopback_stop(&zk);
}

/* ---- calls, for waiter_start() ------------------------------------------- */

static int acquire_and_leave(void *arg)
{
  int err = lk_sync_lock_acquire(lock, NULL);

  (void)arg;
  slow.ended++;
  return err;
}

static int close_client(void *arg)
{
  (void)arg;
  return lk_sync_client_close(client);
}

static int free_lock(void *arg)
{
  (void)arg;
  lk_sync_lock_free(lock);
  lock = NULL;
  return 0;
}

/* Runs on the client's thread until the main thread sets `go`. */
static void pause_thread(lk_client *c, void *go)
{
  (void)c;
  while (!atomic_load((atomic_bool *)go))
    usleep(200);
}

typedef struct paused {
  waiter w;
  atomic_bool go;
} paused;

static int run_pause(void *go)
{
  return lk_sync_client_run_on_thread(client, pause_thread, go);
}

/* ---- several in one turn ------------------------------------------------- */

static size_t tasks_posted(void)
{
  size_t count = 0;

  pthread_mutex_lock(&client->mutex);
  for (const lk_link *l = client->tasks.next; l != &client->tasks; l = l->next)
    count++;
  pthread_mutex_unlock(&client->mutex);
  return count;
}

/* Starts a call while the client's thread is paused. It becomes the `count`-th
 * that waits for the thread. */
static void post(waiter *w, int (*what)(void *), size_t count)
{
  waiter_start(w, what, NULL);
  while (tasks_posted() < count)
    usleep(200);
}

static lk_sync_lock *clone_of(lk_sync_lock *l)
{
  lk_sync_lock *clone;

  ck_assert_int_eq(lk_sync_lock_clone(&clone, l, NULL), 0);
  return clone;
}

/* One handle holds, and a thread begins to acquire another one. In the same
 * iteration `end` ends both. Returns the result of `end`. */
static int end_in_turn_of_acquire(int (*end)(void *arg), int *refusal)
{
  waiter taker, ender;
  paused p = {.go = false};

  start_with(NULL);
  lk_sync_lock *holder = clone_of(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(holder, NULL), 0);
  waiter_start(&p.w, run_pause, &p.go);
  waiters_inside(client, 1);
  post(&taker, acquire_and_leave, 1);
  post(&ender, end, 2);
  slow.on = true;
  atomic_store(&p.go, true);
  ck_assert_int_eq(waiter_end(&p.w), 0);
  *refusal = waiter_end(&taker);
  int err = waiter_end(&ender);

  slow.on = false;
  lk_sync_lock_free(holder);
  stop();
  return err;
}

START_TEST(close_in_the_iteration_of_an_acquire_ends_both)
{
  int refusal;

  ck_assert_int_eq(end_in_turn_of_acquire(close_client, &refusal), 0);
  ck_assert_int_eq(refusal, LK_ERR_CLOSED);
}
END_TEST

START_TEST(free_in_the_iteration_of_an_acquire_ends_both)
{
  int refusal;

  ck_assert_int_eq(end_in_turn_of_acquire(free_lock, &refusal), 0);
  ck_assert_int_eq(refusal, LK_ERR_CLOSED);
}
END_TEST

static int acquire_lock(void *arg)
{
  (void)arg;
  return lk_sync_lock_acquire(lock, NULL);
}

/* The acquire was queued first, but the client's thread executes the free
 * before it. */
START_TEST(acquire_queued_behind_a_free_is_refused)
{
  waiter freer, taker;
  paused p = {.go = false};

  start_with(NULL);
  waiter_start(&p.w, run_pause, &p.go);
  waiters_inside(client, 1);
  post(&freer, free_lock, 1);
  post(&taker, acquire_lock, 2);
  atomic_store(&p.go, true);
  ck_assert_int_eq(waiter_end(&p.w), 0);
  ck_assert_int_eq(waiter_end(&taker), LK_ERR_CLOSED);
  ck_assert_int_eq(waiter_end(&freer), 0);
  stop();
}
END_TEST

/* ---- waiting while it is unsure ------------------------------------------ */

static const lk_sync_call soon = {.size = sizeof soon, .timeout_ms = 10000};
static const lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 30};

/* A lock is held and unsure: the connection broke, and the server answers no
 * handshake. */
static void start_unsure(void)
{
  lk_lock_config config = {.size = sizeof config,
                           .unsure_when_suspended = true};

  start_with(&config);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), 0);
  loopback_freeze(&zk);
  loopback_drop(&zk);
  while (lk_sync_lock_ok(lock))
    usleep(200);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_UNSURE);
}

static int thaw_when_inside(void *arg)
{
  (void)arg;
  waiters_inside(client, 1);
  loopback_thaw(&zk);
  return 0;
}

START_TEST(locks_freed_while_held_leave_no_memory)
{
  int before = 0;

  start_with(NULL);
  for (int i = 0; i < 30; i++) {
    lk_sync_lock *held;

    ck_assert_int_eq(
        lk_sync_lock_new(&held, client, "/locks/b", NULL, NULL, NULL), 0);
    ck_assert_int_eq(lk_sync_lock_acquire(held, NULL), 0);
    lk_sync_lock_free(held);
    if (i == 10) /* the client has all that it keeps */
      before = blocks;
  }
  /* Nearly 20 locks later, not even half a block is left of each. */
  ck_assert_int_lt(blocks, before + 10);
  stop();
}
END_TEST

START_TEST(wait_ends_when_the_lock_is_proven_again)
{
  waiter w;

  start_unsure();
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &brief), LK_ERR_DEADLINE);
  waiter_start(&w, thaw_when_inside, NULL);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), 0);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &brief), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), LK_ERR_NOT_HELD);
  stop();
}
END_TEST

START_TEST(wait_ends_when_the_lock_is_lost)
{
  waiter w;

  start_unsure();
  loopback_lock(&zk);
  model_delete(&zk.server, model_child(&zk.server, "/locks/a", 0));
  loopback_unlock(&zk);
  waiter_start(&w, thaw_when_inside, NULL);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_LOST);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_LOST);
  stop();
}
END_TEST

/* `end` points to a function pointer, as a void pointer cannot be one. */
static int end_when_inside(void *end)
{
  int (*const *function)(void *arg) = end;

  waiters_inside(client, 1);
  return (*function)(NULL);
}

static lk_sync_rwlock *rw;

START_TEST(downgrade_of_a_lost_lock_does_not_wait)
{
  lk_sync_rwlock *other;

  start_with(NULL);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rw, client, "/locks/rw", NULL, NULL, NULL), 0);
  lk_sync_lock *write = lk_sync_rwlock_write_side(rw);

  ck_assert_int_eq(lk_sync_lock_acquire(write, &soon), 0);
  loopback_lock(&zk);
  model_delete(&zk.server, model_child(&zk.server, "/locks/rw", 0));
  loopback_unlock(&zk);
  while (lk_sync_lock_get_state(write) != LK_LOCK_LOST)
    (void)lk_sync_lock_verify(write, &soon);
  ck_assert_int_eq(lk_sync_rwlock_clone(&other, rw, NULL), 0);
  ck_assert_int_eq(
      lk_sync_lock_acquire(lk_sync_rwlock_write_side(other), &soon), 0);
  ck_assert_int_eq(lk_sync_rwlock_downgrade(rw, &brief), LK_ERR_LOST);
  lk_sync_rwlock_free(other);
  lk_sync_rwlock_free(rw);
  stop();
}
END_TEST

START_TEST(wait_ends_when_the_client_is_closed_or_the_lock_freed)
{
  int (*const ends[])(void *) = {close_client, free_lock};

  for (size_t i = 0; i < 2; i++) {
    waiter w;

    start_unsure();
    waiter_start(&w, end_when_inside, (void *)(uintptr_t)&ends[i]);
    ck_assert_int_eq(lk_sync_lock_wait_certain(lock, NULL), LK_ERR_CLOSED);
    (void)waiter_end(&w);
    stop();
  }
}
END_TEST

static int cancel_when_inside(void *cancel)
{
  waiters_inside(client, 1);
  lk_sync_cancel_set(cancel);
  return 0;
}

START_TEST(wait_ends_when_it_is_cancelled)
{
  lk_sync_call call = {.size = sizeof call};
  waiter w;

  start_unsure();
  ck_assert_int_eq(lk_sync_cancel_new(&call.cancel, client), 0);
  waiter_start(&w, cancel_when_inside, call.cancel);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &call), LK_ERR_CANCELLED);
  ck_assert_int_eq(waiter_end(&w), 0);
  lk_sync_cancel_free(call.cancel);
  stop();
}
END_TEST

/* A doubt is there already, so the call writes into the descriptor, with the
 * mutex of the client. write() would end a cancelled thread. */
static atomic_bool descriptor_opened;

static void *open_descriptor_while_cancelled(void *arg)
{
  int previous_state;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &previous_state);
  start_unsure();
  pthread_cancel(pthread_self());
  pthread_setcancelstate(previous_state, NULL);
  *(int *)arg = lk_sync_lock_fd(lock);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  atomic_store(&descriptor_opened, true);
  return NULL;
}

START_TEST(descriptor_of_an_unsure_lock_is_opened_by_a_cancelled_thread)
{
  enum { LIMIT_MS = 10000 };
  int fd = -1;
  pthread_t thread;

  ck_assert_int_eq(
      pthread_create(&thread, NULL, open_descriptor_while_cancelled, &fd), 0);
  for (int ms = 0; ms < LIMIT_MS && !atomic_load(&descriptor_opened); ms++)
    usleep(1000);
  ck_assert(atomic_load(&descriptor_opened)); /* else the thread cannot end */
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_ge(fd, 0);
  stop();
}
END_TEST

/* ---- calls of the holder ------------------------------------------------- */

START_TEST(acquire_by_the_holder_counts_and_sends_nothing)
{
  start_with(NULL);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  unsigned creates = loopback_requests(&zk, "create2");

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_server_sync(client, "/", &soon), 0);
  ck_assert_uint_eq(loopback_requests(&zk, "create2"), creates);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  stop();
}
END_TEST

START_TEST(call_that_acquires_again_may_be_refused)
{
  lk_sync_call cancelled = {.size = sizeof cancelled};
  const lk_sync_call late = {.size = sizeof late, .timeout_ms = -2};
  const lk_sync_call without_size = {.timeout_ms = 5};

  start_with(NULL);
  ck_assert_int_eq(lk_sync_cancel_new(&cancelled.cancel, client), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &cancelled), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &cancelled), 0);
  lk_sync_cancel_set(cancelled.cancel);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &cancelled), LK_ERR_CANCELLED);
  ck_assert_int_eq(lk_sync_lock_try(lock, &cancelled), LK_ERR_CANCELLED);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &late), LK_ERR_DEADLINE);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &without_size),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &without_size),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 2);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &cancelled),
                   LK_ERR_CANCELLED);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 1);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
  lk_sync_cancel_free(cancelled.cancel);
  stop();
}
END_TEST

static void on_event(lk_sync_client *c, const lk_event *e, void *arg)
{
  (void)c;
  (void)e;
  (void)arg;
}

START_TEST(calls_for_locks_refuse_a_watch)
{
  const lk_sync_call watching = {
      .size = sizeof watching, .timeout_ms = 5000, .on_event = on_event};

  start_with(NULL);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &watching), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &watching), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &watching),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &watching),
                   LK_ERR_BAD_ARGUMENT);
  stop();
}
END_TEST

START_TEST(verify_asks_the_server_and_ends_at_its_deadline)
{
  start_with(NULL);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  unsigned reads = loopback_requests(&zk, "getData");

  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), 0);
  ck_assert_uint_eq(loopback_requests(&zk, "getData"), reads + 1);
  loopback_freeze(&zk);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &brief), LK_ERR_DEADLINE);
  loopback_thaw(&zk);
  stop();
}
END_TEST

static void do_nothing(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

START_TEST(verify_with_a_cancel_that_is_set_already_sends_nothing)
{
  lk_sync_call call = {.size = sizeof call, .timeout_ms = 10000};

  start_with(NULL);
  ck_assert_int_eq(lk_sync_cancel_new(&call.cancel, client), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  unsigned reads = loopback_requests(&zk, "getData");

  lk_sync_cancel_set(call.cancel);
  /* The handle's thread has already processed the calls under way. */
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, do_nothing, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &call), LK_ERR_CANCELLED);
  ck_assert_uint_eq(loopback_requests(&zk, "getData"), reads);
  lk_sync_cancel_free(call.cancel);
  stop();
}
END_TEST

static bool is_readable(int fd)
{
  struct pollfd p = {.fd = fd, .events = POLLIN};

  return poll(&p, 1, 0) == 1;
}

START_TEST(descriptor_is_readable_while_the_lock_is_not_held)
{
  start_with(NULL);
  int fd = lk_sync_lock_fd(lock);

  ck_assert_int_ge(fd, 0);
  for (int i = 0; i < 2; i++) {
    ck_assert(is_readable(fd));
    ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
    ck_assert(!is_readable(fd));
    ck_assert_int_eq(lk_sync_lock_fd(lock), fd);
    ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
  }
  ck_assert(is_readable(fd));
  lk_sync_lock_free(lock);
  lock = NULL;
  ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
  stop();
}
END_TEST

START_TEST(node_of_a_lock_has_its_access_list)
{
  const lk_acl entries[] = {{LK_PERM_ALL, lk_text("digest"), lk_text("u:h")},
                            {LK_PERM_READ | LK_PERM_CREATE | LK_PERM_DELETE,
                             lk_text("world"), lk_text("anyone")}};
  const lk_acls acls = {entries, 2};
  const lk_lock_config config = {.size = sizeof config, .acl = &acls};

  start_with(&config);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  loopback_lock(&zk);
  const char *node = model_child(&zk.server, "/locks/a", 0);

  ck_assert_str_eq(model_acl(&zk.server, node),
                   "31 digest u:h, 13 world anyone");
  loopback_unlock(&zk);
  stop();
}
END_TEST

START_TEST(members_of_a_multilock_have_tokens_while_it_is_held)
{
  const lk_multilock_part members[] = {{"/locks/m", LK_MULTILOCK_MUTEX},
                                       {"/locks/n", LK_MULTILOCK_MUTEX}};
  lk_sync_lock *both;

  start_with(NULL);
  ck_assert_int_eq(
      lk_sync_multilock_new(&both, client, members, 2, NULL, NULL, NULL, NULL),
      0);
  ck_assert_uint_eq(lk_sync_multilock_token(both, "/locks/n"), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(both, &soon), 0);
  loopback_lock(&zk);
  const char *node = model_child(&zk.server, "/locks/n", 0);
  int64_t czxid = model_node(&zk.server, node)->stat.czxid;

  loopback_unlock(&zk);
  ck_assert_uint_eq(lk_sync_multilock_token(both, "/locks/n"), (uint64_t)czxid);
  ck_assert_uint_eq(lk_sync_multilock_token(both, "/locks/a"), 0);
  ck_assert_int_eq(lk_sync_lock_release(both), 0);
  ck_assert_uint_eq(lk_sync_multilock_token(both, "/locks/n"), 0);
  lk_sync_lock_free(both);
  stop();
}
END_TEST

START_TEST(each_reply_moves_the_deadline_of_the_holder)
{
  const lk_lease_config ping = {.size = sizeof ping,
                                .assurance = LK_ASSURE_PING};

  lease = &ping;
  start_with(NULL);
  lease = NULL;
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  int64_t first_ms = lk_sync_lock_deadline(lock);

  usleep(5000);
  ck_assert_int_eq(lk_sync_exists(client, NULL, "/locks", &soon), 0);
  /* The handle's thread publishes the deadline before it executes this call. */
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, do_nothing, NULL), 0);
  ck_assert_int_ge(lk_sync_lock_deadline(lock), first_ms + 5);
  stop();
}
END_TEST

START_TEST(semaphore_copies_the_path_of_its_limit)
{
  char path[] = "/locks/n";
  const lk_semaphore_config options = {
      .size = sizeof options, .permits = 2, .limit_path = path};
  lk_sync_lock *semaphore;

  start_with(NULL);
  ck_assert_int_eq(lk_sync_semaphore_new(&semaphore, client, "/locks/s", NULL,
                                         &options, NULL, NULL),
                   0);
  path[sizeof path - 2] = 'm'; /* the caller changes its own string */
  ck_assert_int_eq(lk_sync_lock_acquire(semaphore, &soon), 0);
  loopback_lock(&zk);
  ck_assert_ptr_nonnull(model_node(&zk.server, "/locks/n"));
  ck_assert_ptr_null(model_node(&zk.server, "/locks/m"));
  loopback_unlock(&zk);
  lk_sync_lock_free(semaphore);
  stop();
}
END_TEST

/* ---- releasing ----------------------------------------------------------- */

static size_t contenders(void)
{
  loopback_lock(&zk);
  size_t count = model_children(&zk.server, "/locks/a");

  loopback_unlock(&zk);
  return count;
}

START_TEST(release_with_a_cancel_that_is_set_already_releases)
{
  lk_sync_call call = {.size = sizeof call};

  start_with(NULL);
  ck_assert_int_eq(lk_sync_cancel_new(&call.cancel, client), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_uint_eq(contenders(), 1);
  lk_sync_cancel_set(call.cancel);
  /* The handle's thread has already processed the waiting calls. */
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, do_nothing, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &call), LK_ERR_CANCELLED);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_server_sync(client, "/", &soon), 0);
  ck_assert_uint_eq(contenders(), 1); /* the one that was released is gone */
  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &soon), 0);
  ck_assert_uint_eq(contenders(), 0);
  lk_sync_cancel_free(call.cancel);
  stop();
}
END_TEST

/* The bound of lk_lock_release() is for programs with a loop of their own. */
START_TEST(release_that_waits_has_the_deadline_of_its_call_alone)
{
  const lk_sync_call call = {.size = sizeof call, .timeout_ms = 1800};

  start_with(NULL);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  loopback_freeze(&zk);
  int64_t begun_ms = lk_sync_client_clock(client);

  ck_assert_int_eq(lk_sync_lock_release_wait(lock, &call), LK_ERR_DEADLINE);
  ck_assert_int_ge(lk_sync_client_clock(client) - begun_ms, 1800);
  loopback_thaw(&zk);
  stop();
}
END_TEST

static atomic_uint losses;

static void count_loss(lk_sync_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  (void)arg;
  if (event->type == LK_LOCK_EVENT_LOST)
    losses++;
}

START_TEST(lock_that_is_being_released_is_not_lost_by_closing)
{
  int (*const end)(void *) = close_client;
  waiter w;

  on_lock_event = count_loss;
  start_with(NULL);
  on_lock_event = NULL;
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  loopback_freeze(&zk);
  waiter_start(&w, end_when_inside, (void *)(uintptr_t)&end);
  ck_assert_int_ne(lk_sync_lock_release_wait(lock, &soon), 0);
  (void)waiter_end(&w);
  ck_assert_uint_eq(losses, 0);
  loopback_thaw(&zk);
  stop();
}
END_TEST

/* ---- threads that share a handle ----------------------------------------- */

static int try_lock(void *arg)
{
  return lk_sync_lock_try(arg, &soon);
}

static int release_lock(void *arg)
{
  return lk_sync_lock_release_wait(arg, &soon);
}

/* The result of `what` in a thread of its own. */
static int in_thread(int (*what)(void *arg), lk_sync_lock *l)
{
  waiter w;

  waiter_start(&w, what, l);
  return waiter_end(&w);
}

/* Two threads that share a handle by mistake must not hold together. */
START_TEST(acquire_of_another_thread_is_refused_and_its_release_is_not)
{
  start_with(NULL);
  ck_assert_int_eq(in_thread(try_lock, lock), 0); /* that thread has ended */
  ck_assert_uint_eq(lk_sync_lock_count(lock), 1);
  ck_assert(lk_sync_lock_ok(lock));
  ck_assert_uint_ne(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_STATE);
  ck_assert_int_eq(in_thread(try_lock, lock), LK_ERR_STATE);
  ck_assert_int_eq(in_thread(release_lock, lock), 0);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(in_thread(try_lock, lock), LK_ERR_STATE);
  ck_assert_int_eq(in_thread(release_lock, lock), 0);
  ck_assert_uint_eq(lk_sync_lock_count(lock), 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  stop();
}
END_TEST

START_TEST(acquire_during_that_of_another_thread_is_refused)
{
  waiter w;

  start_with(NULL);
  lk_sync_lock *holder = clone_of(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(holder, &soon), 0);
  waiter_start(&w, acquire_lock, NULL);
  while (lk_sync_lock_get_state(lock) != LK_LOCK_ACQUIRING)
    usleep(200);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_lock_release(holder), 0);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert_int_eq(lk_sync_lock_get_state(lock), LK_LOCK_HELD);
  lk_sync_lock_free(holder);
  stop();
}
END_TEST

START_TEST(lost_lock_is_released_by_any_thread_before_the_next_acquire)
{
  start_unsure();
  loopback_lock(&zk);
  model_delete(&zk.server, model_child(&zk.server, "/locks/a", 0));
  loopback_unlock(&zk);
  loopback_thaw(&zk);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &soon), LK_ERR_LOST);
  ck_assert_uint_eq(lk_sync_lock_token(lock), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), LK_ERR_LOST);
  ck_assert_int_eq(in_thread(try_lock, lock), LK_ERR_STATE);
  ck_assert_int_eq(in_thread(release_lock, lock), LK_ERR_LOST);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(in_thread(try_lock, lock), 0);
  stop();
}
END_TEST

START_TEST(handles_of_one_lock_exclude_each_other)
{
  const lk_multilock_part members[] = {{"/locks/n", LK_MULTILOCK_WRITE},
                                       {"/locks/m", LK_MULTILOCK_READ}};
  const lk_semaphore_config one = {.size = sizeof one, .permits = 1};
  lk_sync_lock *locks[3];

  start_with(NULL);
  ck_assert_int_eq(lk_sync_multilock_new(&locks[0], client, members, 2, NULL,
                                         NULL, NULL, NULL),
                   0);
  ck_assert_int_eq(lk_sync_semaphore_new(&locks[1], client, "/locks/s", NULL,
                                         &one, NULL, NULL),
                   0);
  ck_assert_int_eq(
      lk_sync_single_new(&locks[2], client, "/locks/x", NULL, NULL, NULL, NULL),
      0);
  for (size_t i = 0; i < 3; i++) {
    lk_sync_lock *other = clone_of(locks[i]);

    ck_assert_str_eq(lk_sync_lock_path(other), lk_sync_lock_path(locks[i]));
    ck_assert_int_eq(lk_sync_lock_try(locks[i], &soon), 0);
    ck_assert_int_eq(lk_sync_lock_try(other, &soon), LK_ERR_BUSY);
    ck_assert_int_eq(lk_sync_lock_release(locks[i]), 0);
    ck_assert_int_eq(lk_sync_lock_acquire(other, &soon), 0);
    ck_assert_int_eq(lk_sync_lock_try(locks[i], &soon), LK_ERR_BUSY);
    lk_sync_lock_free(other);
    lk_sync_lock_free(locks[i]);
  }
  stop();
}
END_TEST

static int try_both_sides(void *arg)
{
  lk_sync_rwlock *both = arg;
  int err = lk_sync_lock_try(lk_sync_rwlock_write_side(both), &soon);

  return err == LK_ERR_STATE
             ? lk_sync_lock_try(lk_sync_rwlock_read_side(both), &soon)
             : 0;
}

static int downgrade(void *arg)
{
  return lk_sync_rwlock_downgrade(arg, &soon);
}

START_TEST(sides_of_one_handle_belong_to_one_thread)
{
  lk_sync_lock *clone;
  waiter w;

  start_with(NULL);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rw, client, "/locks/rw", NULL, NULL, NULL), 0);
  lk_sync_lock *read = lk_sync_rwlock_read_side(rw);
  lk_sync_lock *write = lk_sync_rwlock_write_side(rw);

  ck_assert_int_eq(lk_sync_lock_clone(&clone, read, NULL), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_sync_lock_acquire(write, &soon), 0);
  waiter_start(&w, try_both_sides, rw);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_STATE);
  waiter_start(&w, downgrade, rw);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert(lk_sync_lock_ok(read) && !lk_sync_lock_ok(write));
  ck_assert_int_eq(lk_sync_lock_acquire(read, &soon), 0); /* its own */
  waiter_start(&w, try_both_sides, rw);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_STATE);
  lk_sync_rwlock_free(rw);
  stop();
}
END_TEST

START_TEST(lock_of_a_candidate_cannot_be_acquired)
{
  lk_sync_candidate *candidate, *second;

  start_with(NULL);
  ck_assert_int_eq(lk_sync_candidate_new(&candidate, lock, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_try(lock, &soon), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release(lock), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_candidate_new(&second, lock, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_candidate_start(candidate), 0);
  ck_assert_int_eq(lk_sync_lock_verify(lock, &soon), LK_ERR_NOT_HELD);
  ck_assert_int_eq(lk_sync_candidate_wait_elected(candidate, &soon), 0);
  lk_sync_candidate_free(candidate);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_new(&candidate, lock, NULL), LK_ERR_STATE);
  stop();
}
END_TEST

static int wait_until_certain(void *arg)
{
  return lk_sync_lock_wait_certain(arg, &soon);
}

START_TEST(several_threads_may_wait_while_it_is_unsure)
{
  enum { COUNT = 3 };
  waiter waiters[COUNT];

  start_unsure();
  for (unsigned i = 0; i < COUNT; i++)
    waiter_start(&waiters[i], wait_until_certain, lock);
  waiters_inside(client, COUNT);
  ck_assert_int_eq(lk_sync_lock_wait_certain(lock, &brief), LK_ERR_DEADLINE);
  loopback_thaw(&zk);
  for (unsigned i = 0; i < COUNT; i++)
    ck_assert_int_eq(waiter_end(&waiters[i]), 0);
  stop();
}
END_TEST

START_TEST(release_ends_the_waits_of_other_threads)
{
  waiter w;

  start_unsure();
  waiter_start(&w, wait_until_certain, lock);
  waiters_inside(client, 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  ck_assert_int_eq(waiter_end(&w), LK_ERR_NOT_HELD);
  loopback_thaw(&zk);
  stop();
}
END_TEST

/* On the client's thread: the deadline moves between a release of another
 * thread and its request. */
static void publish_after_release(lk_client *c, void *released)
{
  (void)c;
  pause_thread(c, released);
  lk__sync_locks_publish(client);
}

static int run_publish(void *released)
{
  return lk_sync_client_run_on_thread(client, publish_after_release, released);
}

START_TEST(reply_before_a_release_is_sent_does_not_undo_it)
{
  atomic_bool released = false;
  waiter w;

  start_with(NULL);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, run_publish, &released);
  waiters_inside(client, 1);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  atomic_store(&released, true);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert(!lk_sync_lock_ok(lock));
  ck_assert_int_eq(lk_sync_lock_deadline(lock), INT64_MIN);
  stop();
}
END_TEST

START_TEST(candidate_of_a_side_excludes_the_other_side)
{
  lk_sync_candidate *candidate;

  start_with(NULL);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rw, client, "/locks/rw", NULL, NULL, NULL), 0);
  lk_sync_lock *read = lk_sync_rwlock_read_side(rw);
  lk_sync_lock *write = lk_sync_rwlock_write_side(rw);

  ck_assert_int_eq(lk_sync_lock_acquire(write, &soon), 0);
  ck_assert_int_eq(lk_sync_candidate_new(&candidate, read, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release(write), 0);
  ck_assert_int_eq(lk_sync_candidate_new(&candidate, write, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(read, &soon), LK_ERR_STATE);
  lk_sync_candidate_free(candidate);
  ck_assert_int_eq(lk_sync_lock_acquire(read, &soon), 0);
  lk_sync_rwlock_free(rw);
  stop();
}
END_TEST

/* On the client's thread, while another thread has begun to free the lock. */
static void release_freed(lk_client *c, void *go)
{
  (void)c;
  pause_thread(c, go);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
}

static int run_release(void *go)
{
  return lk_sync_client_run_on_thread(client, release_freed, go);
}

/* The free was queued first, and the release of the callback behind it. */
START_TEST(lock_that_is_being_freed_may_be_released_in_a_callback)
{
  waiter w, freer;
  atomic_bool go = false;

  start_with(NULL);
  lk_sync_lock *other = clone_of(lock);

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  waiter_start(&w, run_release, &go);
  waiters_inside(client, 1);
  post(&freer, free_lock, 1);
  atomic_store(&go, true);
  ck_assert_int_eq(waiter_end(&w), 0);
  ck_assert_int_eq(waiter_end(&freer), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(other, &soon), 0);
  lk_sync_lock_free(other);
  stop();
}
END_TEST

/* On the client's thread, after lk_sync_client_free() has begun. */
static int made_while_freeing = 0;

static void make_while_freeing(lk_sync_client *c, lk_state state, int err,
                               void *arg)
{
  lk_sync_lock *made;

  (void)err;
  (void)arg;
  if (state == LK_STATE_CLOSED)
    made_while_freeing =
        lk_sync_lock_new(&made, c, "/locks/c", NULL, NULL, NULL);
}

START_TEST(no_lock_is_made_for_a_client_that_is_being_freed)
{
  lk_client_config client_config = {.size = sizeof client_config};
  lk_sync_config config = {.size = sizeof config,
                           .client = &client_config,
                           .on_state = make_while_freeing};
  lk_sync_client *c;

  start_with(NULL);
  client_config.hosts = zk.hosts;
  ck_assert_int_eq(lk_sync_client_new(&c, &config), 0);
  lk_sync_client_free(c);
  ck_assert_int_eq(made_while_freeing, LK_ERR_CLOSED);
  stop();
}
END_TEST

/* Each thread acquires and releases, also what the other one has acquired. */
static atomic_int rounds_left;

static int acquire_or_release(void *arg)
{
  bool acquires = arg != NULL;

  while (rounds_left > 0) {
    int err = acquires ? lk_sync_lock_acquire(lock, &soon)
                       : lk_sync_lock_release(lock);

    if (acquires && err == 0)
      rounds_left--;
    if (err != 0 && err != (acquires ? LK_ERR_STATE : LK_ERR_NOT_HELD))
      return err;
  }
  return 0;
}

START_TEST(release_by_another_thread_is_never_a_loss)
{
  waiter takers[2], releaser;

  start_with(NULL);
  rounds_left = 1000;
  for (int i = 0; i < 2; i++)
    waiter_start(&takers[i], acquire_or_release, &rounds_left);
  waiter_start(&releaser, acquire_or_release, NULL);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(waiter_end(&takers[i]), 0);
  ck_assert_int_eq(waiter_end(&releaser), 0);
  stop();
}
END_TEST

/* On the client's thread: a lock is made, and the held one released. */
static void make_and_release(lk_client *c, void *arg)
{
  lk_sync_lock *made;

  (void)c;
  (void)arg;
  ck_assert_int_eq(
      lk_sync_lock_new(&made, client, "/locks/c", NULL, NULL, &losses), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(made, NULL), LK_ERR_STATE);
  ck_assert_int_eq(lk_sync_lock_release(lock), 0);
  lock = made;
}

START_TEST(callback_may_make_and_release_locks)
{
  start_with(NULL);
  lk_sync_lock *first = lock;

  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_client_run_on_thread(client, make_and_release, NULL),
                   0);
  ck_assert_int_eq(lk_sync_lock_acquire(lock, &soon), 0);
  ck_assert_int_eq(lk_sync_lock_acquire(first, &soon), 0);
  lk_sync_lock_free(first);
  stop();
}
END_TEST

SUITE("locks", close_in_the_iteration_of_an_acquire_ends_both,
      free_in_the_iteration_of_an_acquire_ends_both,
      acquire_queued_behind_a_free_is_refused,
      locks_freed_while_held_leave_no_memory,
      wait_ends_when_the_lock_is_proven_again, wait_ends_when_the_lock_is_lost,
      downgrade_of_a_lost_lock_does_not_wait,
      wait_ends_when_the_client_is_closed_or_the_lock_freed,
      wait_ends_when_it_is_cancelled,
      descriptor_of_an_unsure_lock_is_opened_by_a_cancelled_thread,
      acquire_by_the_holder_counts_and_sends_nothing,
      call_that_acquires_again_may_be_refused, calls_for_locks_refuse_a_watch,
      verify_asks_the_server_and_ends_at_its_deadline,
      verify_with_a_cancel_that_is_set_already_sends_nothing,
      descriptor_is_readable_while_the_lock_is_not_held,
      node_of_a_lock_has_its_access_list,
      members_of_a_multilock_have_tokens_while_it_is_held,
      each_reply_moves_the_deadline_of_the_holder,
      semaphore_copies_the_path_of_its_limit,
      release_with_a_cancel_that_is_set_already_releases,
      lock_that_is_being_released_is_not_lost_by_closing,
      release_that_waits_has_the_deadline_of_its_call_alone,
      acquire_of_another_thread_is_refused_and_its_release_is_not,
      acquire_during_that_of_another_thread_is_refused,
      lost_lock_is_released_by_any_thread_before_the_next_acquire,
      handles_of_one_lock_exclude_each_other,
      sides_of_one_handle_belong_to_one_thread,
      lock_of_a_candidate_cannot_be_acquired,
      several_threads_may_wait_while_it_is_unsure,
      release_ends_the_waits_of_other_threads,
      reply_before_a_release_is_sent_does_not_undo_it,
      candidate_of_a_side_excludes_the_other_side,
      lock_that_is_being_freed_may_be_released_in_a_callback,
      no_lock_is_made_for_a_client_that_is_being_freed,
      release_by_another_thread_is_never_a_loss,
      callback_may_make_and_release_locks)
