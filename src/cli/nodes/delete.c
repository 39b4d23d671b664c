/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/nodes.h>

#include "cli/options/verbs.h"
#include "cli/output/error_report.h"
#include "cli/output/print.h"
#include "cli/session/command.h"

static void on_node_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  cli_command_complete(arg, err);
}

typedef struct tree_deletion {
  cli_command command;
  cli_text failed; /* the node whose delete or list has failed */
} tree_deletion;

static void on_tree_deleted(lk_client *c, int err, size_t deleted,
                            const char *path, void *arg)
{
  tree_deletion *t = arg;

  (void)c;
  if (t->command.options->verbose)
    cli_notice("%zu nodes deleted", deleted);
  cli_text_add_printable(&t->failed, lk_text(path));
  cli_command_complete(&t->command, err);
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

/* The deletion of a tree has ended, at the node `failed`. */
static int fail_tree(const cli_command *command, int code, const char *failed,
                     const char *reason)
{
  cli_text path = {0};

  cli_text_add_printable(&path, lk_text(command->path));
  const char *clean = cli_text_end(&path);

  cli_fail(code, "delete %s: %s: %s", clean == NULL ? "" : clean, failed,
           reason);
  cli_text_free(&path);
  return code;
}

static int close_tree(tree_deletion *t, int err)
{
  const int no_error = 0;
  const char *failed = cli_text_end(&t->failed);
  int code = CLI_EXIT_DONE;

  if (failed == NULL || *failed == '\0') /* the library had no memory for it */
    failed = t->command.path;
  /* Each list of the node has shown new children. */
  if (err == LK_ERR_NOT_EMPTY)
    code = fail_tree(&t->command, CLI_EXIT_NO, failed,
                     "other clients create nodes below it; try again when they "
                     "have stopped");
  if (err == LK_ERR_NO_AUTH)
    code = fail_tree(&t->command, CLI_EXIT_FAILED, failed,
                     "not allowed by its access list or by that of its "
                     "parent; " CLI_ADVICE_IDENTITY);
  int close_code =
      cli_command_close(&t->command, code == CLI_EXIT_DONE ? err : no_error);

  cli_text_free(&t->failed);
  return code == CLI_EXIT_DONE ? close_code : code;
}

/* Deletes the node and all its descendants. The request has no deadline, since
   a large tree takes long. */
static int delete_tree(const cli_options *o, const char *path)
{
  tree_deletion t = {.failed = {.len = 0}};
  const lk_call *no_deadline = NULL;
  const lk_progress_cb no_progress = NULL;

  if (!cli_command_open(&t.command, o, "delete", path))
    return CLI_EXIT_FAILED;
  int err = lk_delete_recursive2(t.command.session.client, t.command.path,
                                 no_deadline, no_progress, on_tree_deleted, &t);

  return close_tree(&t, cli_command_wait(&t.command, err));
}

int cli_delete(const cli_options *o, char **operands)
{
  cli_command command;

  if (o->recursive && o->node_version != CLI_ANY_VERSION)
    return cli_fail(CLI_EXIT_FAILED,
                    "delete: -V and -r exclude each other; give one of them");
  if (o->recursive)
    return delete_tree(o, operands[0]);
  if (!cli_command_open(&command, o, "delete", operands[0]))
    return CLI_EXIT_FAILED;
  return cli_command_close(&command, delete_node(&command));
}
