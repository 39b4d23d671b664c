/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The calls of <latchkey/nodes.h>: "create_deep NAME path=... data=...
 * flags=... containers=1", "delete_deep NAME path=...", and "create_reliable",
 * "set_reliable", "delete_reliable" with sole=1, which sets their argument
 * `sole`. All take wait=MS, and delete_deep takes repeat=1.
 */

#include "live/support/worker.h"

#include <stdio.h>
#include <stdlib.h>

static lk_call option_call(const command *cmd)
{
  return (lk_call){.size = sizeof(lk_call),
                   .timeout_ms = option_number(cmd, "wait", 0),
                   .repeat = option_flag(cmd, "repeat")};
}

static bool option_sole(const command *cmd)
{
  return option_flag(cmd, "sole");
}

/* ---- trees --------------------------------------------------------------- */

static void execute_create_deep(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_call call = option_call(cmd);
  lk_parents_config parents = {.size = sizeof parents,
                               .containers = option_flag(cmd, "containers"),
                               .acl = option_acl(cmd, "acl")};

  report_if_refused(cmd,
                    lk_create_with_parents(
                        o->client, option_path(cmd), option_bytes(cmd, "data"),
                        NULL, (int)option_number(cmd, "flags", 0), &parents,
                        &call, report_created, tag),
                    tag);
}

static void on_deleted(lk_client *c, int err, size_t deleted, void *tag)
{
  (void)c;
  print_line(tag, "err=%s deleted=%zu", error_word(err), deleted);
  free(tag);
}

static void execute_delete_deep(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_call call = option_call(cmd);

  report_if_refused(cmd,
                    lk_delete_recursive(o->client, option_path(cmd), &call,
                                        NULL, on_deleted, tag),
                    tag);
}

/* ---- reliable writes ----------------------------------------------------- */

static void execute_create_reliable(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_call call = option_call(cmd);

  report_if_refused(
      cmd,
      lk_create_reliable(o->client, option_path(cmd), option_bytes(cmd, "data"),
                         NULL, (int)option_number(cmd, "flags", 0),
                         option_sole(cmd), &call, report_created, tag),
      tag);
}

static void execute_set_reliable(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_call call = option_call(cmd);

  report_if_refused(cmd,
                    lk_set_reliable(o->client, option_path(cmd),
                                    option_bytes(cmd, "data"),
                                    option_version(cmd), option_sole(cmd),
                                    &call, report_stat, tag),
                    tag);
}

static void execute_delete_reliable(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_call call = option_call(cmd);

  report_if_refused(cmd,
                    lk_delete_reliable(o->client, option_path(cmd),
                                       option_version(cmd), option_sole(cmd),
                                       &call, report_done, tag),
                    tag);
}

const verb node_verbs[] = {
    {"create_deep", execute_create_deep},
    {"delete_deep", execute_delete_deep},
    {"create_reliable", execute_create_reliable},
    {"set_reliable", execute_set_reliable},
    {"delete_reliable", execute_delete_reliable},
    {NULL, NULL},
};
