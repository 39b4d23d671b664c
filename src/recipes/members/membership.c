/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "base/mem.h"
#include "proto/engine/lease_slot.h"
#include "recipes/call.h"
#include "recipes/members/member_node.h"
#include "recipes/members/member_step.h"
#include "recipes/names.h"

/* After a loss or an error. A membership of the longest pause ends the
 * doubling. */
enum { FIRST_PAUSE_MS = 100, MAX_PAUSE_MS = 10 * 1000 };

#define PARTY_SUFFIX "__party__" /* of the names in kazoo's Party */

/* ---- the client ---------------------------------------------------------- */

/* The node is gone with its session. */
static void membership_expired(lk_membership *m)
{
  lk__membership_stop_watch(m);
  m->node.may_exist = false;
  if (lk__client_end_err(m->client) != 0) {
    lk__membership_end(m, LK_ERR_SESSION_EXPIRED);
    return;
  }
  if (m->wanted)
    lk__membership_pause_after_loss(m);
  lk__membership_left(m, LK_ERR_SESSION_EXPIRED);
  lk__membership_step_or_retry(m);
}

static void on_client_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_membership *m = arg;

  (void)c;
  (void)err;
  lk__membership_ref(m);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED:
  case LK_STATE_READ_ONLY: break;
  case LK_STATE_CONNECTED: lk__membership_step_or_retry(m); break;
  case LK_STATE_EXPIRED: membership_expired(m); break;
  case LK_STATE_AUTH_FAILED: lk__membership_end(m, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: lk__membership_end(m, LK_ERR_CLOSED); break;
  }
  lk__membership_unref(m);
}

/* ---- creation ------------------------------------------------------------ */

static bool name_is_valid(const char *name)
{
  return name == NULL || (name[0] != '\0' && strchr(name, '/') == NULL);
}

/* Write the path of the node, and the directory behind it. */
static void membership_write_path(lk_membership *m, const char *dir,
                                  const char *name)
{
  char party[LK_UNIQUE_PART_MAX_LEN + sizeof PARTY_SUFFIX];
  unsigned char random[16];

  if (name == NULL) {
    lk_client_random(m->client, random, sizeof random);
    lk__name_write_unique_part(LK_IDENTITY_HEX, party, random);
    strcat(party, PARTY_SUFFIX);
    name = party;
  }
  (void)lk__write_child_path(m->path, dir, lk_text(name));
  char *behind = m->path + strlen(m->path) + 1;

  memcpy(behind, dir, strlen(dir) + 1);
  m->dir = behind;
}

/* false: no memory. */
static bool membership_copy_config(lk_membership *m,
                                   const lk_membership_config *config)
{
  m->on_event = config->on_event;
  m->arg = config->arg;
  m->parent_flags = config->persistent_parents ? LK_PERSISTENT : LK_CONTAINER;
  if (config->acl != NULL)
    m->acl = lk__acls_copy(&m->mem, config->acl);
  if (config->parent_acl != NULL)
    m->parent_acl = lk__acls_copy(&m->mem, config->parent_acl);
  return (m->acl != NULL || config->acl == NULL) &&
         (m->parent_acl != NULL || config->parent_acl == NULL) &&
         lk_membership_set_data(m, config->data) == 0;
}

/* A client that has ended already does not report that again. */
static void membership_attach(lk_membership *m)
{
  bool has_expired = lk_client_state(m->client) == LK_STATE_EXPIRED;
  int end_err = lk__client_end_err(m->client);

  if (end_err != 0) {
    m->end_err = has_expired ? LK_ERR_SESSION_EXPIRED : end_err;
    m->client = NULL;
    return;
  }
  m->listener = (lk_listener){.state = on_client_state, .arg = m};
  lk_client_attach(m->client, &m->listener);
  lk__membership_ref(m); /* until lk__membership_leave_client() */
}

int lk_membership_new(lk_membership **out, lk_client *client, const char *path,
                      const char *name, const lk_membership_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_membership_config);
  const lk_mem *mem = lk_client_mem(client);
  lk_membership_config options;

  *out = NULL;
  if (lk__config_copy(client, &sized, &options, config) != 0)
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0 || strcmp(path, "/") == 0 ||
      !name_is_valid(name))
    return LK_ERR_BAD_PATH;
  size_t dir_size = strlen(path) + 1; /* with the NUL, or the '/' */
  size_t name_len = name == NULL ? LK_UNIQUE_PART_MAX_LEN + sizeof PARTY_SUFFIX
                                 : strlen(name);
  lk_membership *m =
      lk__mem_new(mem, sizeof *m + dir_size + name_len + 1 + dir_size);

  if (m == NULL)
    return LK_ERR_NO_MEMORY;
  m->mem = *mem;
  m->step = lk__membership_step_or_retry;
  m->refs = 1;
  m->client = client;
  m->backoff = (lk_backoff){.first_ms = FIRST_PAUSE_MS, .max_ms = MAX_PAUSE_MS};
  membership_write_path(m, path, name);
  int err = membership_copy_config(m, &options) ? 0 : LK_ERR_NO_MEMORY;

  if (err == 0)
    err = lk_path_check(m->path);
  if (err != 0) {
    lk__membership_unref(m);
    return err;
  }
  membership_attach(m);
  *out = m;
  return 0;
}

/* ---- calls --------------------------------------------------------------- */

static bool membership_is_forked(const lk_membership *m)
{
  return m->client != NULL && lk__client_is_forked(m->client);
}

int lk_membership_join(lk_membership *m)
{
  if (m->client == NULL)
    return m->end_err;
  if (membership_is_forked(m))
    return LK_ERR_FORKED;
  if (m->wanted)
    return 0;
  m->wanted = true;
  int err = lk__membership_step(m);

  if (err != 0)
    m->wanted = false;
  return err;
}

void lk_membership_leave(lk_membership *m)
{
  if (!m->wanted)
    return;
  m->wanted = false;
  lk__membership_ref(m);
  lk__retry_pause_stop(&m->pause, m->client);
  lk__membership_step_or_retry(m); /* the delete is sent first */
  lk__membership_stop_watch(m);
  lk__membership_left(m, 0);
  lk__membership_unref(m);
}

void lk_membership_free(lk_membership *m)
{
  if (m == NULL || m->freed)
    return;
  m->freed = true;
  lk_membership_leave(m);
  lk__membership_step_or_retry(m);
  lk__membership_unref(m);
}

int lk_membership_set_data(lk_membership *m, lk_bytes data)
{
  void *copy = NULL;

  if (membership_is_forked(m))
    return LK_ERR_FORKED;
  if (data.len > 0) {
    copy = lk__mem_new(&m->mem, data.len);
    if (copy == NULL)
      return LK_ERR_NO_MEMORY;
    memcpy(copy, data.at, data.len);
  }
  lk__mem_free(&m->mem, m->data);
  m->data = copy;
  m->data_len = data.len;
  m->data_changed = true;
  if (m->joined) {
    lk__membership_ref(m);
    lk__membership_step_or_retry(m);
    lk__membership_unref(m);
  }
  return 0;
}

bool lk_membership_has_joined(const lk_membership *m)
{
  return m->joined && !membership_is_forked(m);
}

const char *lk_membership_path(const lk_membership *m)
{
  return m->path;
}

const char *lk_membership_event_text(lk_membership_event_type type)
{
  switch (type) {
  case LK_MEMBERSHIP_EVENT_JOINED: return "joined";
  case LK_MEMBERSHIP_EVENT_LEFT: return "left";
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN: return "name taken";
  case LK_MEMBERSHIP_EVENT_RETRYING: return "retrying";
  case LK_MEMBERSHIP_EVENT_ENDED: return "ended";
  }
  return "unknown event";
}
