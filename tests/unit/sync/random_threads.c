/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Threads that do anything with one client of the blocking interface, at any
   time: for the sanitizers. LATCHKEY_SEEDS is how many runs there are. */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/waiters.h"
#include "sync/call.h"
#include "unit/fake/loopback.h"

enum { THREADS = 8, LOCKS = 4, ROUNDS = 40 };

static loopback zk;
static lk_sync_client *client;
/* Of several kinds. The threads share these handles, and each thread has a
   clone of each. */
static lk_sync_lock *locks[LOCKS];
static lk_sync_rwlock *rwlock;
static lk_sync_subscription *subscription;
static lk_sync_cancel *cancel;
static bool deletes_nodes;  /* an operator deletes nodes */
static atomic_int holder;   /* thread that holds the lock of locks[0], from 1;
                               0: none */
static atomic_uint running; /* threads that have not ended */
static atomic_uint in_last_call; /* those of them that make their last call */

/* ---- chance -------------------------------------------------------------- */

typedef struct actor {
  pthread_t thread;
  int number; /* from 1 */
  uint64_t random_state;
  lk_sync_lock *clones[LOCKS];
  lk_sync_rwlock *rwlock_clone;
} actor;

static unsigned draw(actor *a, unsigned below)
{
  a->random_state =
      a->random_state * 6364136223846793005U + 1442695040888963407U;
  return (unsigned)(a->random_state >> 33) % below;
}

static lk_sync_call draw_call(actor *a)
{
  lk_sync_call call = {.size = sizeof call};

  call.timeout_ms = 1 + draw(a, 8);
  if (draw(a, 2) == 0)
    call.cancel = cancel;
  return call;
}

/* ---- what a thread does -------------------------------------------------- */

static void enter_section(const actor *a)
{
  int no_holder = 0;

  /* Two threads hold together. An assertion would be a cancellation point. */
  if (!deletes_nodes &&
      !atomic_compare_exchange_strong(&holder, &no_holder, a->number))
    abort();
}

static void leave_section(const actor *a)
{
  int number = a->number;

  (void)atomic_compare_exchange_strong(&holder, &number, 0);
}

static lk_sync_rwlock *draw_rwlock(actor *a)
{
  return draw(a, 2) == 0 ? rwlock : a->rwlock_clone;
}

static lk_sync_lock *draw_lock(actor *a)
{
  unsigned i = draw(a, LOCKS + 2);

  if (i == LOCKS)
    return lk_sync_rwlock_read_side(draw_rwlock(a));
  if (i > LOCKS)
    return lk_sync_rwlock_write_side(draw_rwlock(a));
  return draw(a, 2) == 0 ? locks[i] : a->clones[i];
}

static void use_lock(actor *a, lk_sync_lock *l)
{
  lk_op op = lk_op_check("/", -1);
  lk_sync_call call = draw_call(a);

  switch (draw(a, 6)) {
  case 0: (void)lk_sync_lock_verify(l, &call); break;
  case 1: (void)lk_sync_lock_wait_certain(l, &call); break;
  case 2: (void)lk_sync_lock_guarded_multi(l, NULL, &op, 1, &call); break;
  case 3: (void)lk_sync_lock_fd(l); break;
  case 4: (void)lk_sync_lock_ok(l); break;
  default: (void)lk_sync_rwlock_downgrade(draw_rwlock(a), &call); break;
  }
}

/* A handle of the other threads, too, which this thread has not acquired. */
static void use_shared_lock(actor *a)
{
  unsigned i = draw(a, LOCKS);

  use_lock(a, locks[i]);
  if (i > 0 && draw(a, 2) == 0) /* locks[0] has a section */
    (void)lk_sync_lock_release(locks[i]);
  if (draw(a, 2) == 0)
    (void)lk_sync_lock_release(lk_sync_rwlock_write_side(rwlock));
}

static void hold_lock(actor *a)
{
  lk_sync_lock *l = draw_lock(a);
  bool has_section = l == locks[0] || l == a->clones[0];
  lk_sync_call call = draw_call(a);
  int err = draw(a, 3) == 0 ? lk_sync_lock_try(l, &call)
                            : lk_sync_lock_acquire(l, &call);

  if (err == LK_ERR_LOST)
    (void)lk_sync_lock_release(l);
  if (err != 0)
    return;
  if (has_section)
    enter_section(a);
  for (unsigned i = draw(a, 3); i > 0; i--)
    use_lock(a, l);
  if (has_section)
    leave_section(a);
  else if (draw(a, 4) == 0)
    return; /* another thread releases it, if this is no clone */
  if (draw(a, 2) == 0)
    (void)lk_sync_lock_release(l);
  else
    (void)lk_sync_lock_release_wait(l, &call);
}

static void on_event(lk_sync_client *c, const lk_event *event, void *arg)
{
  (void)c;
  (void)event;
  (void)arg;
}

static void make_request(actor *a)
{
  lk_sync_call call = draw_call(a);
  lk_sync_watch *w = NULL;
  lk_sync_result *r = NULL;

  switch (draw(a, 6)) {
  case 0: (void)lk_sync_subscription_next(subscription, &r, &call); break;
  case 1: (void)lk_sync_set(client, NULL, "/s", lk_text("x"), -1, &call); break;
  case 2:
    call.on_event = on_event;
    call.watch = &w;
    (void)lk_sync_get(client, &r, "/s", &call);
    break;
  case 3: (void)lk_sync_get_children(client, &r, "/", &call); break;
  case 4: (void)lk_sync_cancel_set(cancel); break;
  default: lk_sync_cancel_clear(cancel); break;
  }
  lk_sync_result_free(r);
  lk_sync_watch_free(w);
}

static void do_nothing(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

static void make_lock(actor *a)
{
  lk_sync_call call = draw_call(a);
  lk_sync_lock *l;

  if (lk_sync_lock_new(&l, client, "/locks/a", NULL, NULL, NULL) != 0)
    return;
  (void)lk_sync_lock_try(l, &call);
  lk_sync_lock_free(l);
}

/* Disturbs the other threads. */
static void harm(actor *a)
{
  int cancel_state;

  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  switch (draw(a, 6)) {
  case 0: loopback_drop(&zk); break;
  case 1:
    loopback_freeze(&zk);
    usleep(draw(a, 3000));
    loopback_thaw(&zk);
    break;
  case 2:
    loopback_lock(&zk);
    const char *node =
        deletes_nodes ? model_child(&zk.server, "/locks/a", 0) : NULL;

    if (node != NULL)
      model_delete(&zk.server, node);
    loopback_unlock(&zk);
    break;
  default: (void)lk_sync_client_run_on_thread(client, do_nothing, NULL); break;
  }
  pthread_setcancelstate(cancel_state, NULL);
}

/* The last call of a thread. It ends only when the client is closed or the
   object of the call is freed. */
static void wait_for_the_end(actor *a)
{
  lk_sync_result *r = NULL;
  int err = 0;

  in_last_call++;
  switch (draw(a, 4)) {
  case 0:
    while (err == 0 || err == LK_ERR_NO_NODE) {
      err = lk_sync_subscription_next(subscription, &r, NULL);
      lk_sync_result_free(r);
    }
    break;
  case 1:
    while (err == 0)
      err = lk_sync_server_sync(client, "/", NULL);
    break;
  default: (void)lk_sync_lock_acquire(locks[draw(a, LOCKS)], NULL); break;
  }
  in_last_call--;
}

static void make_clones(actor *a)
{
  for (size_t i = 0; i < LOCKS; i++)
    ck_assert_int_eq(lk_sync_lock_clone(&a->clones[i], locks[i], NULL), 0);
  ck_assert_int_eq(lk_sync_rwlock_clone(&a->rwlock_clone, rwlock, NULL), 0);
}

static void end_actor(void *arg)
{
  actor *a = arg;

  leave_section(a);
  for (size_t i = 0; i < LOCKS; i++)
    lk_sync_lock_free(a->clones[i]);
  lk_sync_rwlock_free(a->rwlock_clone);
  running--;
}

static void *run_actor(void *arg)
{
  actor *a = arg;

  pthread_cleanup_push(end_actor, a);
  for (int i = 0; i < ROUNDS; i++) {
    switch (draw(a, 8)) {
    case 0:
    case 1:
    case 2:
    case 3: hold_lock(a); break;
    case 4:
    case 5: make_request(a); break;
    case 6: draw(a, 2) == 0 ? make_lock(a) : use_shared_lock(a); break;
    default: harm(a); break;
    }
    pthread_testcancel();
  }
  wait_for_the_end(a);
  pthread_cleanup_pop(1);
  return NULL;
}

/* ---- one run ------------------------------------------------------------- */

static void start(uint64_t seed)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  lk_semaphore_config two = {.size = sizeof two, .permits = 2};
  const lk_multilock_part members[] = {{.path = "/locks/a"},
                                       {.path = "/locks/d"}};

  loopback_start(&zk);
  zk.quiet = true;
  model_create(&zk.server, "/locks");
  model_create(&zk.server, "/s");
  deletes_nodes = seed % 2 == 0;
  holder = 0;
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
  ck_assert_int_eq(
      lk_sync_lock_new(&locks[0], client, "/locks/a", NULL, NULL, NULL), 0);
  ck_assert_int_eq(
      lk_sync_lock_new(&locks[1], client, "/locks/b", NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_semaphore_new(&locks[2], client, "/locks/c", NULL,
                                         &two, NULL, NULL),
                   0);
  ck_assert_int_eq(lk_sync_multilock_new(&locks[3], client, members, 2, NULL,
                                         NULL, NULL, NULL),
                   0);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&rwlock, client, "/locks/r", NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_subscribe_data(&subscription, client, "/s", NULL),
                   0);
  ck_assert_int_eq(lk_sync_cancel_new(&cancel, client), 0);
}

static void free_locks(void)
{
  for (size_t i = 0; i < LOCKS; i++) {
    lk_sync_lock_free(locks[i]);
    locks[i] = NULL;
  }
  lk_sync_rwlock_free(rwlock);
  rwlock = NULL;
}

static void stop(void)
{
  free_locks();
  lk_sync_subscription_free(subscription);
  lk_sync_cancel_free(cancel);
  lk_sync_client_free(client);
  loopback_stop(&zk);
}

/* A child holds no lock, and its calls do not hang. */
static void fork_child(void)
{
  int status;
  pid_t child = fork();

  if (child == 0) {
    alarm(60);
    if (lk_sync_lock_ok(locks[0]) ||
        lk_sync_lock_acquire(locks[0], NULL) != LK_ERR_FORKED ||
        lk_sync_server_sync(client, "/", NULL) != LK_ERR_FORKED ||
        lk_sync_client_close(client) != LK_ERR_FORKED)
      _exit(1);
    lk_sync_lock_free(locks[0]);
    lk_sync_client_free(client);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

/* Each thread that is left is in its last call. */
static bool are_all_inside(void)
{
  pthread_mutex_lock(&client->mutex);
  bool all = client->calls_inside == running && in_last_call == running;

  pthread_mutex_unlock(&client->mutex);
  return all;
}

static void run(uint64_t seed)
{
  actor main_actor = {.random_state = seed};
  actor actors[THREADS];

  start(seed);
  running = THREADS;
  in_last_call = 0;
  for (int i = 0; i < THREADS; i++) {
    actors[i] =
        (actor){.number = i + 1, .random_state = seed * 100 + (unsigned)i};
    make_clones(&actors[i]);
    ck_assert_int_eq(
        pthread_create(&actors[i].thread, NULL, run_actor, &actors[i]), 0);
  }
  usleep(draw(&main_actor, 30000));
  for (int i = 0; i < THREADS; i += 3) /* every third thread */
    (void)pthread_cancel(actors[i].thread);
  if (draw(&main_actor, 3) == 0)
    fork_child();
  if (draw(&main_actor, 2) == 0) {
    while (!are_all_inside())
      usleep(500);
    free_locks();
  }
  (void)lk_sync_client_close(client);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(actors[i].thread, NULL), 0);
  stop();
}

START_TEST(threads_may_call_any_function_at_any_time)
{
  const char *seeds = getenv("LATCHKEY_SEEDS");
  uint64_t count = seeds == NULL ? 20 : strtoull(seeds, NULL, 10);

  for (uint64_t seed = 1; seed <= count; seed++)
    run(seed);
}
END_TEST

SUITE("random_threads", threads_may_call_any_function_at_any_time)
