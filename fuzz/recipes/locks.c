/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "world.h"

#include <latchkey/leader.h>
#include <latchkey/multilock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

/* Locks and candidates. */

enum { USERS = 4 };

/* A lock or a candidate, and which of its callbacks are due. */
typedef struct user {
  lk_lock *lock; /* NULL: there is none */
  lk_rwlock
      *rw; /* `lock` is its write side; its read side is the next user's */
  lk_candidate *candidate; /* of `lock`; NULL: none */
  bool owns_lock;          /* the candidate does */
  bool freeing;
  bool acquiring, releasing, verifying;
  const bool *calling; /* the one of these whose call has not returned yet */
  bool held, unsure;
} user;

static user users[USERS];

static void on_lock_event(lk_lock *l, const lk_lock_event *e, void *arg)
{
  user *u = arg;

  (void)l;
  switch (e->type) {
  case LK_LOCK_EVENT_UNSURE:
    must(u->held && !u->unsure);
    u->unsure = true;
    break;
  case LK_LOCK_EVENT_RENEWED:
    must(u->held && u->unsure);
    u->unsure = false;
    break;
  case LK_LOCK_EVENT_LOST:
    must(u->held && e->err != 0);
    u->held = u->unsure = false;
    break;
  case LK_LOCK_EVENT_WAITING:
  case LK_LOCK_EVENT_PLACE_LOST: must(!u->held); break;
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_UNWATCHED:
  case LK_LOCK_EVENT_REVOKED: break;
  }
  react();
}

/* Both sides of a read-write lock have the same callback. */
static void on_rwlock_event(lk_lock *l, const lk_lock_event *e, void *arg)
{
  user *u = arg;

  if (!u->freeing)
    on_lock_event(l, e, l == u->lock ? u : u + 1);
}

static void on_candidate_event(lk_candidate *c, const lk_candidate_event *e,
                               void *arg)
{
  user *u = arg;

  (void)c;
  switch (e->type) {
  case LK_CANDIDATE_EVENT_ELECTED:
    must(!u->held && e->term != 0);
    u->held = true;
    u->unsure = false;
    break;
  case LK_CANDIDATE_EVENT_UNSURE:
    must(u->held && !u->unsure);
    u->unsure = true;
    break;
  case LK_CANDIDATE_EVENT_RENEWED:
    must(u->held && u->unsure);
    u->unsure = false;
    break;
  case LK_CANDIDATE_EVENT_DEPOSED:
    must(u->held);
    u->held = u->unsure = false;
    break;
  case LK_CANDIDATE_EVENT_RETRYING:
  case LK_CANDIDATE_EVENT_ENDED: must(!u->held && e->err != 0); break;
  }
  react();
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  user *u = arg;

  must(u->acquiring && u->calling != &u->acquiring);
  u->acquiring = false;
  if (err == 0) {
    must(lk_lock_token(l) != 0 && lk_lock_count(l) > 0);
    u->held = true;
    u->unsure = lk_lock_get_state(l) == LK_LOCK_UNSURE;
  }
  react();
}

static void on_released(lk_lock *l, int err, void *arg)
{
  user *u = arg;

  (void)l;
  (void)err;
  must(u->releasing && u->calling != &u->releasing);
  u->releasing = false;
  react();
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  user *u = arg;

  (void)l;
  (void)err;
  must(u->verifying && u->calling != &u->verifying);
  u->verifying = false;
  react();
}

static user *take_user(void)
{
  return &users[take() % USERS];
}

static lk_lock_config take_config(user *u)
{
  unsigned options = take();
  lk_lock_config config = {.size = sizeof config,
                           .data = lk_text("data"),
                           .unsure_when_suspended = (options & 1) != 0,
                           .revocable = (options & 2) != 0,
                           .fail_on_expiry = (options & 4) != 0,
                           .max_queue = (options & 8) != 0 ? 1 : 0,
                           .peek = (options & 16) != 0,
                           .on_event = on_lock_event,
                           .arg = u};

  return config;
}

static void make_mutex(user *u)
{
  lk_lock_config config = take_config(u);

  config.layout = (lk_layout)(take() % (LK_LAYOUT_LATCH + 1));
  (void)lk_lock_new(&u->lock, client(), take_path(), &config);
}

static void make_rwlock(user *u)
{
  user *next = u + 1;
  lk_lock_config config = take_config(u);

  if (next == users + USERS || next->lock != NULL || next->freeing)
    return;
  config.layout = (lk_layout)(take() % LK_LAYOUT_LATCH);
  config.on_event = on_rwlock_event;
  if (lk_rwlock_new(&u->rw, client(), take_path(), &config) != 0)
    return;
  u->lock = lk_rwlock_write_side(u->rw);
  next->lock = lk_rwlock_read_side(u->rw);
}

static void make_semaphore(user *u)
{
  lk_lock_config config = take_config(u);
  lk_semaphore_config options = {.size = sizeof options,
                                 .permits = 1 + (int32_t)(take() % 3),
                                 .take = 1 + (int32_t)(take() % 2)};

  config.layout = take() % 2 == 0 ? LK_LAYOUT_CURATOR : LK_LAYOUT_KAZOO;
  options.limit_path = take() % 2 == 0 ? NULL : "/s";
  (void)lk_semaphore_new(&u->lock, client(), take_path(), &config, &options);
}

static void make_single(user *u)
{
  lk_lock_config config = take_config(u);
  lk_single_config options = {.size = sizeof options,
                              .poll_ms = (int32_t)(take() % 3) * 50};

  (void)lk_single_new(&u->lock, client(), take_path(), &config, &options);
}

static void make_multilock(user *u)
{
  lk_lock_config config = take_config(u);
  lk_multilock_part members[2] = {
      {take_path(), (lk_multilock_side)(take() % 3)},
      {take_path(), (lk_multilock_side)(take() % 3)}};

  config.layout = (lk_layout)(take() % LK_LAYOUT_LATCH);
  (void)lk_multilock_new(&u->lock, client(), members, 2, &config, NULL);
}

static void make_election(user *u)
{
  lk_lock_config config = take_config(u);
  lk_candidate_config options = {
      .size = sizeof options, .on_event = on_candidate_event, .arg = u};

  if (lk_election_new(&u->candidate, client(), take_path(), LK_LAYOUT_LATCH,
                      &config, &options) != 0)
    return;
  u->lock = lk_candidate_lock(u->candidate);
  u->owns_lock = true;
}

void do_make(void)
{
  static void (*const makers[])(user *) = {make_mutex,     make_rwlock,
                                           make_semaphore, make_single,
                                           make_multilock, make_election};
  user *u = take_user();
  unsigned kind = take();

  if (client() != NULL && u->lock == NULL && !u->freeing)
    makers[kind % (sizeof makers / sizeof makers[0])](u);
}

void do_make_candidate(void)
{
  user *u = take_user();
  lk_candidate_config options = {
      .size = sizeof options, .on_event = on_candidate_event, .arg = u};

  if (client() != NULL && u->lock != NULL && u->candidate == NULL)
    (void)lk_candidate_new(&u->candidate, u->lock, &options);
}

void do_acquire(void)
{
  enum { TRY_MS = 19 }; /* stands for a try */
  user *u = take_user();
  int64_t timeout_ms = (int64_t)take() * 20 - 1;

  if (u->lock == NULL)
    return;
  if (u->candidate != NULL) {
    (void)lk_candidate_start(u->candidate);
    return;
  }
  u->calling = &u->acquiring;
  int err = timeout_ms == TRY_MS
                ? lk_lock_try(u->lock, on_acquired, u)
                : lk_lock_acquire(u->lock, timeout_ms, on_acquired, u);

  u->calling = NULL;
  if (err != 0)
    return;
  must(!u->acquiring);
  u->acquiring = true;
}

void do_release(void)
{
  user *u = take_user();
  bool waits = take() % 2 == 1;

  if (u->lock == NULL)
    return;
  if (u->candidate != NULL) {
    lk_candidate_resign(u->candidate);
    return;
  }
  /* An earlier release, which only counted down, may complete in the call. */
  u->calling = u->releasing ? NULL : &u->releasing;
  int err = lk_lock_release(u->lock, waits ? on_released : NULL, u);

  u->calling = NULL;
  if (err == 0 && waits)
    u->releasing = true;
  if (err == 0 && u->lock != NULL && lk_lock_count(u->lock) == 0)
    u->held = u->unsure = false;
}

void do_cancel(void)
{
  user *u = take_user();
  unsigned how = take();

  if (u->lock == NULL || u->candidate != NULL)
    return;
  if (how % 4 != 0) {
    lk_lock_cancel(u->lock);
    return;
  }
  u->held = u->unsure = false;
  lk_lock_reset(u->lock);
}

void do_verify(void)
{
  user *u = take_user();

  if (u->lock == NULL || u->freeing)
    return;
  u->calling = &u->verifying;
  int err = lk_lock_verify(u->lock, on_verified, u);

  u->calling = NULL;
  if (err == 0)
    u->verifying = true;
}

/* Forget the handles, which are about to be freed, so that no callback uses
 * them. Returns the user as it was. */
static user forget_handles(user *u)
{
  user had = *u;

  u->lock = NULL;
  u->candidate = NULL;
  u->rw = NULL;
  u->owns_lock = false;
  u->freeing = true;
  return had;
}

static void end_free(user *u)
{
  must(!u->acquiring && !u->releasing && !u->verifying);
  *u = (user){0};
}

static void free_rwlock(lk_rwlock *rw, user *read_side)
{
  user had = forget_handles(read_side);

  lk_candidate_free(had.candidate);
  lk_rwlock_free(rw);
  end_free(read_side);
}

static void free_user(user *u)
{
  bool is_read_side = u > users && u[-1].rw != NULL;

  if (u->lock == NULL || u->freeing)
    return;
  if (is_read_side) {
    free_user(u - 1);
    return;
  }
  user had = forget_handles(u);

  lk_candidate_free(had.candidate);
  if (had.rw != NULL)
    free_rwlock(had.rw, u + 1);
  else if (!had.owns_lock)
    lk_lock_free(had.lock);
  end_free(u);
}

void do_free(void)
{
  free_user(take_user());
}

/* ---- guarded transactions ------------------------------------------------ */

static void on_multi(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  (void)c;
  (void)results;
  must(err == 0 || count <= 1);
  operation_end(arg);
}

void do_guarded(void)
{
  user *u = take_user();
  lk_op op = lk_op_set(take_path(), lk_text("x"), -1);
  bool *operation = operation_begin();

  if (operation == NULL)
    return;
  operation_refused(
      operation, u->lock == NULL ? LK_ERR_NOT_HELD
                                 : lk_lock_guarded_multi(u->lock, &op, 1, NULL,
                                                         on_multi, operation));
}

/* ---- all of them --------------------------------------------------------- */

static void check_user(const user *u)
{
  if (u->lock == NULL)
    return;
  bool ok = u->candidate == NULL ? lk_lock_ok(u->lock)
                                 : lk_candidate_ok(u->candidate);

  must(!ok || (u->held && lk_lock_token(u->lock) != 0 &&
               lk_lock_deadline(u->lock) > w.server.now));
  must(!u->held || lk_lock_node(u->lock) != NULL);
}

void locks_check(void)
{
  for (size_t i = 0; i < USERS; i++)
    check_user(&users[i]);
}

void locks_free(void)
{
  for (size_t i = 0; i < USERS; i++)
    free_user(&users[i]);
}
