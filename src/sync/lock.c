/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sys/eventfd.h>

#include "base/acl.h"
#include "sync/holder.h"

/* ---- life ---------------------------------------------------------------- */

static void destroy(lk_sync_lock *l)
{
  lk_mem mem = l->client->mem;

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

static bool copy_prefix(lk_sync_lock *l, const char *prefix)
{
  if (prefix != NULL)
    l->prefix = lk__mem_text(&l->client->mem, prefix);
  return l->prefix != NULL || prefix == NULL;
}

static bool copy_acls(const lk_mem *mem, lk_acls **out, const lk_acls *from)
{
  if (from == NULL)
    return true;
  *out = lk__acls_copy(mem, from);
  return *out != NULL;
}

static bool copy_config(lk_sync_lock *l, const lk_sync_lock_config *config)
{
  const lk_mem *mem = &l->client->mem;

  l->on_event = config->on_event;
  l->arg = config->arg;
  if (!copy_data(l, config->data) || !copy_prefix(l, config->prefix) ||
      !copy_acls(mem, &l->acl, config->acl) ||
      !copy_acls(mem, &l->parent_acl, config->parent_acl))
    return false;
  l->how =
      (lk_lock_config){.size = sizeof l->how,
                       .data = lk_bytes_of(l->data, config->data.len),
                       .acl = l->acl,
                       .parent_acl = l->parent_acl,
                       .persistent_parents = config->persistent_parents,
                       .unsure_when_suspended = config->unsure_when_suspended,
                       .fail_on_expiry = config->fail_on_expiry,
                       .layout = config->layout,
                       .prefix = l->prefix,
                       .on_event = lk__holder_on_event};
  return true;
}

static int check(const lk_sync_client *c, const char *path,
                 const lk_sync_lock_config *config)
{
  if (lk_ev_forked(c->ev))
    return LK_ERR_FORKED;
  if (config->size != sizeof *config)
    return LK_ERR_BAD_ARGUMENT;
  return lk_path_check(path) != 0 || strcmp(path, "/") == 0 ? LK_ERR_BAD_PATH
                                                            : 0;
}

int lk_sync_lock_new(lk_sync_lock **out, lk_sync_client *c, const char *path,
                     const lk_sync_lock_config *config)
{
  static const lk_sync_lock_config usual = {.size = sizeof usual};

  *out = NULL;
  if (config == NULL)
    config = &usual;
  int err = check(c, path, config);

  if (err != 0)
    return err;
  lk_sync_lock *l = lk__mem_new(&c->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  l->client = c;
  l->path = lk__mem_text(&c->mem, path);
  if (l->path == NULL || !copy_config(l, config)) {
    destroy(l);
    return LK_ERR_NO_MEMORY;
  }
  *out = l;
  return 0;
}

/** The end of a lock. */
typedef struct farewell {
  lk_errand errand;
  lk_sync_lock *lock;
} farewell;

static void begin_free(lk_errand *e)
{
  lk_link *all = &e->client->holders, *next;
  farewell *f = LK_OWNER(e, farewell, errand);

  for (lk_link *l = all->next; l != all; l = next) {
    lk_holder *h = LK_OWNER(l, lk_holder, link);

    next = l->next;
    if (atomic_load(&h->lock) == f->lock) {
      lk__holder_lose(h);
      atomic_store(&h->lock, NULL);
      lk__holder_drop(h);
    }
  }
  lk__errand_end(e, 0);
}

void lk_sync_lock_free(lk_sync_lock *l)
{
  farewell f = {.lock = l};

  if (l != NULL && lk__errand_do(&f.errand, l->client, begin_free) == 0)
    destroy(l);
}

/* ---- facts --------------------------------------------------------------- */

/* In a child nobody holds. */
static const lk_holder *look(const lk_sync_lock *l)
{
  return lk_ev_forked(l->client->ev) ? NULL : lk__holder_find(l);
}

/* The clock is read last: a pause before it makes this false, not true. What
   was decided before this call is seen, since it is a single variable. */
bool lk_sync_lock_ok(const lk_sync_lock *l)
{
  const lk_holder *h = look(l);

  if (h == NULL)
    return false;
  int64_t sure = atomic_load_explicit(&h->sure_ms, memory_order_acquire);

  return sure != INT64_MIN && lk_ev_clock(l->client->ev) < sure;
}

int64_t lk_sync_lock_deadline(const lk_sync_lock *l)
{
  const lk_holder *h = look(l);

  return h == NULL ? INT64_MIN : atomic_load(&h->until_ms);
}

uint64_t lk_sync_lock_token(const lk_sync_lock *l)
{
  const lk_holder *h = look(l);

  return h == NULL || lk__holder_is_lost(h) ? 0 : h->token;
}

lk_lock_state lk_sync_lock_get_state(const lk_sync_lock *l)
{
  const lk_holder *h = look(l);

  if (h == NULL)
    return LK_LOCK_IDLE;
  if (lk__holder_is_lost(h))
    return LK_LOCK_LOST;
  return atomic_load(&h->sure_ms) == INT64_MIN ? LK_LOCK_UNSURE : LK_LOCK_HELD;
}

size_t lk_sync_lock_count(const lk_sync_lock *l)
{
  const lk_holder *h = look(l);

  return h == NULL ? 0 : h->count;
}

int lk_sync_lock_fd(lk_sync_lock *l)
{
  if (lk_ev_forked(l->client->ev))
    return LK_ERR_FORKED;
  lk_holder *h = lk__holder_find(l);

  if (h == NULL)
    return LK_ERR_NOT_HELD;
  pthread_mutex_lock(&h->client->mutex);
  if (h->fd < 0) {
    /* Who publishes looks for it under the mutex, after storing this. */
    bool doubt = atomic_load(&h->sure_ms) == INT64_MIN;

    h->fd = eventfd(doubt, EFD_CLOEXEC | EFD_NONBLOCK);
  }
  int fd = h->fd;

  pthread_mutex_unlock(&h->client->mutex);
  return fd >= 0 ? fd : LK_ERR_SYSTEM;
}

const char *lk_sync_lock_path(const lk_sync_lock *l)
{
  return l->path;
}
