/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/exit_code.h"
#include "cli/nodes/stat_fields.h"
#include "cli/output/json.h"
#include "cli/session/command.h"
#include "cli/verbs.h"

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
  cli_command *a = arg;

  (void)c;
  cli_command_complete(a, err);
  if (err == 0 && a->options->json)
    show_stat_json(&a->out, a->path, stat);
  else if (err == 0)
    cli_stat_fields_text(&a->out, stat);
}

int cli_stat(const cli_options *o, char **operands)
{
  cli_command a;

  if (!cli_command_open(&a, o, "stat", operands[0]))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_call_options(&a, true);
  int err = lk_exists(a.session.client, a.path, &call, on_stat_reply, &a);

  return cli_command_close(&a, cli_command_wait(&a, err));
}
