/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"
#include "cli/output/json.h"
#include "cli/session/command.h"

static void on_get_data(lk_client *c, int err, const lk_bytes *data,
                        const lk_stat *stat, void *arg)
{
  cli_command *command = arg;
  cli_json j = {.out = &command->out};

  (void)c;
  cli_command_complete(command, err);
  if (err != 0)
    return;
  if (!command->options->json) {
    cli_text_add(&command->out, data->at, data->len);
    return;
  }
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(command->path));
  cli_json_data(&j, "data", *data);
  cli_json_number(&j, "version", stat->version);
  cli_json_close(&j, '}');
  cli_text_puts(&command->out, "\n");
}

int cli_get(const cli_options *o, char **operands)
{
  cli_command command;

  if (!cli_command_open(&command, o, "get", operands[0]))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_repeatable_call(&command);
  int err = lk_get(command.session.client, command.path, &call, on_get_data,
                   &command);

  return cli_command_close(&command, cli_command_wait(&command, err));
}
