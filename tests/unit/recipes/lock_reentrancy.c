/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#include <stdio.h>

/*
 * Calls of the lock API in callbacks, for every kind of lock. One sequence of
 * two handles is run many times: each run makes another call in another
 * callback. No accepted call may complete twice or never, and no memory may be
 * left.
 */

typedef struct handle {
  test_client *p;
  lk_lock *lock; /* NULL: freed */
  lk_rwlock *rw; /* the read-write lock of which it is a side, or NULL */
  bool freeing;
  int pending; /* number of calls that were accepted and have not completed */
} handle;

static model_server server;
static test_client clients[2];
static handle handles[2];

static const char *kind_name;
static const char *call_name;
static unsigned calls;
static unsigned act_at;
static void (*act)(handle *h);

enum { ACQUIRED = 1, RELEASED = 2, VERIFIED = 4, NOTIFIED = 8, ALL = 15 };
static unsigned seen;

static void expect(bool fine, const char *what)
{
  ck_assert_msg(fine, "%s, %s in callback %u: %s", kind_name, call_name, act_at,
                what);
}

/* ---- callbacks ---------------------------------------------------------- */

static void called(handle *h, unsigned which)
{
  seen |= which;
  if (++calls == act_at)
    act(h);
}

static void ended(handle *h, unsigned which)
{
  expect(--h->pending >= 0, "a call ended twice");
  called(h, which);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  ended(arg, ACQUIRED);
}

static void on_released(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  ended(arg, RELEASED);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  ended(arg, VERIFIED);
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  handle *h = arg;

  (void)l;
  (void)event;
  expect(!h->freeing, "an event for a handle that is freed");
  called(h, NOTIFIED);
}

/* ---- calls of a handle --------------------------------------------------- */

/* The caller has counted the call as pending already, since it may complete in
 * any callback from then on. A refused call is not pending. */
static int uncount_if_refused(handle *h, int err)
{
  if (err != 0)
    h->pending--;
  return err;
}

static int acquire(handle *h, int64_t timeout_ms)
{
  if (h->lock == NULL)
    return LK_ERR_CLOSED;
  h->pending++;
  return uncount_if_refused(
      h, lk_lock_acquire(h->lock, timeout_ms, on_acquired, h));
}

static int release(handle *h)
{
  if (h->lock == NULL)
    return LK_ERR_CLOSED;
  h->pending++;
  return uncount_if_refused(h, lk_lock_release(h->lock, on_released, h));
}

static int verify(handle *h)
{
  if (h->lock == NULL)
    return LK_ERR_CLOSED;
  h->pending++;
  return uncount_if_refused(h, lk_lock_verify(h->lock, on_verified, h));
}

/* During the free, callbacks still find the lock in the handle. */
static void free_lock(handle *h)
{
  if (h->lock == NULL || h->freeing)
    return;
  h->freeing = true;
  if (h->rw != NULL)
    lk_rwlock_free(h->rw);
  else
    lk_lock_free(h->lock);
  h->lock = NULL;
}

/* ---- calls in callbacks -------------------------------------------------- */

static void reset(handle *h)
{
  lk_lock_reset(h->lock);
}

static void cancel(handle *h)
{
  lk_lock_cancel(h->lock);
}

static void release_all(handle *h)
{
  while (lk_lock_release(h->lock, NULL, NULL) == 0)
    expect(!h->freeing, "a freed lock is held");
}

static void release_and_wait(handle *h)
{
  int err = release(h);

  expect(err != 0 || !h->freeing, "a freed lock is held");
}

static void acquire_anew(handle *h)
{
  int err = acquire(h, LK_NO_LIMIT);

  expect(!h->freeing || err == LK_ERR_CLOSED, "a freed lock is acquired");
}

static void release_and_acquire(handle *h)
{
  lk_lock_cancel(h->lock);
  release_all(h);
  acquire_anew(h);
}

static void try_late(handle *h)
{
  int err = acquire(h, -2);

  expect(!h->freeing || err == LK_ERR_CLOSED, "a freed lock is acquired");
}

static void verify_again(handle *h)
{
  int err = verify(h);

  expect(err != 0 || !h->freeing, "a freed lock is verified");
}

static void free_both(handle *h)
{
  (void)h;
  free_lock(&handles[0]);
  free_lock(&handles[1]);
}

static void close_client(handle *h)
{
  (void)lk_client_close(h->p->link->client, NULL, NULL);
}

static void free_client(handle *h)
{
  lk_client_free(h->p->link->client);
}

/* Where it is being freed, that is called for already. */
static void free_all(handle *h)
{
  free_lock(h);
  lk_client_free(h->p->link->client);
}

typedef struct call_in_callback {
  const char *name;
  void (*act)(handle *h);
} call_in_callback;

static const call_in_callback calls_in_callbacks[] = {
    {"free", free_lock},
    {"reset", reset},
    {"cancel", cancel},
    {"release", release_all},
    {"release and wait", release_and_wait},
    {"acquire", acquire_anew},
    {"let go and acquire", release_and_acquire},
    {"a late acquire", try_late},
    {"verify", verify_again},
    {"free both locks", free_both},
    {"close the client", close_client},
    {"free the client", free_client},
    {"free all", free_all},
};

/* ---- kinds -------------------------------------------------------------- */

static lk_lock_config config_for(handle *h)
{
  return (lk_lock_config){.size = sizeof(lk_lock_config),
                          .unsure_when_suspended = true,
                          .on_event = on_event,
                          .arg = h};
}

static int make_mutex(handle *h)
{
  const lk_lock_config c = config_for(h);

  return lk_lock_new(&h->lock, h->p->link->client, "/k/x", &c);
}

static int make_local(handle *h)
{
  lk_lock_config c = config_for(h);

  c.local_queue = true;
  return lk_lock_new(&h->lock, h->p->link->client, "/k/x", &c);
}

/* The first handle is the write side, the second a read side. */
static int make_side(handle *h)
{
  const lk_lock_config c = config_for(h);
  int err = lk_rwlock_new(&h->rw, h->p->link->client, "/k/x", &c);

  if (err == 0)
    h->lock = h == &handles[0] ? lk_rwlock_write_side(h->rw)
                               : lk_rwlock_read_side(h->rw);
  return err;
}

static int make_semaphore(handle *h)
{
  const lk_lock_config c = config_for(h);
  const lk_semaphore_config one = {.size = sizeof one, .permits = 1};

  return lk_semaphore_new(&h->lock, h->p->link->client, "/k/x", &c, &one);
}

static int make_multilock(handle *h)
{
  const lk_lock_config c = config_for(h);
  const lk_multilock_member members[] = {{"/k/x", LK_MULTILOCK_MUTEX},
                                         {"/k/y", LK_MULTILOCK_WRITE}};

  return lk_multilock_new(&h->lock, h->p->link->client, members, 2, &c, NULL);
}

static int make_single(handle *h)
{
  const lk_lock_config c = config_for(h);

  return lk_single_new(&h->lock, h->p->link->client, "/k/x", &c, NULL);
}

typedef struct kind {
  const char *name;
  int (*make)(handle *h);
} kind;

static const kind kinds[] = {
    {"mutex", make_mutex},         {"local queue", make_local},
    {"side", make_side},           {"semaphore", make_semaphore},
    {"multilock", make_multilock}, {"single", make_single},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- the sequence -------------------------------------------------------- */

static void begin(const kind *k)
{
  model_init(&server);
  model_create(&server, "/k");
  for (int i = 0; i < 2; i++) {
    test_client_init(&clients[i], &server, NULL);
    handles[i] = (handle){.p = &clients[i]};
    ck_assert_int_eq(k->make(&handles[i]), 0);
  }
  model_turn(&server);
}

static void freeze(bool frozen)
{
  for (int i = 0; i < 2; i++)
    clients[i].link->frozen = frozen;
}

static void hold_again_and_suspended(handle *a)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_turn(&server);
  (void)verify(a);
  (void)release(a);
  model_turn(&server);
  (void)verify(a);
  if (a->p->link->up)
    model_drop(a->p->link);
  model_run(&server, T / 2);
}

static void hand_over(handle *a, handle *b)
{
  (void)release(a);
  model_run(&server, T / 2);
  (void)acquire(a, 50);
  model_run(&server, 100);
  (void)release(b);
  model_run(&server, T / 4);
}

/* The server hangs, so the release completes late. */
static void release_late(handle *a)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  freeze(true);
  (void)release(a);
  model_run(&server, 1600);
  freeze(false);
  model_run(&server, T / 2);
}

static void be_lost(handle *a)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  (void)verify(a);
  model_expire(&server, a->p->link->last_session);
  model_run(&server, T / 2);
  (void)release(a);
}

/* Frees both handles while a holds and verifies and b waits, or after both are
 * released. */
static void end_all(handle *a, handle *b)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  freeze(true);
  (void)acquire(b, LK_NO_LIMIT);
  (void)verify(a);
  (void)acquire(a, LK_NO_LIMIT);
  free_lock(b);
  (void)release(a);
  free_lock(a);
  freeze(false);
}

static void finish(void)
{
  model_run(&server, T);
  for (int i = 0; i < 2; i++)
    model_expire(&server, clients[i].link->last_session);
  model_run(&server, T);
  for (int i = 0; i < 2; i++) {
    expect(handles[i].pending == 0, "a call never ended");
    test_client_free(&clients[i]);
  }
  model_done(&server);
}

static void run_sequence(const kind *k)
{
  handle *a = &handles[0], *b = &handles[1];

  calls = 0;
  begin(k);
  (void)acquire(a, LK_NO_LIMIT);
  model_turn(&server);
  (void)acquire(b, 10 * T);
  model_run(&server, T / 4);
  hold_again_and_suspended(a);
  hand_over(a, b);
  release_late(a);
  be_lost(b);
  end_all(a, b);
  finish();
}

START_TEST(every_call_is_allowed_in_every_callback_of_a_lock)
{
  for (size_t i = 0; i < COUNT(kinds); i++) {
    for (size_t j = 0; j < COUNT(calls_in_callbacks); j++) {
      kind_name = kinds[i].name;
      call_name = calls_in_callbacks[j].name;
      act = calls_in_callbacks[j].act;
      act_at = 0;
      seen = 0;
      do {
        act_at++;
        run_sequence(&kinds[i]);
      } while (calls >= act_at);
      expect(seen == ALL, "a kind of callback was never called");
      expect(act_at > 12, "hardly any callback was called");
    }
  }
}
END_TEST

/* ---- where it is freed -------------------------------------------------- */

static const char *const ends[] = {"an acquire", "a release", "a verify"};

/* Begins with a call of the handle that the server does not answer. */
static void begin_with(const kind *k, size_t end, void (*what)(handle *h))
{
  handle *h = &handles[0];

  kind_name = k->name;
  call_name = ends[end];
  act = what;
  act_at = 0;
  begin(k);
  if (end > 0)
    ck_assert_int_eq(acquire(h, LK_NO_LIMIT), 0);
  model_turn(&server);
  freeze(true);
  if (end == 0)
    ck_assert_int_eq(acquire(h, LK_NO_LIMIT), 0);
  else
    ck_assert_int_eq(end == 1 ? release(h) : verify(h), 0);
  model_turn(&server);
  calls = 0;
  act_at = 1;
}

START_TEST(calls_are_refused_in_callbacks_of_a_freed_handle)
{
  static void (*const tries[])(handle * h) = {
      acquire_anew, try_late, release_and_wait, release_all, verify_again};

  for (size_t i = 0; i < COUNT(kinds); i++) {
    for (size_t j = 0; j < COUNT(ends) * COUNT(tries); j++) {
      begin_with(&kinds[i], j / COUNT(tries), tries[j % COUNT(tries)]);
      free_lock(&handles[0]);
      expect(calls == 1, "its end is told once");
      expect(handles[0].pending == 0, "nothing else was accepted");
      freeze(false);
      free_lock(&handles[1]);
      finish();
    }
  }
}
END_TEST

/* After lk_lock_reset() a handle can be acquired, even in a callback that the
 * reset invokes. */
START_TEST(acquire_in_a_callback_of_a_reset_handle_is_granted)
{
  for (size_t i = 0; i < COUNT(kinds); i++) {
    for (size_t j = 0; j < COUNT(ends); j++) {
      handle *h = &handles[0];

      begin_with(&kinds[i], j, acquire_anew);
      lk_lock_reset(h->lock);
      expect(calls == 1 && h->pending == 1, "it was accepted");
      freeze(false);
      model_run(&server, T);
      expect(h->pending == 0, "it was answered");
      expect(lk_lock_get_state(h->lock) == LK_LOCK_HELD, "it is held");
      free_lock(h);
      free_lock(&handles[1]);
      finish();
    }
  }
}
END_TEST

SUITE("lock_reentrancy", every_call_is_allowed_in_every_callback_of_a_lock,
      calls_are_refused_in_callbacks_of_a_freed_handle,
      acquire_in_a_callback_of_a_reset_handle_is_granted)
