/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/nodes.h>

#include "cli/error_report.h"
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
  cli_command *command = arg;

  (void)c;
  if (command->options->verbose)
    cli_notice("%zu nodes deleted", deleted);
  cli_command_complete(command, err);
}

/* Deletes the node and all its descendants. The request has no deadline, since
   a large tree takes long. */
static int delete_tree(cli_command *command)
{
  const lk_call *no_deadline = NULL;
  const lk_progress_cb no_progress = NULL;
  int err =
      lk_delete_recursive(command->session.client, command->path, no_deadline,
                          no_progress, on_tree_deleted, command);

  return cli_command_wait(command, err);
}

static int delete_node(cli_command *command)
{
  lk_call call = cli_command_repeatable_call(command);
  const bool sole = false; /* other clients may write the node, too */
  int err = lk_delete_reliable(command->session.client, command->path,
                               command->options->node_version, sole, &call,
                               on_node_deleted, command);

  return cli_command_wait(command, err);
}

/* The deletion of a tree has ended for `reason`. */
static int close_unfinished_tree(cli_command *command, int code,
                                 const char *reason)
{
  cli_text path = {0};

  cli_text_add_printable(&path, lk_text(command->path));
  const char *clean = cli_text_end(&path);

  cli_fail(code, "delete %s: %s", clean == NULL ? "" : clean, reason);
  cli_text_free(&path);
  (void)cli_command_close(command, 0);
  return code;
}

static int close_tree(cli_command *command, int err)
{
  if (err == LK_ERR_NOT_EMPTY) /* each list of a node has shown new children */
    return close_unfinished_tree(command, CLI_EXIT_NO,
                                 "other clients create nodes below it; try "
                                 "again when they have stopped");
  if (err == LK_ERR_NO_AUTH)
    return close_unfinished_tree(
        command, CLI_EXIT_FAILED,
        "not allowed by the access list of the parent, of the node, or of one "
        "below it (latchkey acl shows a list); " CLI_ADVICE_IDENTITY);
  return cli_command_close(command, err);
}

int cli_delete(const cli_options *o, char **operands)
{
  cli_command command;

  if (o->recursive && o->node_version != CLI_ANY_VERSION)
    return cli_fail(CLI_EXIT_FAILED,
                    "delete: -V and -r exclude each other; give one of them");
  if (!cli_command_open(&command, o, "delete", operands[0]))
    return CLI_EXIT_FAILED;
  int err = o->recursive ? delete_tree(&command) : delete_node(&command);

  return o->recursive ? close_tree(&command, err)
                      : cli_command_close(&command, err);
}
