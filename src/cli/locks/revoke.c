/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/lock.h>

#include "cli/locks/contenders.h"
#include "cli/options/verbs.h"
#include "cli/output/print.h"

static void on_revoke_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  cli_command_complete(arg, err);
}

/* Asks contender `i`, a holder, to release the lock. LK_ERR_NO_NODE is no
   error: the holder has released the lock meanwhile. */
static int request_release(cli_contenders *queue, size_t i)
{
  cli_command *command = queue->command;
  lk_call call = cli_command_unrepeatable_call(command);
  char *node = cli_contenders_path(queue, i);
  int err = node == NULL ? LK_ERR_NO_MEMORY
                         : lk_set(command->session.client, node,
                                  lk_text(LK_REVOKE_MESSAGE), CLI_ANY_VERSION,
                                  &call, on_revoke_set, command);

  free(node);
  err = cli_command_wait(command, err);
  queue->all[i].gone = err == LK_ERR_NO_NODE;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

/* Whether LOCK is a node that is not known to be ephemeral: perhaps no client
   of the lock has created it, and its data may be of use to others. Such a node
   is not written to. The name of a contender in a queue tells that; a single
   node may have any name. */
static bool is_other_node(const cli_contenders *queue)
{
  return queue->command->options->single_node && queue->count == 1 &&
         !cli_contender_is_ephemeral(&queue->all[0]);
}

static int report_refusal(const char *lock, const cli_contender *node)
{
  if (node->hidden)
    return cli_fail(CLI_EXIT_FAILED,
                    "revoke %s: there is no permission to read the node, so it "
                    "is not known to be that of a lock",
                    lock);
  return cli_fail(CLI_EXIT_FAILED,
                  "revoke %s: the node is not ephemeral, so no client of the "
                  "lock has created it; latchkey delete deletes it",
                  lock);
}

/* Asks all holders. After an error, the contenders that were not asked are
   dropped from the queue: they are not shown. */
static int request_releases(cli_contenders *queue)
{
  for (size_t i = 0; i < queue->count; i++) {
    int err = queue->all[i].holds ? request_release(queue, i) : 0;

    if (err != 0) {
      queue->count = i;
      return err;
    }
  }
  return 0;
}

/* ---- output -------------------------------------------------------------- */

static bool was_asked(const cli_contender *c)
{
  return c->holds && !c->gone;
}

/* Shows each label as it was before LK_REVOKE_MESSAGE replaced it. */
static void show_asked(const cli_contenders *queue, cli_text *out)
{
  for (size_t i = 0; i < queue->count; i++) {
    if (!was_asked(&queue->all[i]))
      continue;
    cli_text_puts(out, "asked  ");
    cli_contender_add_label(&queue->all[i], out);
    cli_text_puts(out, "  ");
    cli_text_add_printable(out, lk_text(queue->all[i].name));
    cli_text_puts(out, "\n");
  }
}

static void show_asked_json(const cli_contenders *queue, cli_text *out)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "lock", lk_text(queue->command->path));
  cli_json_open(&j, "asked", '[');
  for (size_t i = 0; i < queue->count; i++) {
    if (!was_asked(&queue->all[i]))
      continue;
    cli_json_open(&j, NULL, '{');
    cli_contender_add_node_json(queue, i, &j);
    cli_contender_add_label_json(&queue->all[i], &j);
    cli_json_close(&j, '}');
  }
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

static bool was_any_asked(const cli_contenders *queue)
{
  for (size_t i = 0; i < queue->count; i++)
    if (was_asked(&queue->all[i]))
      return true;
  return false;
}

/* Also after an error, the holders that were asked before it are shown.
   cli_command_close() prints the text only if there is no error. */
static int show_and_close(cli_contenders *queue, int err)
{
  cli_command *command = queue->command;

  if (command->options->json)
    show_asked_json(queue, &command->out);
  else
    show_asked(queue, &command->out);
  if (err != 0 && was_any_asked(queue))
    (void)cli_print(&command->out);
  return cli_command_close(command, err);
}

int cli_revoke(const cli_options *o, char **operands)
{
  cli_command command;
  cli_contenders queue;

  if (!cli_command_open(&command, o, "revoke", operands[0]))
    return CLI_EXIT_FAILED;
  int err = cli_contenders_list(&queue, &command);

  if (err == 0)
    err = cli_contenders_read_nodes(&queue);
  if (err == 0)
    cli_contenders_mark_holders(&queue);
  size_t holders = cli_contenders_count_holders(&queue);
  bool refused = err == 0 && is_other_node(&queue);

  if (refused)
    queue.count = 0; /* no holder is asked or shown */
  if (err == 0)
    err = request_releases(&queue);
  int code = show_and_close(&queue, err);

  if (code == CLI_EXIT_DONE && refused)
    code = report_refusal(operands[0], &queue.all[0]);
  else if (code == CLI_EXIT_DONE && holders == 0)
    code = cli_fail(CLI_EXIT_NO, "revoke %s: the lock is free%s", operands[0],
                    queue.missing && !o->single_node ? ": no such node" : "");
  cli_contenders_free(&queue);
  return code;
}
