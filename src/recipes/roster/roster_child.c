/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/names.h"
#include "recipes/roster/roster_child.h"

/* Children are not compared periodically: a new list finds out which exist. */
enum { NO_CHECKS = -1 };

lk_roster_child *
lk__roster_child_new(const lk_mem *mem, const char *dir, lk_bytes name,
                     int64_t number, const lk_roster_child_callbacks *callbacks)
{
  const char *parent = strcmp(dir, "/") == 0 ? "" : dir;
  size_t dir_len = strlen(parent);
  lk_roster_child *child =
      lk__mem_new(mem, sizeof *child + dir_len + name.len + sizeof "/");

  if (child == NULL)
    return NULL;
  child->mem = mem;
  child->callbacks = callbacks;
  child->number = number;
  (void)lk__write_child_path(child->path, parent, name);
  child->name = lk_bytes_of(child->path + dir_len + strlen("/"), name.len);
  return child;
}

/* false: no memory. */
static bool child_copy_data(lk_roster_child *child, const lk_bytes *data)
{
  size_t len = data == NULL ? 0 : data->len;

  if (len > 0) {
    void *copy = lk__mem_resize(child->mem, child->data, len);

    if (copy == NULL)
      return false;
    memcpy(copy, data->at, len);
    child->data = copy;
  }
  child->data_len = len;
  child->data_are_null = data == NULL || data->at == NULL;
  return true;
}

static bool is_end_of_client(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

static void on_child_state(lk_subscription *s, int err, const lk_bytes *data,
                           const lk_stat *stat, void *arg)
{
  lk_roster_child *child = arg;
  bool was_known = child->known;

  (void)s;
  if (is_end_of_client(err))
    return; /* the roster is notified by its list */
  if (!child_copy_data(child, data)) {
    lk__roster_child_close(child);
    child->callbacks->needs_retry(child->callbacks->arg);
    return;
  }
  child->known = true;
  child->err = err;
  if (stat != NULL)
    child->stat = *stat;
  child->callbacks->changed(child->callbacks->arg, child, was_known);
}

lk_bytes lk__roster_child_data(const lk_roster_child *child)
{
  if (child->err != 0)
    return lk_bytes_of("", 0);
  if (child->data_are_null)
    return lk_text(NULL);
  return lk_bytes_of(child->data_len == 0 ? "" : child->data, child->data_len);
}

int lk__roster_child_open(lk_roster_child *child, lk_client *client)
{
  const lk_subscription_config config = {.size = sizeof config,
                                         .check_ms = NO_CHECKS};

  if (child->subscription != NULL)
    return 0;
  int err = lk_subscribe_data(&child->subscription, client, child->path,
                              &config, on_child_state, child);

  if (err != LK_ERR_BAD_PATH && err != LK_ERR_TOO_BIG)
    return err;
  child->known = true;
  child->err = err;
  return 0;
}

void lk__roster_child_close(lk_roster_child *child)
{
  lk_subscription_free(child->subscription);
  child->subscription = NULL;
}

void lk__roster_child_free(lk_roster_child *child)
{
  lk__mem_free(child->mem, child->data);
  lk__mem_free(child->mem, child);
}
