/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "world.h"

#include <stdio.h>

/* What other clients, an operator and the server do. */

/* A node of another client. */
static const char *take_name(void)
{
#define UUID "00000000-0000-0000-0000-000000000001"
  static const char *const names[] = {"_c_" UUID "-lock-0000000000",
                                      "_c_" UUID "-lock-0000000002",
                                      "_c_" UUID "-latch-0000000001",
                                      "_c_" UUID "-__READ__0000000001",
                                      "_c_" UUID "-__WRIT__0000000000",
                                      "x__lock__0000000001",
                                      "x__rlock__0000000001",
                                      "_c_" UUID "-lease-0000000000",
                                      "seq-0000000001",
                                      "a",
                                      "m",
                                      "leases"};
#undef UUID

  return names[take() % (sizeof names / sizeof names[0])];
}

static void do_create(void)
{
  const char *dir = take_path();
  const char *name = take_name();
  const sim_node *parent = model_node(&w.server, dir);
  char path[100];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  if (parent != NULL && parent->stat.ephemeral_owner == 0 &&
      model_node(&w.server, path) == NULL)
    model_create_ephemeral(&w.server, path, "other", 77);
}

static void do_create_directory(void)
{
  const char *path = take_path();
  bool is_top = strchr(path + 1, '/') == NULL;

  if (is_top && model_node(&w.server, path) == NULL)
    model_create(&w.server, path);
}

/* A child of the path, or the node at the path if it has none. */
static const char *take_node(void)
{
  const char *path = take_path();
  unsigned which = take();
  const sim_node *n = model_node(&w.server, path);

  if (n == NULL || n->children == NULL)
    return n == NULL ? NULL : n->path;
  n = n->children;
  for (; which % 16 > 0 && n->next != NULL; which--)
    n = n->next;
  return n->children == NULL ? n->path : NULL;
}

static void do_delete(void)
{
  const char *path = take_node();

  if (path != NULL)
    model_delete(&w.server, path);
}

static void do_set(void)
{
  static const char *const values[] = {"", "__REVOKE__", "x__HEAD__", "2"};
  const char *path = take_node();
  const char *value = values[take() % 4];

  if (path != NULL)
    model_set(&w.server, path, value);
}

static void do_deny(void)
{
  const char *path = take_node();
  int32_t perms = (int32_t)(take() % 32);

  if (path != NULL)
    model_deny(&w.server, path, perms);
}

static void do_backdate(void)
{
  const char *path = take_node();

  if (path != NULL)
    model_backdate(&w.server, path);
}

static void do_expire(void)
{
  if (w.client.link->last_session != 0)
    model_expire(&w.server, w.client.link->last_session);
}

static void do_sweep(void)
{
  model_sweep(&w.server);
}

void do_act(void)
{
  static const action acts[] = {
      ACTION(create),  ACTION(create), ACTION(create_directory),
      ACTION(delete),  ACTION(delete), ACTION(set),
      ACTION(deny),    ACTION(expire), ACTION(sweep),
      ACTION(backdate)};

  run(ACTIONS(acts));
}
