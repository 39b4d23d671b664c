/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock.h"

#include "base/acl.h"
#include "sync/call.h"
#include "sync/lock_owner.h"

/* ---- copies of the options ----------------------------------------------- */

static bool copy_data(lk_sync_lock *l, lk_bytes data)
{
  if (data.len == 0)
    return true;
  l->data = lk__mem_new(&l->client->mem, data.len);
  if (l->data == NULL)
    return false;
  memcpy(l->data, data.at, data.len);
  return true;
}

static bool copy_acls(const lk_mem *mem, lk_acls **out, const lk_acls *from)
{
  if (from == NULL)
    return true;
  *out = lk__acls_copy(mem, from);
  return *out != NULL;
}

static bool copy_text(const lk_mem *mem, char **out, const char *from)
{
  if (from == NULL)
    return true;
  *out = lk__mem_text(mem, from);
  return *out != NULL;
}

static bool copy_config(lk_sync_lock *l, const lk_sync_lock_config *config)
{
  const lk_mem *mem = &l->client->mem;

  l->on_event = config->on_event;
  l->arg = config->arg;
  if (!copy_data(l, config->data) || !copy_acls(mem, &l->acl, config->acl) ||
      !copy_acls(mem, &l->parent_acl, config->parent_acl) ||
      !copy_text(mem, &l->prefix, config->prefix))
    return false;
  l->config =
      (lk_lock_config){.size = sizeof l->config,
                       .data = lk_bytes_of(l->data, config->data.len),
                       .acl = l->acl,
                       .parent_acl = l->parent_acl,
                       .persistent_parents = config->persistent_parents,
                       .unsure_when_suspended = config->unsure_when_suspended,
                       .fail_on_expiry = config->fail_on_expiry,
                       .revocable = config->revocable,
                       .max_queue = config->max_queue,
                       .peek = config->peek,
                       .layout = config->layout,
                       .prefix = l->prefix};
  return true;
}

static int copy_and_check_arguments(lk_sync_client *c, const char *path,
                                    lk_sync_lock_config *out,
                                    const lk_sync_lock_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_sync_lock_config);

  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &sized, out, config);

  if (err != 0)
    return err;
  return lk_path_check(path) != 0 ? LK_ERR_BAD_PATH : 0;
}

/* ---- creation ------------------------------------------------------------ */

int lk__sync_lock_make(lk_sync_lock **out, lk_sync_client *c, lk_kind kind,
                       const char *path, const lk_sync_lock_config *config)
{
  lk_sync_lock_config copy;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = copy_and_check_arguments(c, path, &copy, config);

  if (err != 0)
    return err;
  lk_sync_lock *l = lk__mem_new(&c->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  l->client = c;
  l->kind = kind;
  l->path = lk__mem_text(&c->mem, path);
  if (l->path == NULL || !copy_config(l, &copy)) {
    lk__sync_lock_destroy(l);
    return LK_ERR_NO_MEMORY;
  }
  *out = l;
  return 0;
}

/** A call that checks the options of `lock`. */
typedef struct check_call {
  lk_blocking_call call;
  const lk_sync_lock *lock;
} check_call;

static void begin_check(lk_blocking_call *b)
{
  lk__blocking_call_complete(
      b, lk__inner_lock_check_options(LK_OWNER(b, check_call, call)->lock));
}

/* Frees the lock and returns `err`. */
static int destroy_and_return(lk_sync_lock **l, int err)
{
  lk__sync_lock_destroy(*l);
  *l = NULL;
  return err;
}

/* If the thread of the handle has ended (LK_ERR_CLOSED), the options cannot be
   checked. That does no harm, since each acquire will fail. */
int lk__sync_lock_check_or_destroy(lk_sync_lock **l)
{
  check_call check = {.lock = *l};
  bool on_thread_of_handle = lk__sync_refusal((*l)->client) == LK_ERR_STATE;
  int err = on_thread_of_handle
                ? lk__inner_lock_check_options(*l)
                : lk__blocking_call_do(&check.call, (*l)->client, begin_check);

  return err == 0 || err == LK_ERR_CLOSED ? 0 : destroy_and_return(l, err);
}

/* ---- constructors -------------------------------------------------------- */

/* One for each kind of lock, except read-write locks. All other calls are
   common to all kinds, since each is an lk_lock. */

int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                     const lk_sync_lock_config *config)
{
  int err = lk__sync_lock_make(out, c, LK_KIND_MUTEX, path, config);

  return err != 0 ? err : lk__sync_lock_check_or_destroy(out);
}

static int copy_limit_path(lk_sync_lock *l)
{
  if (l->semaphore.limit_path == NULL)
    return 0;
  l->limit_path = lk__mem_text(&l->client->mem, l->semaphore.limit_path);
  l->semaphore.limit_path = l->limit_path;
  return l->limit_path == NULL ? LK_ERR_NO_MEMORY : 0;
}

int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                          const char *path, const lk_sync_lock_config *config,
                          const lk_semaphore_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_semaphore_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SEMAPHORE, path, config);

  if (err != 0)
    return err;
  lk_semaphore_config *copy = &(*out)->semaphore;

  err = lk__sync_copy_options(c, &sized, copy, options);
  if (err == 0)
    err = copy_limit_path(*out);
  if (err != 0)
    return destroy_and_return(out, err);
  if (copy->history == NULL) /* the threads share one history */
    copy->history = &(*out)->history;
  return lk__sync_lock_check_or_destroy(out);
}

int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                       const lk_sync_lock_config *config,
                       const lk_single_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_single_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SINGLE, path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &sized, &(*out)->single, options);
  return err != 0 ? destroy_and_return(out, err)
                  : lk__sync_lock_check_or_destroy(out);
}

enum { MAX_MULTILOCK_MEMBERS = 1000 }; /* as in lk_multilock_new() */

/* If this fails, `member_count` tells how many paths were copied. */
static int copy_members(lk_sync_lock *l, const lk_multilock_member *members,
                        size_t count)
{
  const lk_mem *mem = &l->client->mem;

  l->members = lk__mem_new(mem, count * sizeof *members);
  if (l->members == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    const lk_multilock_member *from = &members[i];

    if (from->path == NULL)
      return LK_ERR_BAD_PATH;
    const char *path = lk__mem_text(mem, from->path);

    if (path == NULL)
      return LK_ERR_NO_MEMORY;
    l->members[i].side = from->side;
    l->members[i].path = path;
    l->member_count = i + 1;
  }
  return 0;
}

int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                          const lk_multilock_member *members, size_t count,
                          const lk_sync_lock_config *config,
                          const lk_multilock_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_multilock_config);

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (members == NULL || count == 0 || count > MAX_MULTILOCK_MEMBERS)
    return LK_ERR_BAD_ARGUMENT;
  int err =
      lk__sync_lock_make(out, c, LK_KIND_MULTILOCK, members[0].path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &sized, &(*out)->multilock, options);
  if (err == 0)
    err = copy_members(*out, members, count);
  return err != 0 ? destroy_and_return(out, err)
                  : lk__sync_lock_check_or_destroy(out);
}

/* ---- entering and leaving a lock ----------------------------------------- */

/* lk__sync_enter() for a call of the lock; LK_ERR_BAD_ARGUMENT: `l` is NULL.
   The lock is not freed before sync_lock_leave(). */
static int sync_lock_enter(lk_sync_lock *l, int *cancel_state)
{
  return lk__sync_enter_object(lk__sync_lock_client(l),
                               l == NULL ? NULL : &l->calls_inside,
                               cancel_state);
}

static void sync_lock_leave(lk_sync_lock *l, int cancel_state)
{
  lk__sync_leave_object(l->client, &l->calls_inside, cancel_state);
}

/* ---- acquire ------------------------------------------------------------- */

/* An acquire has failed or a release has completed: free the lk_lock, if it was
   made, and complete the call. If the call was interrupted, its result is the
   reason for that. */
static void free_inner_and_complete(lk_lock_owner *owner, int err)
{
  lk__lock_owner_remove(owner);
  lk__lock_owner_free_inner(owner);
  lk__blocking_call_complete(
      &owner->call, owner->interrupt_err != 0 ? owner->interrupt_err : err);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  lk_lock_owner *owner = arg;

  if (err != 0) {
    free_inner_and_complete(owner, err);
    return;
  }
  owner->token = lk_lock_token(l);
  lk__lock_owner_publish(owner);
  lk__blocking_call_complete(&owner->call, 0);
}

/* lk_lock_cancel() calls on_acquired(), which completes the call. */
static void interrupt_acquire(lk_blocking_call *b, int err)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);

  owner->interrupt_err = err;
  lk_lock_cancel(owner->inner);
}

static int start_acquire(lk_lock_owner *owner)
{
  /* lk_sync_lock_free() may have begun after the thread entered the lock. */
  if (atomic_load(&owner->lock)->freeing)
    return LK_ERR_CLOSED;
  int err = lk__lock_owner_make_inner(owner);

  return err != 0 ? err
                  : lk_lock_acquire(owner->inner, owner->acquire_timeout_ms,
                                    on_acquired, owner);
}

static void begin_acquire(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = start_acquire(owner);
  if (err != 0) {
    free_inner_and_complete(owner, err);
    return;
  }
  lk__safe_list_add(&owner->client->lock_owners, &owner->link);
  lk__blocking_call_allow_interrupt(b, interrupt_acquire);
  lk__blocking_call_start_timer(b);
}

/* The thread has a lock owner already. */
static int acquire_again(lk_lock_owner *owner, lk_kind kind,
                         const lk_sync_call *call)
{
  int err = lk__sync_call_refusal(owner->client, call);

  if (err != 0)
    return err;
  if (lk__lock_owner_is_lost(owner))
    return LK_ERR_LOST;
  if (kind == LK_KIND_SEMAPHORE) /* a thread can hold one permit only */
    return LK_ERR_DEADLOCK;
  owner->count++;
  return 0;
}

/* `timeout_ms` limits how long the lock is waited for once the call has begun
   on the thread of the handle: NO_WAITING or LK_NO_LIMIT. The deadline of
   `call` applies as well. */
static int acquire_for_this_thread(lk_sync_lock *l, const lk_sync_call *call,
                                   int64_t timeout_ms)
{
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner != NULL)
    return acquire_again(owner, l->kind, call);
  owner = lk__lock_owner_new(l);
  if (owner == NULL)
    return LK_ERR_NO_MEMORY;
  owner->acquire_timeout_ms = timeout_ms;
  if (l->partner != NULL)
    owner->partner = lk__lock_owner_find(l->partner);
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err == 0) {
    err = lk__blocking_call_wait(&owner->call, begin_acquire);
    lk__blocking_call_destroy(&owner->call);
  }
  if (err == 0)
    owner->count = 1;
  else
    lk__lock_owner_delete(owner);
  return err;
}

static int enter_and_acquire(lk_sync_lock *l, const lk_sync_call *call,
                             int64_t timeout_ms)
{
  int cancel_state;
  int err = sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = acquire_for_this_thread(l, call, timeout_ms);
  sync_lock_leave(l, cancel_state);
  return err;
}

int lk_sync_lock_acquire(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, LK_NO_LIMIT);
}

/* For lk_lock_acquire(): the lock is tried once. */
enum { NO_WAITING = 0 };

int lk_sync_lock_try(lk_sync_lock *l, const lk_sync_call *call)
{
  return enter_and_acquire(l, call, NO_WAITING);
}

/* ---- release ------------------------------------------------------------- */

int lk_sync_lock_release(lk_sync_lock *l)
{
  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  if (lk__lock_owner_is_lost(owner)) {
    lk__lock_owner_release(owner);
    return LK_ERR_LOST;
  }
  owner->count--;
  if (owner->count == 0)
    lk__lock_owner_release(owner);
  return 0;
}

static void on_released(lk_lock *l, int err, void *arg)
{
  (void)l;
  free_inner_and_complete(arg, err);
}

/* The node is still deleted, but the call does not wait for that. Freeing the
   lk_lock calls on_released(), which completes the call. */
static void interrupt_release(lk_blocking_call *b, int err)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);

  owner->interrupt_err = err;
  lk__lock_owner_free_inner(owner);
}

/* A call that may not wait, because its deadline has passed or its cancel is
   set, is interrupted only after its release has begun. */
static void begin_release(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int refusal = lk__blocking_call_refusal(b);

  lk__lock_owner_set_lost(owner); /* from now on the thread holds nothing */
  int err = owner->inner == NULL
                ? LK_ERR_CLOSED
                : lk_lock_release_until(owner->inner, LK_NO_LIMIT, on_released,
                                        owner);

  if (err != 0) {
    free_inner_and_complete(owner, err);
    return;
  }
  lk__blocking_call_allow_interrupt(b, interrupt_release);
  lk__blocking_call_start_timer(b);
  if (refusal != 0)
    b->interrupt(b, refusal);
}

static int release_and_wait(lk_lock_owner *owner, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_release);
  lk__blocking_call_destroy(&owner->call);
  lk__lock_owner_delete(owner);
  return err;
}

/* There is no node to delete. A release that is cancelled takes place. */
static int release_without_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int refusal = lk__sync_call_refusal(l->client, call);

  if (refusal == LK_ERR_BAD_ARGUMENT)
    return refusal;
  int err = lk_sync_lock_release(l);

  return err != 0 ? err : refusal;
}

int lk_sync_lock_release_wait(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  lk_lock_owner *owner = lk__lock_owner_find(l);
  bool has_node_to_delete =
      owner != NULL && owner->count == 1 && !lk__lock_owner_is_lost(owner);

  err = has_node_to_delete ? release_and_wait(owner, call)
                           : release_without_wait(l, call);
  sync_lock_leave(l, cancel_state);
  return err;
}

/* ---- waiting while the lock is unsure ------------------------------------ */

static void interrupt_wait(lk_blocking_call *b, int err)
{
  lk__lock_owner_end_wait(lk__lock_owner_of(b), err);
}

static void begin_wait(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  owner->awaits_certainty = true;
  lk__blocking_call_allow_interrupt(b, interrupt_wait);
  lk__blocking_call_start_timer(b);
  lk__lock_owner_check_wait(owner);
}

static int wait_for_certainty(lk_sync_lock *l, const lk_sync_call *call)
{
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_wait);
  lk__blocking_call_destroy(&owner->call);
  return err;
}

int lk_sync_lock_wait_certain(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  err = wait_for_certainty(l, call);
  sync_lock_leave(l, cancel_state);
  return err;
}

/* ---- asking a quorum ----------------------------------------------------- */

static void complete_verify(lk_lock_owner *owner, int err)
{
  if (!owner->verifying) /* an interrupt has completed the call already */
    return;
  owner->verifying = false;
  lk__blocking_call_complete(&owner->call, err);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  (void)l;
  complete_verify(arg, err);
}

static void interrupt_verify(lk_blocking_call *b, int err)
{
  complete_verify(lk__lock_owner_of(b), err);
}

static void begin_verify(lk_blocking_call *b)
{
  lk_lock_owner *owner = lk__lock_owner_of(b);
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = owner->inner == NULL
              ? LK_ERR_CLOSED
              : lk_lock_verify(owner->inner, on_verified, owner);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  owner->verifying = true;
  lk__blocking_call_allow_interrupt(b, interrupt_verify);
  lk__blocking_call_start_timer(b);
}

static int thread_verify(lk_lock_owner *owner, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&owner->call, owner->client, call);

  if (err != 0)
    return err;
  err = lk__blocking_call_wait(&owner->call, begin_verify);
  lk__blocking_call_destroy(&owner->call);
  return err;
}

int lk_sync_lock_verify(lk_sync_lock *l, const lk_sync_call *call)
{
  int cancel_state;
  int err = sync_lock_enter(l, &cancel_state);

  if (err != 0)
    return err;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  err = owner == NULL ? LK_ERR_NOT_HELD : thread_verify(owner, call);
  sync_lock_leave(l, cancel_state);
  return err;
}

/* ---- queries ------------------------------------------------------------- */

/* The lock owner of this thread. NULL: the thread has none, or this is a child
   process, where no thread holds. */
static const lk_lock_owner *current_lock_owner(const lk_sync_lock *l)
{
  return l == NULL || lk__driver_in_child(&l->client->driver)
             ? NULL
             : lk__lock_owner_find(l);
}

/* The clock is read last: a pause of the thread before that can only make the
   result false. A doubt that was stored before this call is seen, since one
   variable holds both deadline and doubt. */
bool lk_sync_lock_ok(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  if (owner == NULL)
    return false;
  int64_t sure_until_ms =
      atomic_load_explicit(&owner->sure_until_ms, memory_order_acquire);

  return sure_until_ms != LK_NOT_SURE &&
         lk__driver_clock(&l->client->driver) < sure_until_ms;
}

int64_t lk_sync_lock_deadline(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL ? LK_NOT_HELD : atomic_load(&owner->lease_deadline_ms);
}

uint64_t lk_sync_lock_token(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL || lk__lock_owner_is_lost(owner) ? 0 : owner->token;
}

lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  if (owner == NULL)
    return LK_LOCK_IDLE;
  if (lk__lock_owner_is_lost(owner))
    return LK_LOCK_LOST;
  return atomic_load(&owner->sure_until_ms) == LK_NOT_SURE ? LK_LOCK_UNSURE
                                                           : LK_LOCK_HELD;
}

size_t lk_sync_lock_count(const lk_sync_lock *l)
{
  const lk_lock_owner *owner = current_lock_owner(l);

  return owner == NULL ? 0 : owner->count;
}

int lk_sync_lock_fd(lk_sync_lock *l)
{
  if (l == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&l->client->driver))
    return LK_ERR_FORKED;
  lk_lock_owner *owner = lk__lock_owner_find(l);

  if (owner == NULL)
    return LK_ERR_NOT_HELD;
  /* lk__flag_fd_set() writes: a thread that was cancelled there would end with
     the mutex. */
  int cancel_state = lk__sync_disable_cancel();

  pthread_mutex_lock(&owner->client->mutex);
  if (owner->doubt_fd.read_fd < 0) {
    /* A doubt that arises now is not missed: `sure_until_ms` is stored first,
       and then lock_owner_set_doubt() looks for the descriptor, under the
       mutex. */
    bool doubt = atomic_load(&owner->sure_until_ms) == LK_NOT_SURE;

    if (lk__flag_fd_open(&owner->doubt_fd) == 0 && doubt)
      lk__flag_fd_set(&owner->doubt_fd);
  }
  int fd = owner->doubt_fd.read_fd;

  pthread_mutex_unlock(&owner->client->mutex);
  lk__sync_restore_cancel(cancel_state);
  return fd >= 0 ? fd : LK_ERR_SYSTEM;
}

/** Reads the token of the member with `path` on the thread of the handle. */
typedef struct token_call {
  lk_blocking_call call;
  const lk_lock_owner *lock_owner;
  const char *path;
  uint64_t token; /**< the result */
} token_call;

static void begin_token(lk_blocking_call *b)
{
  token_call *q = LK_OWNER(b, token_call, call);

  if (q->lock_owner->inner != NULL)
    q->token = lk_multilock_token(q->lock_owner->inner, q->path);
  lk__blocking_call_complete(b, 0);
}

uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path)
{
  token_call q = {.path = path};

  if (l == NULL || path == NULL || l->kind != LK_KIND_MULTILOCK ||
      lk__sync_refusal(l->client) != 0)
    return 0;
  q.lock_owner = lk__lock_owner_find(l);
  if (q.lock_owner != NULL && !lk__lock_owner_is_lost(q.lock_owner))
    (void)lk__blocking_call_do(&q.call, l->client, begin_token);
  return q.token; /* 0 unless begin_token() ran */
}

const char *lk_sync_lock_path(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->path;
}

/* ---- end ----------------------------------------------------------------- */

void lk__sync_lock_destroy(lk_sync_lock *l)
{
  lk_mem mem = l->client->mem;

  for (size_t i = 0; i < l->member_count; i++) /* uintptr_t: drops `const` */
    lk__mem_free(&mem, (void *)(uintptr_t)l->members[i].path);
  lk__mem_free(&mem, l->members);
  lk__mem_free(&mem, l->limit_path);
  lk__mem_free(&mem, l->path);
  lk__mem_free(&mem, l->data);
  lk__mem_free(&mem, l->prefix);
  lk__mem_free(&mem, l->acl);
  lk__mem_free(&mem, l->parent_acl);
  lk__mem_free(&mem, l);
}

void lk_sync_lock_free(lk_sync_lock *l)
{
  if (l != NULL && lk__sync_lock_end_owners(l))
    lk__sync_lock_destroy(l);
}
