/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/lock.h>

#include "cli/locks/contenders.h"
#include "cli/output/print.h"
#include "cli/verbs.h"

static void on_revoke_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  cli_command_complete(arg, err);
}

/* Asks a holder for the release. LK_ERR_NO_NODE is no error: the holder has
   released the lock meanwhile. */
static int request_release(cli_command *a, const char *node)
{
  lk_call call = cli_command_call_options(a, false);
  int err = node == NULL
                ? LK_ERR_NO_MEMORY
                : lk_set(a->session.client, node, lk_text(LK_REVOKE_MESSAGE),
                         -1, &call, on_revoke_set, a);

  err = cli_command_wait(a, err);
  return err == LK_ERR_NO_NODE ? 0 : err;
}

int cli_revoke(const cli_options *o, char **operands)
{
  cli_command command;
  cli_contenders queue;

  if (!cli_command_open(&command, o, "revoke", operands[0]))
    return CLI_EXIT_FAILED;
  int err = cli_contenders_list(&queue, &command);

  if (err == 0 && queue.semaphore)
    err = cli_contenders_read_nodes(&queue);
  if (err == 0)
    cli_contenders_order(&queue);
  size_t holders = cli_contenders_count_holders(&queue);

  for (size_t i = 0; err == 0 && i < queue.count; i++) {
    char *node = queue.all[i].holds ? cli_contenders_path(&queue, i) : NULL;

    if (queue.all[i].holds)
      err = request_release(&command, node);
    free(node);
  }
  int code = cli_command_close(&command, err);

  if (code == CLI_EXIT_DONE && holders == 0)
    code = cli_fail(CLI_EXIT_NO, "revoke %s: the lock is free%s", operands[0],
                    queue.missing ? ": no such node" : "");
  cli_contenders_free(&queue);
  return code;
}
