/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include <latchkey/nodes.h>

#include "cli/nodes/node_data.h"
#include "cli/output/print.h"
#include "cli/session/command.h"
#include "cli/verbs.h"

static void on_node_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_command *a = arg;

  (void)c;
  cli_command_complete(a, err);
  if (err == 0 && a->options->verbose)
    cli_notice("%s has version %" PRId32, a->path, stat->version);
}

int cli_set(const cli_options *o, char **operands)
{
  cli_text data = {0};
  int code = CLI_EXIT_FAILED;
  cli_command a;

  if (cli_node_data_read(operands[1], &data) &&
      cli_command_open(&a, o, "set", operands[0])) {
    lk_call call = cli_command_call_options(&a, true);
    int err =
        lk_set_reliable(a.session.client, a.path, cli_node_data_bytes(&data),
                        o->node_version, false, &call, on_node_set, &a);

    code = cli_command_close(&a, cli_command_wait(&a, err));
  }
  cli_text_free(&data);
  return code;
}
