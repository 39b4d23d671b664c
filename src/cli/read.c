/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/ask.h"
#include "cli/json.h"
#include "cli/nodes.h"
#include "cli/print.h"

/* ---- get ----------------------------------------------------------------- */

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  cli_ask *a = arg;
  cli_json j = {.out = &a->out};

  (void)c;
  cli_ask_answer(a, err);
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
  cli_ask a;

  if (!cli_ask_open(&a, o, "get", operands[0]))
    return CLI_FAILED;
  lk_call call = cli_ask_call(&a, true);
  int err = lk_get(a.link.client, a.path, &call, on_data, &a);

  return cli_ask_close(&a, cli_ask_wait(&a, err));
}

/* ---- ls ------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
  const lk_bytes *x = a;
  const lk_bytes *y = b;
  size_t len = x->len < y->len ? x->len : y->len;
  int order = len == 0 ? 0 : memcmp(x->at, y->at, len);

  return order != 0 ? order : x->len < y->len ? -1 : x->len > y->len;
}

static void list(cli_ask *a, const lk_bytes *names, size_t count)
{
  cli_json j = {.out = &a->out};

  if (a->options->json) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "path", lk_text(a->path));
    cli_json_open(&j, "children", '[');
  }
  for (size_t i = 0; i < count; i++) {
    if (a->options->json) {
      cli_json_text(&j, NULL, names[i]);
    } else {
      cli_text_clean(&a->out, names[i]);
      cli_text_puts(&a->out, "\n");
    }
  }
  if (a->options->json) {
    cli_json_close(&j, ']');
    cli_json_close(&j, '}');
    cli_text_puts(&a->out, "\n");
  }
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  lk_bytes *sorted = NULL;

  (void)c;
  (void)stat;
  if (err == 0 && count > 0) {
    sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL)
      err = LK_ERR_NO_MEMORY;
  }
  cli_ask_answer(arg, err);
  if (sorted != NULL) {
    memcpy(sorted, names, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_names);
  }
  if (err == 0)
    list(arg, sorted, count);
  free(sorted);
}

int cli_ls(const cli_options *o, char **operands)
{
  cli_ask a;

  if (!cli_ask_open(&a, o, "ls", operands[0]))
    return CLI_FAILED;
  lk_call call = cli_ask_call(&a, true);
  int err = lk_children(a.link.client, a.path, &call, on_names, &a);

  return cli_ask_close(&a, cli_ask_wait(&a, err));
}

/* ---- stat ---------------------------------------------------------------- */

static void show_time(cli_text *out, const char *name, int64_t ms)
{
  cli_text_printf(out, "%s ", name);
  cli_text_time(out, ms);
  cli_text_puts(out, "\n");
}

static void show_stat(cli_text *out, const lk_stat *s)
{
  cli_text_printf(out, "czxid %" PRIu64 "\n", (uint64_t)s->czxid);
  cli_text_printf(out, "mzxid %" PRIu64 "\n", (uint64_t)s->mzxid);
  cli_text_printf(out, "pzxid %" PRIu64 "\n", (uint64_t)s->pzxid);
  show_time(out, "ctime", s->ctime);
  show_time(out, "mtime", s->mtime);
  cli_text_printf(out, "version %" PRId32 "\n", s->version);
  cli_text_printf(out, "cversion %" PRId32 "\n", s->cversion);
  cli_text_printf(out, "aversion %" PRId32 "\n", s->aversion);
  cli_text_printf(out, "ephemeral_owner 0x%" PRIx64 "\n",
                  (uint64_t)s->ephemeral_owner);
  cli_text_printf(out, "data_length %" PRId32 "\n", s->data_length);
  cli_text_printf(out, "num_children %" PRId32 "\n", s->num_children);
}

static void show_stat_json(cli_text *out, const char *path, const lk_stat *s)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(path));
  cli_json_big(&j, "czxid", (uint64_t)s->czxid);
  cli_json_big(&j, "mzxid", (uint64_t)s->mzxid);
  cli_json_big(&j, "pzxid", (uint64_t)s->pzxid);
  cli_json_time(&j, "ctime", s->ctime);
  cli_json_time(&j, "mtime", s->mtime);
  cli_json_number(&j, "version", s->version);
  cli_json_number(&j, "cversion", s->cversion);
  cli_json_number(&j, "aversion", s->aversion);
  cli_json_hex(&j, "ephemeral_owner", (uint64_t)s->ephemeral_owner);
  cli_json_number(&j, "data_length", s->data_length);
  cli_json_number(&j, "num_children", s->num_children);
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_ask *a = arg;

  (void)c;
  cli_ask_answer(a, err);
  if (err == 0 && a->options->json)
    show_stat_json(&a->out, a->path, stat);
  else if (err == 0)
    show_stat(&a->out, stat);
}

int cli_stat(const cli_options *o, char **operands)
{
  cli_ask a;

  if (!cli_ask_open(&a, o, "stat", operands[0]))
    return CLI_FAILED;
  lk_call call = cli_ask_call(&a, true);
  int err = lk_exists(a.link.client, a.path, &call, on_stat, &a);

  return cli_ask_close(&a, cli_ask_wait(&a, err));
}
