/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"
#include "cli/run/runner.h"
#include "cli/session/session_messages.h"

/* The session of a run: its start, and its connections. */

static void on_first_session(cli_session *s, void *arg)
{
  cli_runner *r = arg;
  bool acl_is_open = r->acl.list.entries == lk_acl_open.entries;

  (void)s;
  r->phase = CLI_PHASE_ACQUIRING;
  if (acl_is_open)
    r->target->report_open_acl(r);
  r->target->acquire(r);
}

static void on_no_session(cli_session *s, int err, void *arg)
{
  cli_runner *r = arg;
  cli_text text = {0};

  (void)err;
  if (r->phase != CLI_PHASE_CONNECTING)
    return;
  cli_session_say_no_session(s, &text);
  const char *line = cli_text_end(&text);

  cli_run_fail(r, CLI_EXIT_FAILED,
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line);
  cli_text_free(&text);
}

static void report_connection_lost(cli_runner *r)
{
  cli_text text = {0};

  cli_session_say_connection_lost(&r->session, &text);
  const char *line = cli_text_end(&text);

  if (line != NULL)
    cli_events_notice(&r->events, "%s; reconnecting", line);
  cli_text_free(&text);
}

static void handle_reconnect(cli_runner *r)
{
  if (r->suspended)
    cli_events_notice(&r->events, "reconnected");
  r->suspended = false;
  if (r->target->reconnected != NULL)
    r->target->reconnected(r);
}

static void on_run_session_state(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)err;
  if (r->phase != CLI_PHASE_ACQUIRING && r->phase != CLI_PHASE_RUNNING)
    return;
  if (state == LK_STATE_CONNECTED)
    handle_reconnect(r);
  if (state != LK_STATE_SUSPENDED)
    return;
  r->suspended = true;
  /* With -v the library's log reports the lost connection. */
  if (!r->events.verbose)
    report_connection_lost(r);
}

static void on_run_log(cli_session *s, const char *text, void *arg)
{
  cli_runner *r = arg;

  (void)s;
  cli_events_detail(&r->events, "%s", text);
}

static void on_no_session_yet(cli_session *s, const char *text, void *arg)
{
  cli_runner *r = arg;

  (void)s;
  cli_events_notice(&r->events, "%s", text);
}

bool cli_run_session_open(cli_runner *r, cli_text *complaint)
{
  const cli_options *o = r->options;

  r->session.on_session = on_first_session;
  r->session.on_no_session = on_no_session;
  r->session.on_log = on_run_log;
  r->session.on_no_session_yet = on_no_session_yet;
  r->session.arg = r;
  if (!cli_session_open(&r->session, o, complaint))
    return false;
  r->wait_ends_at = cli_session_deadline(&r->session);
  r->listener.state = on_run_session_state;
  r->listener.arg = r;
  int err = r->target->create(r);

  if (err != 0) {
    cli_text_add_printable(complaint, lk_text(r->path));
    cli_text_printf(complaint, ": %s%s", lk_error_text(err),
                    cli_error_advice(err));
    return false;
  }
  lk_client_attach(r->session.client, &r->listener);
  return true;
}
