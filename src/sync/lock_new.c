/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "sync/thread_lock.h"

/* The constructors, one for each kind of lock. The rest is common to all kinds,
   since each is an lk_lock. */

/* ---- options ------------------------------------------------------------- */

void lk__sync_lock_destroy(lk_sync_lock *l)
{
  lk_mem mem = l->client->mem;

  for (size_t i = 0; l->members != NULL && i < l->count; i++)
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
  l->how =
      (lk_lock_config){.size = sizeof l->how,
                       .data = lk_bytes_of(l->data, config->data.len),
                       .acl = l->acl,
                       .parent_acl = l->parent_acl,
                       .persistent_parents = config->persistent_parents,
                       .unsure_when_suspended = config->unsure_when_suspended,
                       .fail_on_expiry = config->fail_on_expiry,
                       .revocable = config->revocable,
                       .max_queue = config->max_queue,
                       .peek = config->peek,
                       .announce = config->announce,
                       .local_queue = config->local_queue,
                       .layout = config->layout,
                       .prefix = l->prefix,
                       .on_event = lk__thread_lock_on_event};
  return true;
}

static int lock_check_config(lk_sync_client *c, const char *path,
                             lk_sync_lock_config *out,
                             const lk_sync_lock_config *config)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sync_lock_config);

  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &what, out, config);

  if (err != 0)
    return err;
  return lk_path_check(path) != 0 || strcmp(path, "/") == 0 ? LK_ERR_BAD_PATH
                                                            : 0;
}

int lk__sync_lock_make(lk_sync_lock **out, lk_sync_client *c, lk_kind kind,
                       const char *path, const lk_sync_lock_config *config)
{
  lk_sync_lock_config own;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lock_check_config(c, path, &own, config);

  if (err != 0)
    return err;
  lk_sync_lock *l = lk__mem_new(&c->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  l->client = c;
  l->kind = kind;
  l->path = lk__mem_text(&c->mem, path);
  if (l->path == NULL || !copy_config(l, &own)) {
    lk__sync_lock_destroy(l);
    return LK_ERR_NO_MEMORY;
  }
  *out = l;
  return 0;
}

/* ---- the recipe of a thread ---------------------------------------------- */

static int lock_make_recipe(const lk_sync_lock *l, lk_lock **out,
                            const lk_lock_config *how)
{
  lk_client *c = l->client->client;

  switch (l->kind) {
  case LK_KIND_MUTEX: return lk_lock_new(out, c, l->path, how);
  case LK_KIND_SEMAPHORE:
    return lk_semaphore_new(out, c, l->path, how, &l->permits);
  case LK_KIND_MULTILOCK:
    return lk_multilock_new(out, c, l->members, l->count, how, &l->together);
  case LK_KIND_SINGLE: return lk_single_new(out, c, l->path, how, &l->single);
  case LK_KIND_READ:
  case LK_KIND_WRITE: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

int lk__thread_lock_make_recipe(lk_thread_lock *h)
{
  const lk_sync_lock *l = atomic_load(&h->lock);
  lk_lock_config how = l->how;

  if (l->partner != NULL)
    return lk__rwlock_side_make_lock(h);
  how.arg = h;
  return lock_make_recipe(l, &h->recipe, &how);
}

void lk__thread_lock_free_recipe(lk_thread_lock *h)
{
  lk_lock *handle = h->recipe;

  h->recipe = NULL;
  if (h->pair != NULL)
    lk__rwlock_side_free_lock(h, handle);
  else
    lk_lock_free(handle);
}

/* ---- constructors -------------------------------------------------------- */

/** The recipe checks the options of `lock`. */
typedef struct check_call {
  lk_blocking_call call;
  const lk_sync_lock *lock;
} check_call;

static int lock_try_recipe(const lk_sync_lock *l)
{
  lk_rwlock *rw = NULL;
  lk_lock *plain = NULL;
  lk_lock_config how = l->how;
  bool side = l->kind == LK_KIND_READ || l->kind == LK_KIND_WRITE;

  how.on_event = NULL;
  int err = side ? lk_rwlock_new(&rw, l->client->client, l->path, &how)
                 : lock_make_recipe(l, &plain, &how);

  lk_rwlock_free(rw);
  lk_lock_free(plain);
  return err;
}

static void begin_check(lk_blocking_call *e)
{
  lk__blocking_call_complete(
      e, lock_try_recipe(LK_OWNER(e, check_call, call)->lock));
}

/* Gives `err`. */
static int lock_discard(lk_sync_lock **l, int err)
{
  lk__sync_lock_destroy(*l);
  *l = NULL;
  return err;
}

/* If the thread of the handle has ended, the options are not checked, since
   each acquire fails. */
int lk__sync_lock_check_options(lk_sync_lock **l)
{
  check_call t = {.lock = *l};
  int err = lk__sync_refusal((*l)->client) == LK_ERR_STATE
                ? lock_try_recipe(*l)
                : lk__blocking_call_do(&t.call, (*l)->client, begin_check);

  return err == 0 || err == LK_ERR_CLOSED ? 0 : lock_discard(l, err);
}

int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                     const lk_sync_lock_config *config)
{
  int err = lk__sync_lock_make(out, c, LK_KIND_MUTEX, path, config);

  return err != 0 ? err : lk__sync_lock_check_options(out);
}

int lk_sync_semaphore_new(lk_sync_lock **out, lk_sync_client *c,
                          const char *path, const lk_sync_lock_config *config,
                          const lk_semaphore_config *options)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_semaphore_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SEMAPHORE, path, config);

  if (err != 0)
    return err;
  lk_semaphore_config *own = &(*out)->permits;

  err = lk__sync_copy_options(c, &what, own, options);
  if (err != 0)
    return lock_discard(out, err);
  if (!copy_text(&c->mem, &(*out)->limit_path, own->limit_path))
    return lock_discard(out, LK_ERR_NO_MEMORY);
  own->limit_path = (*out)->limit_path;
  if (own->memory == NULL)
    own->memory = &(*out)->learned;
  return lk__sync_lock_check_options(out);
}

int lk_sync_single_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                       const lk_sync_lock_config *config,
                       const lk_single_config *options)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_single_config);
  int err = lk__sync_lock_make(out, c, LK_KIND_SINGLE, path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &what, &(*out)->single, options);
  return err != 0 ? lock_discard(out, err) : lk__sync_lock_check_options(out);
}

static int copy_members(lk_sync_lock *l, const lk_multilock_member *members,
                        size_t count)
{
  const lk_mem *mem = &l->client->mem;

  l->members = lk__mem_new(mem, count * sizeof *members);
  if (l->members == NULL)
    return LK_ERR_NO_MEMORY;
  for (; l->count < count; l->count++) {
    const lk_multilock_member *from = &members[l->count];

    if (from->path == NULL)
      return LK_ERR_BAD_PATH;
    const char *path = lk__mem_text(mem, from->path);

    if (path == NULL)
      return LK_ERR_NO_MEMORY;
    l->members[l->count].side = from->side;
    l->members[l->count].path = path;
  }
  return 0;
}

int lk_sync_multilock_new(lk_sync_lock **out, lk_sync_client *c,
                          const lk_multilock_member *members, size_t count,
                          const lk_sync_lock_config *config,
                          const lk_multilock_config *options)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_multilock_config);

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (members == NULL || count == 0 || count > 1000)
    return LK_ERR_BAD_ARGUMENT;
  int err =
      lk__sync_lock_make(out, c, LK_KIND_MULTILOCK, members[0].path, config);

  if (err != 0)
    return err;
  err = lk__sync_copy_options(c, &what, &(*out)->together, options);
  if (err == 0)
    err = copy_members(*out, members, count);
  return err != 0 ? lock_discard(out, err) : lk__sync_lock_check_options(out);
}

/* ---- the tokens of a multi-lock ------------------------------------------ */

typedef struct token_call {
  lk_blocking_call call;
  const lk_thread_lock *thread_lock;
  const char *path;
  uint64_t token;
} token_call;

static void begin_token(lk_blocking_call *e)
{
  token_call *q = LK_OWNER(e, token_call, call);

  if (q->thread_lock->recipe != NULL)
    q->token = lk_multilock_token(q->thread_lock->recipe, q->path);
  lk__blocking_call_complete(e, 0);
}

uint64_t lk_sync_multilock_token(lk_sync_lock *l, const char *path)
{
  token_call q = {.path = path};

  if (l == NULL || path == NULL || l->kind != LK_KIND_MULTILOCK ||
      lk__sync_refusal(l->client) != 0)
    return 0;
  q.thread_lock = lk__thread_lock_find(l);
  if (q.thread_lock != NULL && !lk__thread_lock_is_lost(q.thread_lock))
    (void)lk__blocking_call_do(&q.call, l->client, begin_token);
  return q.token; /* 0 unless begin_token() ran */
}
