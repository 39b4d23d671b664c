/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include <latchkey/nodes.h>

#include "cli/nodes/node_data.h"
#include "cli/options/verbs.h"
#include "cli/output/print.h"
#include "cli/session/command.h"

static void on_node_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_command *command = arg;

  (void)c;
  cli_command_complete(command, err);
  if (err == 0 && command->options->verbose)
    cli_notice("%s has version %" PRId32, command->path, stat->version);
}

int cli_set(const cli_options *o, char **operands)
{
  cli_text data = {0};
  int code = CLI_EXIT_FAILED;
  cli_command command;

  if (cli_node_data_read(operands[1], &data) &&
      cli_command_open(&command, o, "set", operands[0])) {
    lk_call call = cli_command_repeatable_call(&command);
    const bool sole = false; /* other clients may write the node, too */
    int err = lk_set_reliable(command.session.client, command.path,
                              cli_node_data_bytes(&data), o->node_version, sole,
                              &call, on_node_set, &command);

    code = cli_command_close(&command, cli_command_wait(&command, err));
  }
  cli_text_free(&data);
  return code;
}
