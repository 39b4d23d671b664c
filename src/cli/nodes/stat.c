/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/stat_fields.h"
#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"
#include "cli/output/json.h"
#include "cli/session/command.h"

static void show_stat_json(cli_text *out, const char *path, const lk_stat *s)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(path));
  cli_stat_fields_json(&j, s);
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

static void on_stat_reply(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_command *command = arg;

  (void)c;
  cli_command_complete(command, err);
  if (err == 0 && command->options->json)
    show_stat_json(&command->out, command->path, stat);
  else if (err == 0)
    cli_stat_fields_text(&command->out, stat);
}

int cli_stat(const cli_options *o, char **operands)
{
  cli_command command;

  if (!cli_command_open(&command, o, "stat", operands[0]))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_repeatable_call(&command);
  int err = lk_exists(command.session.client, command.path, &call,
                      on_stat_reply, &command);

  return cli_command_close(&command, cli_command_wait(&command, err));
}
