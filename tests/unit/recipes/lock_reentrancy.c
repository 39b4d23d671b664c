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
  bool freeing;  /* free_lock() has been called */
  int pending;   /* number of calls that were accepted and have not completed */
} handle;

static model_server server;
static test_client clients[2];
static handle handles[2];

/* for the message of a failure */
static const char *kind_name;
static const char *call_name;

static unsigned callbacks; /* invoked in this run of the sequence */
static unsigned act_at;    /* the number of the callback that calls `act` */
static void (*act)(handle *h);

enum {
  ACQUIRED = 1,
  RELEASED = 2,
  VERIFIED = 4,
  NOTIFIED = 8,
  ALL_CALLBACKS = ACQUIRED | RELEASED | VERIFIED | NOTIFIED
};
static unsigned invoked; /* the kinds of callbacks that were invoked */

static void expect(bool fine, const char *failure)
{
  ck_assert_msg(fine, "%s, %s in callback %u: %s", kind_name, call_name, act_at,
                failure);
}

/* ---- callbacks ---------------------------------------------------------- */

static void note_callback(handle *h, unsigned which)
{
  invoked |= which;
  if (++callbacks == act_at)
    act(h);
}

static void note_completion(handle *h, unsigned which)
{
  expect(--h->pending >= 0, "a call completed twice");
  note_callback(h, which);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  note_completion(arg, ACQUIRED);
}

static void on_released(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  note_completion(arg, RELEASED);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  (void)l;
  (void)err;
  note_completion(arg, VERIFIED);
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  handle *h = arg;

  (void)l;
  (void)event;
  expect(!h->freeing, "an event for a handle that is freed");
  note_callback(h, NOTIFIED);
}

/* ---- calls of a handle --------------------------------------------------- */

/* A call is counted as pending before it is made: a callback that is invoked
 * during the call may free the lock, which completes the call. A refused call
 * is not pending. */
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
  expect(h->pending == 0, "a callback was not invoked before the free");
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

static void acquire_too_late(handle *h)
{
  enum { HAS_PASSED = -2 }; /* a timeout below LK_NO_LIMIT */
  int err = acquire(h, HAS_PASSED);

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

/* In callbacks of a free, only the client is freed. */
static void free_lock_and_client(handle *h)
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
    {"release and acquire", release_and_acquire},
    {"acquire too late", acquire_too_late},
    {"verify", verify_again},
    {"free both locks", free_both},
    {"close the client", close_client},
    {"free the client", free_client},
    {"free the lock and the client", free_lock_and_client},
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
  const lk_semaphore_config one_permit = {.size = sizeof one_permit,
                                          .permits = 1};

  return lk_semaphore_new(&h->lock, h->p->link->client, "/k/x", &c,
                          &one_permit);
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
    {"mutex", make_mutex},         {"side", make_side},
    {"semaphore", make_semaphore}, {"multilock", make_multilock},
    {"single", make_single},
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

/* From here on, the server reads no requests. */
static void freeze_server(void)
{
  for (int i = 0; i < 2; i++)
    clients[i].link->frozen = true;
}

static void unfreeze_server(void)
{
  for (int i = 0; i < 2; i++)
    clients[i].link->frozen = false;
}

static void hold_twice_and_disconnect(handle *a)
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

/* The server does not answer, so the release completes with LK_ERR_DEADLINE
 * after 1.5 s. */
static void release_late(handle *a)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  freeze_server();
  (void)release(a);
  model_run(&server, 1600);
  unfreeze_server();
  model_run(&server, T / 2);
}

static void lose_lock(handle *a)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  (void)verify(a);
  model_expire(&server, a->p->link->last_session);
  model_run(&server, T / 2);
  (void)release(a);
}

/* Frees both handles while calls of both are outstanding. */
static void free_both_with_pending_calls(handle *a, handle *b)
{
  (void)acquire(a, LK_NO_LIMIT);
  model_run(&server, T / 4);
  freeze_server();
  (void)acquire(b, LK_NO_LIMIT);
  (void)verify(a);
  (void)acquire(a, LK_NO_LIMIT);
  free_lock(b);
  (void)release(a);
  free_lock(a);
  unfreeze_server();
}

static void finish(void)
{
  model_run(&server, T);
  for (int i = 0; i < 2; i++)
    model_expire(&server, clients[i].link->last_session);
  model_run(&server, T);
  for (int i = 0; i < 2; i++) {
    expect(handles[i].pending == 0, "a call never completed");
    test_client_free(&clients[i]);
  }
  model_done(&server);
}

static void run_sequence(const kind *k)
{
  handle *a = &handles[0], *b = &handles[1];

  callbacks = 0;
  begin(k);
  (void)acquire(a, LK_NO_LIMIT);
  model_turn(&server);
  (void)acquire(b, 10 * T);
  model_run(&server, T / 4);
  hold_twice_and_disconnect(a);
  hand_over(a, b);
  release_late(a);
  lose_lock(b);
  free_both_with_pending_calls(a, b);
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
      invoked = 0;
      do {
        act_at++;
        run_sequence(&kinds[i]);
      } while (callbacks >= act_at);
      expect(invoked == ALL_CALLBACKS, "a kind of callback was never called");
      expect(act_at > 12, "hardly any callback was called");
    }
  }
}
END_TEST

/* ---- callbacks of a freed or reset handle -------------------------------- */

enum { ACQUIRE, RELEASE, VERIFY, CALLS }; /* the calls of a handle */
static const char *const call_names[CALLS] = {"an acquire", "a release",
                                              "a verify"};

static int make_call(handle *h, int call)
{
  switch (call) {
  case ACQUIRE: return acquire(h, LK_NO_LIMIT);
  case RELEASE: return release(h);
  default: return verify(h);
  }
}

/* Begins with a call of the first handle that the server does not answer.
 * `in_callback` is called when the call completes. */
static void begin_with_pending(const kind *k, int call,
                               void (*in_callback)(handle *h))
{
  handle *h = &handles[0];

  kind_name = k->name;
  call_name = call_names[call];
  act = in_callback;
  act_at = 0; /* not in callbacks of the preparation */
  begin(k);
  if (call != ACQUIRE)
    ck_assert_int_eq(acquire(h, LK_NO_LIMIT), 0);
  model_turn(&server);
  freeze_server();
  ck_assert_int_eq(make_call(h, call), 0);
  model_turn(&server);
  callbacks = 0;
  act_at = 1;
}

static void assert_refused(const kind *k, int call,
                           void (*in_callback)(handle *h))
{
  begin_with_pending(k, call, in_callback);
  free_lock(&handles[0]);
  expect(callbacks == 1, "not exactly one callback was invoked");
  expect(handles[0].pending == 0, "a call was accepted");
  unfreeze_server();
  free_lock(&handles[1]);
  finish();
}

START_TEST(calls_are_refused_in_callbacks_of_a_freed_handle)
{
  static void (*const in_callback[])(handle * h) = {
      acquire_anew, acquire_too_late, release_and_wait, release_all,
      verify_again};

  for (size_t i = 0; i < COUNT(kinds); i++) {
    for (int call = 0; call < CALLS; call++) {
      for (size_t j = 0; j < COUNT(in_callback); j++)
        assert_refused(&kinds[i], call, in_callback[j]);
    }
  }
}
END_TEST

/* After lk_lock_reset() a handle can be acquired, even in a callback that the
 * reset invokes. */
START_TEST(acquire_in_a_callback_of_a_reset_handle_is_granted)
{
  for (size_t i = 0; i < COUNT(kinds); i++) {
    for (int call = 0; call < CALLS; call++) {
      handle *h = &handles[0];

      begin_with_pending(&kinds[i], call, acquire_anew);
      lk_lock_reset(h->lock);
      expect(callbacks == 1, "not exactly one callback was invoked");
      expect(h->pending == 1, "the acquire was not accepted");
      unfreeze_server();
      model_run(&server, T);
      expect(h->pending == 0, "the acquire did not complete");
      expect(lk_lock_get_state(h->lock) == LK_LOCK_HELD,
             "the lock is not held");
      free_lock(h);
      free_lock(&handles[1]);
      finish();
    }
  }
}
END_TEST

/* lk_lock_reset() ends an acquire and a release, and the first callback frees
 * the lock. */
START_TEST(free_in_a_callback_of_a_reset_handle_completes_the_other_calls)
{
  for (size_t i = 0; i < COUNT(kinds); i++) {
    handle *h = &handles[0];

    begin_with_pending(&kinds[i], RELEASE, free_lock);
    ck_assert_int_eq(acquire(h, LK_NO_LIMIT), 0);
    expect(h->pending == 2, "a call has completed");
    lk_lock_reset(h->lock);
    expect(callbacks == 2, "not all callbacks were invoked");
    unfreeze_server();
    free_lock(&handles[1]);
    finish();
  }
}
END_TEST

SUITE("lock_reentrancy", every_call_is_allowed_in_every_callback_of_a_lock,
      calls_are_refused_in_callbacks_of_a_freed_handle,
      acquire_in_a_callback_of_a_reset_handle_is_granted,
      free_in_a_callback_of_a_reset_handle_completes_the_other_calls)
