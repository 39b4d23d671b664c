/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/exit_code.h"
#include "cli/output/json.h"
#include "cli/session/command.h"
#include "cli/verbs.h"

static void on_get_data(lk_client *c, int err, const lk_bytes *data,
                        const lk_stat *stat, void *arg)
{
  cli_command *a = arg;
  cli_json j = {.out = &a->out};

  (void)c;
  cli_command_complete(a, err);
  if (err != 0)
    return;
  if (!a->options->json) {
    cli_text_add(&a->out, data->at, data->len);
    return;
  }
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(a->path));
  cli_json_data(&j, "data", *data);
  cli_json_number(&j, "version", stat->version);
  cli_json_close(&j, '}');
  cli_text_puts(&a->out, "\n");
}

int cli_get(const cli_options *o, char **operands)
{
  cli_command a;

  if (!cli_command_open(&a, o, "get", operands[0]))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_call_options(&a, true);
  int err = lk_get(a.session.client, a.path, &call, on_get_data, &a);

  return cli_command_close(&a, cli_command_wait(&a, err));
}
