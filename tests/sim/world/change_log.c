/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/change_log.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAP = 256 };

void sim_change_log_free(sim_change_log *log)
{
  free(log->changes);
}

bool sim_is_below(const char *path, const char *top)
{
  size_t len = strlen(top);

  return strncmp(path, top, len) == 0 && path[len] == '/';
}

static sim_change *append_change(sim_change_log *log)
{
  if (log->count == log->cap) {
    log->cap = log->cap == 0 ? FIRST_CAP : log->cap * 2;
    log->changes = realloc(log->changes, log->cap * sizeof *log->changes);
    if (log->changes == NULL)
      abort();
  }
  sim_change *c = &log->changes[log->count++];

  memset(c, 0, sizeof *c);
  return c;
}

void sim_change_log_add(sim_change_log *log, const sim_node *n,
                        lk_event_type type, int64_t zxid)
{
  size_t len = (size_t)n->stat.data_length;

  if (strcmp(n->path, SIM_REQUEST_DIR) != 0 &&
      !sim_is_below(n->path, SIM_REQUEST_DIR))
    return;
  if (strlen(n->path) >= SIM_CHANGE_PATH)
    abort(); /* no actor creates such a path */
  sim_change *c = append_change(log);

  c->zxid = zxid;
  c->type = type;
  snprintf(c->path, sizeof c->path, "%s", n->path);
  c->dir_len = (size_t)(strrchr(c->path, '/') - c->path);
  c->stat = n->stat;
  if (len >= sizeof c->data) /* the zeroed last byte ends the text */
    len = sizeof c->data - 1;
  if (len > 0)
    memcpy(c->data, n->data, len);
  c->perms = n->perms;
  c->parent_perms = n->parent->perms;
  c->is_hidden = log->events_need_read && (c->perms & LK_PERM_READ) == 0;
  c->is_hidden_at_parent =
      log->events_need_read && (c->parent_perms & LK_PERM_READ) == 0;
}

size_t sim_change_log_first_after(const sim_change_log *log, int64_t zxid)
{
  size_t i = log->count;

  while (i > 0 && log->changes[i - 1].zxid > zxid)
    i--;
  return i;
}

const sim_change *sim_change_log_at(const sim_change_log *log, const char *path,
                                    int64_t zxid)
{
  for (size_t i = sim_change_log_first_after(log, zxid); i > 0; i--) {
    const sim_change *c = &log->changes[i - 1];

    if (strcmp(c->path, path) == 0)
      return c->type == LK_EVENT_DELETED ? NULL : c;
  }
  return NULL;
}

static bool is_below(const sim_change *c, const char *top)
{
  return sim_is_below(c->path, top);
}

/* The number of nodes at `zxid` that are in this relation to `path`. */
static size_t
count_related(const sim_change_log *log, const char *path, int64_t zxid,
              bool (*is_related)(const sim_change *c, const char *path))
{
  size_t end = sim_change_log_first_after(log, zxid);
  size_t count = 0;

  for (size_t i = 0; i < end; i++) {
    const sim_change *c = &log->changes[i];

    if (!is_related(c, path))
      continue;
    if (c->type == LK_EVENT_CREATED)
      count++;
    else if (c->type == LK_EVENT_DELETED)
      count--;
  }
  return count;
}

size_t sim_change_log_count_children(const sim_change_log *log,
                                     const char *path, int64_t zxid)
{
  return count_related(log, path, zxid, sim_is_child);
}

size_t sim_change_log_count_below(const sim_change_log *log, const char *path,
                                  int64_t zxid)
{
  return count_related(log, path, zxid, is_below);
}

int64_t sim_change_log_zxid_of(const sim_change_log *log, const char *data)
{
  for (size_t i = 0; i < log->count; i++) {
    const sim_change *c = &log->changes[i];

    if ((c->type == LK_EVENT_CREATED || c->type == LK_EVENT_CHANGED) &&
        strcmp(c->data, data) == 0)
      return c->zxid;
  }
  return 0;
}
