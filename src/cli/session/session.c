/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/session/session.h"

#include <errno.h>

#include "base/mem.h"
#include "cli/options/number.h"
#include "cli/options/options.h"
#include "cli/output/error_report.h"
#include "cli/output/print.h"
#include "poll/loop.h"

/* ---- the first session --------------------------------------------------- */

enum {
  /* With --read-only: after a read-only server was found, a server with a
     quorum is sought for this long. */
  QUORUM_SEARCH_MS = 1000,
  /* Failed connection attempts are reported after this time without a
     session. */
  REPORT_MS = 1000,
  /* If no attempt has failed, since the first server does not reply, the report
     comes after this time. */
  SILENT_MS = 5000
};

static void stop_connect_timers(cli_session *s)
{
  lk__loop_stop_timer(s->loop, &s->connect_timer);
  lk__loop_stop_timer(s->loop, &s->report_timer);
}

/* The first session is established if `err` is 0, and has failed otherwise. */
static void decide_first_session(cli_session *s, int err)
{
  if (s->decided)
    return;
  s->decided = true;
  s->err = err;
  stop_connect_timers(s);
  if (err == 0 && s->on_session != NULL)
    s->on_session(s, s->arg);
  if (err != 0 && s->on_no_session != NULL)
    s->on_no_session(s, err, s->arg);
}

static void set_connect_timer(cli_session *s, int64_t after_ms)
{
  if (!s->decided)
    lk__loop_set_timer(s->loop, &s->connect_timer, after_ms);
}

static void on_session_state(lk_client *c, lk_state state, int err, void *arg)
{
  cli_session *s = arg;

  (void)c;
  switch (state) {
  case LK_STATE_CONNECTED: decide_first_session(s, 0); break;
  case LK_STATE_READ_ONLY: set_connect_timer(s, QUORUM_SEARCH_MS); break;
  case LK_STATE_SUSPENDED:
    /* The read-only server was lost: connecting has the full time again. */
    set_connect_timer(s, s->patience_ms);
    break;
  case LK_STATE_AUTH_FAILED: decide_first_session(s, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED:
    decide_first_session(s, err == 0 ? LK_ERR_CLOSED : err);
    break;
  case LK_STATE_CONNECTING:
  case LK_STATE_EXPIRED: break;
  }
}

static void on_connect_timeout(lk_loop_timer *t)
{
  cli_session *s = LK_OWNER(t, cli_session, connect_timer);
  /* The search for a server with a quorum has ended without success. */
  bool has_read_only_session = lk_client_state(s->client) == LK_STATE_READ_ONLY;

  decide_first_session(s, has_read_only_session ? 0 : LK_ERR_DEADLINE);
}

static void on_session_log(void *arg, lk_log_level level, int err,
                           const char *text)
{
  cli_session *s = arg;
  lk_tls_cause cause =
      s->client == NULL ? LK_TLS_OTHER : lk_client_tls_cause(s->client);

  (void)level;
  if (!s->decided)
    cli_connection_failures_record(&s->failures, err, cause, text);
  if (s->on_log != NULL && s->options->verbose)
    s->on_log(s, text, s->arg);
}

/* Invoked every REPORT_MS. Reports the connection attempts once: as soon as one
   has failed, or after SILENT_MS. */
static void on_report_timer(lk_loop_timer *t)
{
  cli_session *s = LK_OWNER(t, cli_session, report_timer);
  cli_text text = {0};

  s->waited_ms += REPORT_MS;
  bool too_early =
      s->waited_ms < SILENT_MS && !cli_connection_failures_any(&s->failures);
  bool too_late = s->waited_ms >= s->patience_ms;
  bool has_read_only_session = lk_client_state(s->client) == LK_STATE_READ_ONLY;

  if (too_early || too_late || has_read_only_session) {
    lk__loop_set_timer(s->loop, t, REPORT_MS);
    return;
  }
  cli_text_puts(&text, "no session yet: ");
  cli_connection_failures_list(&s->failures, lk_client_server(s->client),
                               (double)s->waited_ms / 1000, &text);
  cli_text_printf(&text, "; trying for another %g s",
                  (double)(s->patience_ms - s->waited_ms) / 1000);
  const char *line = cli_text_end(&text);

  if (line != NULL)
    s->on_no_session_yet(s, line, s->arg);
  cli_text_free(&text);
}

/* ---- creation ------------------------------------------------------------ */

bool cli_session_read_auth_file(cli_session *s, const cli_options *o,
                                cli_text *complaint)
{
  bool already_read = s->auth_file.name != NULL;

  s->options = o; /* `run` calls this before cli_session_open() */
  if (!cli_auth_file_read(&s->auth_file, o->auth_file, o->auth_pipe, complaint))
    return false;
  if (!already_read && s->auth_file.readable_by_others && !o->quiet)
    cli_warn("other users can read %s; chmod 600 prevents that", o->auth_file);
  return true;
}

static int create_session_client(cli_session *s)
{
  const cli_options *o = s->options;
  lk_client_config config = {.size = sizeof config};
  lk_tls_config tls = cli_tls_config(&o->tls);

  config.hosts = o->hosts;
  config.send_limit = s->max_request;
  config.receive_limit = s->max_reply;
  config.session_timeout_ms = (int32_t)o->session_timeout_ms;
  config.read_only = o->read_only;
  config.log = on_session_log;
  config.log_arg = s;
  config.sasl = cli_auth_file_sasl(&s->auth_file);
  config.tls = cli_tls_is_selected(&o->tls, o->hosts) ? &tls : NULL;
  int err = lk__driver_init(&s->driver, s->loop, &lk__mem_libc);

  return err != 0 ? err
                  : lk__driver_client_new(&s->client, &s->driver, &config);
}

void cli_session_say_client_error(const cli_options *o, int err, cli_text *out)
{
  char wrong[160] = "";

  if (err == LK_ERR_SYSTEM) {
    cli_text_printf(out, "cannot create a client: %s", strerror(errno));
    return;
  }
  if (err != LK_ERR_BAD_HOSTS) {
    cli_text_printf(out, "cannot create a client: %s", lk_error_text(err));
    return;
  }
  lk_hosts_check(o->hosts, wrong, sizeof wrong);
  cli_text_puts(out, "servers \"");
  cli_text_add_printable(out, lk_text(o->hosts));
  cli_text_printf(out, "\": %s; -z takes host:port,host:port/chroot", wrong);
}

/* Returns how long to wait for a session: --connect-timeout, or -w if that is
   shorter. -w 0 means not to queue and does not shorten connecting. */
static int64_t connect_patience_ms(const cli_options *o)
{
  bool shorter = o->wait_ms > 0 && o->wait_ms < o->connect_timeout_ms;

  return shorter ? o->wait_ms : o->connect_timeout_ms;
}

/* With -v the library's log shows each failed attempt, so no report is needed.
 */
static void start_connect_timers(cli_session *s)
{
  s->patience_ms = connect_patience_ms(s->options);
  s->connect_timer.on_timer = on_connect_timeout;
  lk__loop_set_timer(s->loop, &s->connect_timer, s->patience_ms);
  s->report_timer.on_timer = on_report_timer;
  if (s->on_no_session_yet != NULL && !s->options->verbose &&
      s->patience_ms > REPORT_MS)
    lk__loop_set_timer(s->loop, &s->report_timer, REPORT_MS);
}

bool cli_session_open(cli_session *s, const cli_options *o, cli_text *complaint)
{
  s->options = o;
  s->deadline_ms = LK_NO_LIMIT;
  if (!cli_tls_check(&o->tls, o->hosts, complaint) ||
      !cli_size_limit_read(CLI_MAX_REQUEST, o->max_request, &s->max_request,
                           complaint) ||
      !cli_size_limit_read(CLI_MAX_REPLY, o->max_reply, &s->max_reply,
                           complaint))
    return false;
  if (lk__poll_loop_new(&s->loop, &lk__mem_libc) != 0) {
    cli_text_printf(complaint, "cannot create an event loop: %s",
                    strerror(errno));
    return false;
  }
  cli_messages_attach(s->loop);
  cli_connection_failures_init(&s->failures, &o->tls, o->hosts);
  if (!cli_session_read_auth_file(s, o, complaint))
    return false;
  int err = create_session_client(s);

  if (err != 0) {
    cli_session_say_client_error(o, err, complaint);
    return false;
  }
  if (!cli_auth_file_add_to(&s->auth_file, s->client, complaint))
    return false;
  s->listener.size = sizeof s->listener;
  s->listener.state = on_session_state;
  s->listener.arg = s;
  lk_client_attach(s->client, &s->listener);
  if (o->wait_ms > 0)
    s->deadline_ms = lk_client_clock(s->client) + o->wait_ms;
  start_connect_timers(s);
  return true;
}

/* ---- use ----------------------------------------------------------------- */

void cli_session_run(cli_session *s, const bool *done)
{
  lk__poll_loop_run(s->loop, done);
}

int64_t cli_session_deadline(const cli_session *s)
{
  return s->deadline_ms;
}

bool cli_session_is_past_deadline(const cli_session *s)
{
  return s->deadline_ms != LK_NO_LIMIT &&
         lk_client_clock(s->client) >= s->deadline_ms;
}

/* ---- messages ------------------------------------------------------------ */

/* The library's text is "HOST:PORT: reason". A reason that says only that the
   connection is lost is not repeated. */
void cli_session_say_connection_lost(const cli_session *s, cli_text *out)
{
  const char *text;
  int err = lk_client_last_error(s->client, &text);
  const char *colon = strstr(text, ": ");
  size_t server_len = colon == NULL ? strlen(text) : (size_t)(colon - text);
  const char *reason = colon == NULL ? NULL : colon + strlen(": ");

  cli_text_puts(out, "connection to ");
  cli_text_add_printable(out, lk_bytes_of(text, server_len));
  cli_text_puts(out, " lost");
  if (reason == NULL ||
      strcmp(reason, lk_error_text(LK_ERR_CONNECTION_LOSS)) == 0)
    return;
  /* The text of LK_ERR_REFUSED says "without a reply". */
  if (err == LK_ERR_REFUSED)
    reason = "the server closed the connection";
  cli_text_puts(out, ": ");
  cli_text_add_printable(out, lk_text(reason));
}

int cli_session_error(const cli_session *s, int err)
{
  /* Without --auth-file, there are no credentials that can be wrong. */
  return err == LK_ERR_AUTH_FAILED && s->options->auth_file == NULL
             ? LK_ERR_AUTH_REQUIRED
             : err;
}

/* Returns the library's text about the step of SASL that failed; NULL: SASL has
   not failed. The text is "HOST:PORT: SASL ...". */
static const char *sasl_failure(const cli_session *s)
{
  const char *text = NULL;
  int err = lk_client_last_error(s->client, &text);
  const char *sasl = err == LK_ERR_AUTH_FAILED ? strstr(text, ": SASL ") : NULL;

  return sasl == NULL ? NULL : sasl + strlen(": ");
}

static void say_auth_failure(const cli_session *s, cli_text *out)
{
  const char *sasl = sasl_failure(s);

  if (sasl != NULL)
    cli_text_add_printable(out, lk_text(sasl));
  else
    cli_text_puts(out, lk_error_text(cli_session_error(s, s->err)));
}

void cli_session_say_failure(const cli_session *s, cli_text *out)
{
  if (s->err == LK_ERR_AUTH_FAILED)
    say_auth_failure(s, out);
  else
    cli_connection_failures_say(&s->failures, lk_client_server(s->client),
                                (double)s->patience_ms / 1000, out);
}

const char *cli_session_advice(const cli_session *s)
{
  if (s->err != LK_ERR_AUTH_FAILED)
    return cli_connection_failures_advice(&s->failures);
  const char *sasl = sasl_failure(s);

  if (sasl != NULL && strstr(sasl, "refuses the mechanism") != NULL)
    return "zookeeper.fips-mode=false on the servers permits DIGEST-MD5";
  /* The advice for both errors of authentication begins with "; ". */
  return cli_error_advice(cli_session_error(s, s->err)) + strlen("; ");
}

void cli_session_say_chroot_command(const cli_session *s, cli_text *out)
{
  const cli_options *o = s->options;

  cli_text_puts(out, "latchkey create -p -z ");
  cli_tls_add_servers(&o->tls, o->hosts, out);
  cli_tls_add_options(&o->tls, out);
  cli_text_puts(out, " ");
  cli_text_add_printable(out, lk_text(lk_client_chroot(s->client)));
  cli_text_puts(out, " creates it");
}

void cli_session_say_no_chroot(const cli_session *s, cli_text *out)
{
  cli_text_puts(out, "the chroot ");
  cli_text_add_printable(out, lk_text(lk_client_chroot(s->client)));
  cli_text_puts(out, " does not exist; ");
  cli_session_say_chroot_command(s, out);
}

void cli_session_say_no_session(const cli_session *s, cli_text *out)
{
  cli_session_say_failure(s, out);
  cli_text_printf(out, "; %s; latchkey doctor tells more",
                  cli_session_advice(s));
}

/* ---- end ----------------------------------------------------------------- */

static void on_session_closed(lk_client *c, int err, void *arg)
{
  cli_session *s = arg;

  (void)c;
  (void)err;
  s->closed = true;
}

/* Ends the wait without a reply. */
static void on_close_timeout(lk_loop_timer *t)
{
  LK_OWNER(t, cli_session, close_timer)->closed = true;
}

void cli_session_close(cli_session *s)
{
  if (s->client == NULL ||
      lk_client_close(s->client, on_session_closed, s) != 0)
    return;
  s->close_timer.on_timer = on_close_timeout;
  /* Before the deadline the client itself ends the wait, after 1.5 s. */
  if (cli_session_is_past_deadline(s))
    lk__loop_set_timer(s->loop, &s->close_timer, CLI_SESSION_CLOSE_MS);
  cli_session_run(s, &s->closed);
  lk__loop_stop_timer(s->loop, &s->close_timer);
}

void cli_session_free(cli_session *s)
{
  cli_connection_failures_free(&s->failures);
  s->decided = true; /* keeps callbacks of lk_client_free() from reporting */
  lk_client_free(s->client);
  cli_auth_file_free(&s->auth_file);
  lk__driver_free(&s->driver);
  if (s->loop != NULL) {
    stop_connect_timers(s);
    cli_messages_attach(NULL);
  }
  lk__poll_loop_free(s->loop);
  s->client = NULL;
  s->loop = NULL;
}
