/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/nodes.h>

#include "cli/output/print.h"
#include "cli/session/command.h"
#include "cli/verbs.h"

static void on_node_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  cli_command_complete(arg, err);
}

static void on_tree_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  cli_command *a = arg;

  if (a->options->verbose)
    cli_notice("%zu nodes deleted", deleted);
  on_node_deleted(c, err, arg);
}

/* Deletes the node and all its descendants. The request has no deadline, since
   a large tree takes long. */
static int delete_tree(cli_command *a)
{
  int err = lk_delete_recursive(a->session.client, a->path, NULL, NULL,
                                on_tree_deleted, a);

  return cli_command_wait(a, err);
}

static int delete_node(cli_command *a)
{
  lk_call call = cli_command_call_options(a, true);
  int err =
      lk_delete_reliable(a->session.client, a->path, a->options->node_version,
                         false, &call, on_node_deleted, a);

  return cli_command_wait(a, err);
}

int cli_delete(const cli_options *o, char **operands)
{
  cli_command a;

  if (o->recursive && o->node_version != -1)
    return cli_fail(CLI_EXIT_FAILED,
                    "delete: -V and -r exclude each other; give one of them");
  if (!cli_command_open(&a, o, "delete", operands[0]))
    return CLI_EXIT_FAILED;
  return cli_command_close(&a,
                           o->recursive ? delete_tree(&a) : delete_node(&a));
}
