/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/scenarios.h"

/* Calls of the lock API in callbacks. No accepted call may complete twice,
   which a locker checks, or never, and no memory may be left. */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* locker.arg of a lock that is or was freed points here. */
static bool freeing;

static const char *call_name; /* for the message of a failure */
static unsigned callbacks;    /* invoked in this run of the sequence */
static unsigned act_at;       /* the number of the callback that calls `act` */
static void (*act)(locker *l);

enum { ACQUIRE, RELEASE, VERIFY, CALLS, ALL_CALLBACKS = 15 };
static const char *const names_of_calls[CALLS] = {"an acquire", "a release",
                                                  "a verify"};
static unsigned invoked; /* bits: completions of each call, and events */

static void expect(bool fine, const char *failure)
{
  if (!fine) /* an assertion costs a system call */
    ck_abort_msg("%s in callback %u: %s", call_name, act_at, failure);
}

static void on_callback(locker *l, const char *what)
{
  static const char *const completions[CALLS] = {"acquired", "released",
                                                 "verified"};
  unsigned i = 0;

  while (i < CALLS && strcmp(what, completions[i]) != 0)
    i++;
  invoked |= 1U << i;
  expect(i < CALLS || l->arg != &freeing, "an event for a freed lock");
  if (++callbacks == act_at)
    act(l);
}

/* ---- calls of a lock ----------------------------------------------------- */

/* A call that was accepted is pending until its result is set. */
static int start_call(locker *l, int call, int64_t timeout_ms)
{
  int *const results[CALLS] = {&l->acquired, &l->released, &l->verified};
  int last_result = *results[call];
  int err = LK_ERR_CLOSED;

  if (l->lock == NULL)
    return err;
  switch (call) {
  case ACQUIRE: err = locker_acquire(l, timeout_ms); break;
  case RELEASE: err = locker_try_release(l); break;
  case VERIFY: err = locker_verify(l); break;
  }
  if (err != 0)
    *results[call] = last_result;
  return err;
}

static int acquire(locker *l)
{
  return start_call(l, ACQUIRE, FOREVER);
}

static int count_pending(const locker *l)
{
  return (l->acquired == NOT_YET) + (l->released == NOT_YET) +
         (l->verified == NOT_YET);
}

/* During the free, callbacks still find the lock in the locker. */
static void free_lock(locker *l)
{
  if (l->lock == NULL || l->arg == &freeing)
    return;
  l->arg = &freeing;
  locker_free(l);
  expect(count_pending(l) == 0, "a callback was not invoked before the free");
}

/* ---- calls in callbacks -------------------------------------------------- */

static void reset(locker *l)
{
  lk_lock_reset(l->lock);
}

static void cancel(locker *l)
{
  lk_lock_cancel(l->lock);
}

static void release_all(locker *l)
{
  while (lk_lock_release(l->lock, NULL, NULL) == 0)
    expect(l->arg != &freeing, "a freed lock is held");
}

static void release_and_wait(locker *l)
{
  int err = start_call(l, RELEASE, FOREVER);

  expect(err != 0 || l->arg != &freeing, "a freed lock is held");
}

static void acquire_anew(locker *l)
{
  int err = acquire(l);

  expect(l->arg != &freeing || err == LK_ERR_CLOSED,
         "a freed lock is acquired");
}

static void release_and_acquire(locker *l)
{
  lk_lock_cancel(l->lock);
  release_all(l);
  acquire_anew(l);
}

static void acquire_too_late(locker *l)
{
  enum { HAS_PASSED = -2 }; /* a timeout below FOREVER */
  int err = start_call(l, ACQUIRE, HAS_PASSED);

  expect(l->arg != &freeing || err == LK_ERR_CLOSED,
         "a freed lock is acquired");
}

static void verify_again(locker *l)
{
  int err = start_call(l, VERIFY, FOREVER);

  expect(err != 0 || l->arg != &freeing, "a freed lock is verified");
}

static void send_guarded_multi(locker *l)
{
  (void)lk_lock_guarded_multi(l->lock, NULL, 0, NULL, NULL, NULL);
}

static void free_both(locker *l)
{
  (void)l;
  free_lock(&fx.own);
  free_lock(&fx.rival);
}

static void close_client(locker *l)
{
  int err = lk_client_close(l->p->link->client, NULL, NULL);

  expect(err != 0 || l->acquired != NOT_YET || l->arg == &freeing,
         "an acquire outlives the close");
}

static void free_client(locker *l)
{
  lk_client_free(l->p->link->client);
}

/* In callbacks of a free, only the client is freed. */
static void free_lock_and_client(locker *l)
{
  free_lock(l);
  free_client(l);
}

static void break_connection(locker *l)
{
  if (l->p->link->up)
    model_drop(l->p->link);
}

static const struct {
  const char *name;
  void (*act)(locker *l);
} calls_in_callbacks[] = {
    {"free", free_lock},
    {"reset", reset},
    {"cancel", cancel},
    {"release", release_all},
    {"release and wait", release_and_wait},
    {"acquire", acquire_anew},
    {"release and acquire", release_and_acquire},
    {"acquire too late", acquire_too_late},
    {"verify", verify_again},
    {"send a guarded multi", send_guarded_multi},
    {"free both locks", free_both},
    {"close the client", close_client},
    {"free the client", free_client},
    {"free the lock and the client", free_lock_and_client},
    {"break of the connection", break_connection},
};

/* ---- the sequence -------------------------------------------------------- */

/* No directory exists. */
static void begin(const kind *k)
{
  locker *const both[] = {&fx.own, &fx.rival};
  test_client *const clients[] = {&fx.own_client, &fx.rival_client};

  fixture_begin_empty(k);
  const lk_lock_config c =
      fixture_config((lk_lock_config){.unsure_when_suspended = true});

  for (int i = 0; i < 2; i++) {
    test_client_init(clients[i], &fx.server, NULL);
    ck_assert(fixture_try_make(both[i], clients[i], &c));
    both[i]->react = on_callback;
    both[i]->acquired = both[i]->released = both[i]->verified = 0;
  }
  model_turn(&fx.server);
}

/* The server reads requests, or does not. */
static void freeze_server(bool frozen)
{
  fx.own_client.link->frozen = frozen;
  fx.rival_client.link->frozen = frozen;
}

/* The waiter loses its node, and then its session. */
static void lose_place(locker *l)
{
  const char *node = fixture_node_of(l->p, 0);

  if (node != NULL)
    model_delete(&fx.server, node);
  model_run(&fx.server, T / 4);
  break_connection(l);
  model_expire(&fx.server, l->p->link->last_session);
  model_run(&fx.server, T / 4);
}

static void hold_twice_and_disconnect(locker *a)
{
  (void)acquire(a);
  model_turn(&fx.server);
  (void)start_call(a, VERIFY, FOREVER);
  (void)start_call(a, RELEASE, FOREVER);
  model_turn(&fx.server);
  (void)start_call(a, VERIFY, FOREVER);
  break_connection(a);
  model_run(&fx.server, T / 2);
}

/* Creates contenders of two libraries behind all others. With each kind, those
   of one library at least do not belong into the queue, which is reported. */
static void add_foreign_nodes(void)
{
  static const char *const names[] = {"x-lock-0000009998",
                                      "x__lock__0000009999"};
  const char *queue = fx.kind->queues[0];
  char path[64];

  for (size_t i = 0; i < COUNT(names) && model_node(&fx.server, queue); i++) {
    snprintf(path, sizeof path, "%s/%s", queue, names[i]);
    model_create(&fx.server, path);
  }
}

static void hand_over(locker *a, locker *b)
{
  (void)start_call(a, RELEASE, FOREVER);
  model_run(&fx.server, T / 2);
  (void)start_call(a, ACQUIRE, 50);
  model_run(&fx.server, 100);
  (void)start_call(b, RELEASE, FOREVER);
  model_run(&fx.server, T / 4);
}

/* The server does not answer, so the release completes with LK_ERR_DEADLINE
   after 1.5 s. */
static void release_late(locker *a)
{
  (void)acquire(a);
  model_run(&fx.server, T / 4);
  freeze_server(true);
  (void)start_call(a, RELEASE, FOREVER);
  model_run(&fx.server, 1600);
  freeze_server(false);
  model_run(&fx.server, T / 2);
}

static void lose_lock(locker *l)
{
  (void)acquire(l);
  model_run(&fx.server, T / 4);
  (void)start_call(l, VERIFY, FOREVER);
  model_expire(&fx.server, l->p->link->last_session);
  model_run(&fx.server, T / 2);
  (void)start_call(l, RELEASE, FOREVER);
}

/* Frees both locks while calls of both are outstanding. */
static void free_both_with_pending_calls(locker *a, locker *b)
{
  (void)acquire(a);
  model_run(&fx.server, T / 4);
  freeze_server(true);
  (void)acquire(b);
  (void)start_call(a, VERIFY, FOREVER);
  (void)acquire(a);
  free_lock(b);
  (void)start_call(a, RELEASE, FOREVER);
  free_lock(a);
  freeze_server(false);
}

static void finish(void)
{
  test_client *const clients[] = {&fx.own_client, &fx.rival_client};

  model_run(&fx.server, T);
  for (int i = 0; i < 2; i++)
    model_expire(&fx.server, clients[i]->link->last_session);
  model_run(&fx.server, T);
  expect(count_pending(&fx.own) + count_pending(&fx.rival) == 0,
         "a call never completed");
  for (int i = 0; i < 2; i++)
    test_client_free(clients[i]);
  model_done(&fx.server);
}

static void run_sequence(const kind *k, locker *a, locker *b)
{
  callbacks = 0;
  begin(k);
  (void)acquire(a);
  model_turn(&fx.server);
  (void)start_call(b, ACQUIRE, 10 * T);
  model_run(&fx.server, T / 4);
  lose_place(b);
  hold_twice_and_disconnect(a);
  add_foreign_nodes();
  hand_over(a, b);
  release_late(a);
  lose_lock(b);
  free_both_with_pending_calls(a, b);
  finish();
}

static void call_in_each_callback(const kind *k, locker *a, locker *b)
{
  for (size_t i = 0; i < COUNT(calls_in_callbacks); i++) {
    call_name = calls_in_callbacks[i].name;
    act = calls_in_callbacks[i].act;
    act_at = 0;
    invoked = 0;
    do {
      act_at++;
      run_sequence(k, a, b);
    } while (callbacks >= act_at);
    expect(invoked == ALL_CALLBACKS, "a kind of callback was never invoked");
    expect(act_at > 14, "hardly any callback was invoked");
  }
}

SCENARIO(every_call_is_allowed_in_every_callback)
{
  call_in_each_callback(k, &fx.own, &fx.rival);
  if (k->rival_differs)
    call_in_each_callback(k, &fx.rival, &fx.own);
}

/* ---- callbacks of a freed or reset lock ---------------------------------- */

/* Begins with a call of the own lock that the server does not answer.
   `in_callback` is called when the call completes. */
static void begin_with_pending(const kind *k, int call,
                               void (*in_callback)(locker *l))
{
  call_name = names_of_calls[call];
  act = in_callback;
  act_at = 0; /* not in callbacks of the preparation */
  begin(k);
  if (call != ACQUIRE)
    ck_assert_int_eq(acquire(&fx.own), 0);
  model_turn(&fx.server);
  freeze_server(true);
  ck_assert_int_eq(start_call(&fx.own, call, FOREVER), 0);
  model_turn(&fx.server);
  callbacks = 0;
  act_at = 1;
}

static void end_with_pending(int expected_callbacks)
{
  expect(callbacks == (unsigned)expected_callbacks,
         "not exactly the callbacks of pending calls were invoked");
  freeze_server(false);
  free_both(NULL);
  finish();
}

SCENARIO(calls_are_refused_in_callbacks_of_a_freed_lock)
{
  static void (*const in_callback[])(locker * l) = {
      acquire_anew, acquire_too_late, release_and_wait, release_all,
      verify_again};

  for (int call = 0; call < CALLS; call++) {
    for (size_t i = 0; i < COUNT(in_callback); i++) {
      begin_with_pending(k, call, in_callback[i]);
      free_lock(&fx.own);
      end_with_pending(1);
    }
  }
}

/* After lk_lock_reset() a lock can be acquired, even in a callback that the
   reset invokes. */
SCENARIO(acquire_in_a_callback_of_a_reset_lock_is_granted)
{
  for (int call = 0; call < CALLS; call++) {
    begin_with_pending(k, call, acquire_anew);
    lk_lock_reset(fx.own.lock);
    expect(fx.own.acquired == NOT_YET, "the acquire was not accepted");
    freeze_server(false);
    model_run(&fx.server, T);
    expect(fx.own.acquired == 0, "the acquire did not complete");
    expect(lk_lock_get_state(fx.own.lock) == LK_LOCK_HELD,
           "the lock is not held");
    callbacks--; /* that of the acquire */
    end_with_pending(1);
  }
}

/* lk_lock_reset() ends an acquire and a release, and the first callback frees
   the lock. */
SCENARIO(free_in_a_callback_of_a_reset_lock_completes_the_other_calls)
{
  begin_with_pending(k, RELEASE, free_lock);
  ck_assert_int_eq(acquire(&fx.own), 0);
  expect(count_pending(&fx.own) == 2, "a call has completed");
  lk_lock_reset(fx.own.lock);
  end_with_pending(2);
}

const scenario callback_scenarios[] = {
    &every_call_is_allowed_in_every_callback,
    &calls_are_refused_in_callbacks_of_a_freed_lock,
    &acquire_in_a_callback_of_a_reset_lock_is_granted,
    &free_in_a_callback_of_a_reset_lock_completes_the_other_calls, NULL};
