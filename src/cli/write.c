/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include <latchkey/nodes.h>

#include "cli/ask.h"
#include "cli/data.h"
#include "cli/nodes.h"
#include "cli/print.h"

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  cli_ask_answer(arg, err);
}

/* ---- set ---------------------------------------------------------------- */

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_ask *a = arg;

  (void)c;
  cli_ask_answer(a, err);
  if (err == 0 && a->options->verbose)
    cli_say("%s has version %" PRId32, a->path, stat->version);
}

int cli_set(const cli_options *o, char **operands)
{
  cli_text data = {0};
  int code = CLI_FAILED;
  cli_ask a;

  if (cli_data_read(operands[1], &data) &&
      cli_ask_open(&a, o, "set", operands[0])) {
    lk_call call = cli_ask_call(&a, true);
    int err = lk_set_reliable(a.link.client, a.path, cli_data_bytes(&data),
                              o->node_version, false, &call, on_set, &a);

    code = cli_ask_close(&a, cli_ask_wait(&a, err));
  }
  cli_text_free(&data);
  return code;
}

/* ---- delete ------------------------------------------------------------- */

static void on_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  cli_ask *a = arg;

  if (a->options->verbose)
    cli_say("%zu nodes deleted", deleted);
  on_done(c, err, arg);
}

/* As long as the servers answer. */
static int delete_tree(cli_ask *a)
{
  int err =
      lk_delete_recursive(a->link.client, a->path, NULL, NULL, on_deleted, a);

  return cli_ask_wait(a, err);
}

static int delete_node(cli_ask *a)
{
  lk_call call = cli_ask_call(a, true);
  int err =
      lk_delete_reliable(a->link.client, a->path, a->options->node_version,
                         false, &call, on_done, a);

  return cli_ask_wait(a, err);
}

int cli_delete(const cli_options *o, char **operands)
{
  cli_ask a;

  if (o->recursive && o->node_version != -1)
    return cli_fail(CLI_FAILED,
                    "delete: -V and -r exclude each other; give one of them");
  if (!cli_ask_open(&a, o, "delete", operands[0]))
    return CLI_FAILED;
  return cli_ask_close(&a, o->recursive ? delete_tree(&a) : delete_node(&a));
}
