/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/change_log.h"

#include <stdio.h>
#include <stdlib.h>

void sim_change_log_free(sim_change_log *j)
{
  free(j->changes);
}

bool sim_is_below(const char *path, const char *top)
{
  size_t len = strlen(top);

  return strncmp(path, top, len) == 0 && path[len] == '/';
}

static sim_change *append(sim_change_log *j)
{
  if (j->count == j->cap) {
    j->cap = j->cap == 0 ? 256 : j->cap * 2;
    j->changes = realloc(j->changes, j->cap * sizeof *j->changes);
    if (j->changes == NULL)
      abort();
  }
  sim_change *c = &j->changes[j->count++];

  memset(c, 0, sizeof *c);
  return c;
}

void sim_change_log_add(sim_change_log *j, const sim_node *n,
                        lk_event_type type, int64_t zxid)
{
  size_t len = (size_t)n->stat.data_length;

  if (strcmp(n->path, SIM_REQUEST_DIR) != 0 &&
      !sim_is_below(n->path, SIM_REQUEST_DIR))
    return;
  if (strlen(n->path) >= SIM_CHANGE_PATH)
    abort(); /* no actor creates such a path */
  sim_change *c = append(j);

  c->zxid = zxid;
  c->type = type;
  snprintf(c->path, sizeof c->path, "%s", n->path);
  c->dir_len = (size_t)(strrchr(c->path, '/') - c->path);
  c->stat = n->stat;
  if (len >= sizeof c->data)
    len = sizeof c->data - 1;
  if (len > 0)
    memcpy(c->data, n->data, len);
  c->perms = n->perms;
  c->parent_perms = n->parent->perms;
}

size_t sim_change_log_first_after(const sim_change_log *j, int64_t zxid)
{
  size_t i = j->count;

  while (i > 0 && j->changes[i - 1].zxid > zxid)
    i--;
  return i;
}

const sim_change *sim_change_log_at(const sim_change_log *j, const char *path,
                                    int64_t zxid)
{
  for (size_t i = sim_change_log_first_after(j, zxid); i-- > 0;) {
    const sim_change *c = &j->changes[i];

    if (strcmp(c->path, path) == 0)
      return c->type == LK_EVENT_DELETED ? NULL : c;
  }
  return NULL;
}

size_t sim_change_log_count_below(const sim_change_log *j, const char *path,
                                  bool children, int64_t zxid)
{
  size_t end = sim_change_log_first_after(j, zxid), count = 0;

  for (size_t i = 0; i < end; i++) {
    const sim_change *c = &j->changes[i];

    if (children ? !sim_is_child(c, path) : !sim_is_below(c->path, path))
      continue;
    count += c->type == LK_EVENT_CREATED;
    count -= c->type == LK_EVENT_DELETED;
  }
  return count;
}

int64_t sim_change_log_zxid_of(const sim_change_log *j, const char *data)
{
  for (size_t i = 0; i < j->count; i++) {
    const sim_change *c = &j->changes[i];

    if ((c->type == LK_EVENT_CREATED || c->type == LK_EVENT_CHANGED) &&
        strcmp(c->data, data) == 0)
      return c->zxid;
  }
  return 0;
}
