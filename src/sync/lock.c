/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/lock.h"

#include "base/acl.h"
#include "sync/blocking_call.h"
#include "sync/call_entry.h"

/* An lk_sync_lock is one lock for all threads. It has copies of its options. */

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
                       .announce = config->announce,
                       .local_queue = config->local_queue,
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

int lk__sync_lock_enter(lk_sync_lock *l, int *cancel_state)
{
  return lk__sync_enter_object(lk__sync_lock_client(l),
                               l == NULL ? NULL : &l->calls_inside,
                               cancel_state);
}

void lk__sync_lock_leave(lk_sync_lock *l, int cancel_state)
{
  lk__sync_leave_object(l->client, &l->calls_inside, cancel_state);
}

const char *lk_sync_lock_path(const lk_sync_lock *l)
{
  return l == NULL ? NULL : l->path;
}
