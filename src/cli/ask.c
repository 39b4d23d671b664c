/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/ask.h"
#include "cli/print.h"

static void on_log(cli_link *l, const char *text, void *arg)
{
  (void)l;
  (void)arg;
  cli_say("%s", text);
}

bool cli_ask_begin(cli_ask *a, const cli_options *o, const char *verb,
                   const char *path, cli_text *complaint)
{
  memset(a, 0, sizeof *a);
  a->options = o;
  a->verb = verb;
  a->path = path;
  a->link.log = on_log;
  if (cli_link_open(&a->link, o, complaint))
    return true;
  cli_ask_free(a);
  return false;
}

bool cli_ask_open(cli_ask *a, const cli_options *o, const char *verb,
                  const char *path)
{
  cli_text complaint = {0};

  if (!cli_ask_begin(a, o, verb, path, &complaint)) {
    cli_fail_text(CLI_FAILED, NULL, &complaint);
    return false;
  }
  if (!cli_link_wait(&a->link)) {
    cli_ask_free(a);
    return false;
  }
  if (lk_client_state(a->link.client) == LK_STATE_READ_ONLY)
    cli_warn("%s has no quorum; what it shows may be old",
             lk_client_server(a->link.client));
  return true;
}

lk_call cli_ask_call(const cli_ask *a, bool repeat)
{
  lk_call call = {.size = sizeof call, .repeat = repeat};
  int64_t limit = cli_link_limit(&a->link);

  call.deadline_ms =
      lk_client_clock(a->link.client) + a->options->session_timeout_ms;
  if (limit != LK_NO_LIMIT && limit < call.deadline_ms)
    call.deadline_ms = limit;
  return call;
}

void cli_ask_answer(cli_ask *a, int err)
{
  a->err = err;
  a->done = true;
}

int cli_ask_wait(cli_ask *a, int err)
{
  if (err == 0) {
    cli_link_run(&a->link, &a->done);
    err = a->done ? a->err : LK_ERR_CLOSED;
  }
  a->done = false;
  return err;
}

void cli_ask_free(cli_ask *a)
{
  cli_link_free(&a->link);
  cli_text_free(&a->out);
}

int cli_ask_close(cli_ask *a, int err)
{
  int code =
      err != 0 ? cli_complain(a->verb, a->path, err) : cli_print(&a->out);

  cli_link_close(&a->link);
  cli_ask_free(a);
  return code;
}
