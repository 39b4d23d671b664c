/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include "cli/output/print.h"
#include "cli/session/session.h"

/* How long a server with a quorum is looked for where one without was found. */
#define SEARCH_S 1.

/* After so long without a session failed attempts are mentioned. */
#define SLOW_S 1.

static void decide(cli_session *l, int err)
{
  if (l->decided)
    return;
  l->decided = true;
  l->trouble = err;
  ev_timer_stop(l->loop, &l->patience);
  ev_timer_stop(l->loop, &l->slowness);
  if (err == 0 && l->up != NULL)
    l->up(l, l->arg);
  if (err != 0 && l->down != NULL)
    l->down(l, err, l->arg);
}

static void give(cli_session *l, double seconds)
{
  if (l->decided)
    return;
  ev_timer_stop(l->loop, &l->patience);
  ev_timer_set(&l->patience, seconds, 0);
  ev_timer_start(l->loop, &l->patience);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  cli_session *l = arg;

  (void)c;
  switch (state) {
  case LK_STATE_CONNECTED: decide(l, 0); break;
  case LK_STATE_READ_ONLY: give(l, SEARCH_S); break;
  case LK_STATE_SUSPENDED: give(l, l->patience_s); break;
  case LK_STATE_AUTH_FAILED: decide(l, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: decide(l, err == 0 ? LK_ERR_CLOSED : err); break;
  case LK_STATE_CONNECTING:
  case LK_STATE_EXPIRED: break;
  }
}

static void on_impatience(struct ev_loop *loop, ev_timer *timer, int events)
{
  cli_session *l = timer->data;

  (void)loop;
  (void)events;
  decide(l, lk_client_state(l->client) == LK_STATE_READ_ONLY ? 0
                                                             : LK_ERR_DEADLINE);
}

static void on_log(void *arg, int level, int err, const char *text)
{
  cli_session *l = arg;
  lk_tls_cause cause =
      l->client == NULL ? LK_TLS_OTHER : lk_client_tls_cause(l->client);

  if (!l->decided)
    cli_connection_attempts_record(&l->attempts, err, cause, text);
  if (level <= LK_LOG_INFO && l->log != NULL && l->options->verbose)
    l->log(l, text, l->arg);
}

/* Once. A server that is only slow is not mentioned; with -v the attempts are
   told one by one. */
static void on_slow(struct ev_loop *loop, ev_timer *timer, int events)
{
  cli_session *l = timer->data;
  cli_text text = {0};

  (void)events;
  l->waited_s += SLOW_S;
  if (l->slow == NULL || l->options->verbose || l->waited_s >= l->patience_s ||
      lk_client_state(l->client) == LK_STATE_READ_ONLY ||
      !cli_connection_attempts_any(&l->attempts))
    return;
  ev_timer_stop(loop, timer);
  cli_text_puts(&text, "no session yet: ");
  cli_connection_attempts_list(&l->attempts, lk_client_server(l->client),
                               l->waited_s, &text);
  cli_text_printf(&text, "; trying for another %g s",
                  l->patience_s - l->waited_s);
  const char *line = cli_text_end(&text);

  if (line != NULL)
    l->slow(l, line, l->arg);
  cli_text_free(&text);
}

bool cli_session_read_auth_file(cli_session *l, const cli_options *o,
                                cli_text *complaint)
{
  bool before = l->identities.name != NULL;

  l->options = o;
  if (!cli_auth_file_read(&l->identities, o->auth_file, complaint))
    return false;
  if (!before && l->identities.others && !o->quiet)
    cli_warn("others may read %s; chmod 600 keeps them out", o->auth_file);
  return true;
}

static int make_client(cli_session *l)
{
  const cli_options *o = l->options;
  lk_client_config config = {.size = sizeof config};
  lk_tls_config tls = cli_tls_config(&o->tls);

  config.hosts = o->hosts;
  config.session_timeout_ms = (int32_t)o->session_timeout_ms;
  config.read_only = o->read_only;
  config.log = on_log;
  config.log_arg = l;
  config.sasl = cli_auth_file_sasl(&l->identities);
  config.tls = cli_tls_is_selected(&o->tls, o->hosts) ? &tls : NULL;
  int err = lk_ev_new(&l->ev, l->loop, NULL);

  return err != 0 ? err : lk_ev_client_new(&l->client, l->ev, &config);
}

void cli_session_say_client_error(const cli_options *o, int err, cli_text *out)
{
  char wrong[160] = "";

  if (err == LK_ERR_SYSTEM) {
    cli_text_printf(out, "cannot make a client: %s", strerror(errno));
    return;
  }
  if (err != LK_ERR_BAD_HOSTS) {
    cli_text_printf(out, "cannot make a client: %s", lk_error_text(err));
    return;
  }
  lk_hosts_check(o->hosts, wrong, sizeof wrong);
  cli_text_puts(out, "servers \"");
  cli_text_clean(out, lk_text(o->hosts));
  cli_text_printf(out, "\": %s; -z takes host:port,host:port/chroot", wrong);
}

int64_t cli_session_deadline(const cli_session *l)
{
  return l->limit;
}

bool cli_session_is_past_deadline(const cli_session *l)
{
  return l->limit != LK_NO_LIMIT && lk_client_clock(l->client) >= l->limit;
}

/* How long a session is waited for. */
static double patience_of(const cli_options *o)
{
  bool shorter = o->wait_ms > 0 && o->wait_ms < o->connect_timeout_ms;

  return (double)(shorter ? o->wait_ms : o->connect_timeout_ms) / 1000;
}

bool cli_session_open(cli_session *l, const cli_options *o, cli_text *complaint)
{
  l->options = o;
  l->limit = LK_NO_LIMIT;
  if (!cli_tls_check(&o->tls, o->hosts, complaint))
    return false;
  l->loop = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
  if (l->loop == NULL) {
    cli_text_printf(complaint, "cannot make an event loop: %s",
                    strerror(errno));
    return false;
  }
  cli_connection_attempts_init(&l->attempts, &o->tls, o->hosts);
  if (!cli_session_read_auth_file(l, o, complaint))
    return false;
  int err = make_client(l);

  if (err != 0) {
    cli_session_say_client_error(o, err, complaint);
    return false;
  }
  if (!cli_auth_file_add_to(&l->identities, l->client, complaint))
    return false;
  l->listener.state = on_state;
  l->listener.arg = l;
  lk_client_attach(l->client, &l->listener);
  if (o->wait_ms > 0)
    l->limit = lk_client_clock(l->client) + o->wait_ms;
  l->patience_s = patience_of(o);
  ev_timer_init(&l->patience, on_impatience, l->patience_s, 0);
  l->patience.data = l;
  ev_timer_start(l->loop, &l->patience);
  ev_timer_init(&l->slowness, on_slow, SLOW_S, SLOW_S);
  l->slowness.data = l;
  if (l->patience_s > SLOW_S)
    ev_timer_start(l->loop, &l->slowness);
  return true;
}

/* The library's text is "HOST:PORT: why", and its text for a connection that
   the server closed says no more than that it is lost. */
void cli_session_say_connection_lost(const cli_session *l, cli_text *out)
{
  const char *text;
  int err = lk_client_last_error(l->client, &text);
  const char *colon = strstr(text, ": ");
  size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);

  cli_text_puts(out, "connection to ");
  cli_text_clean(out, lk_bytes_of(text, len));
  cli_text_puts(out, " lost");
  if (colon == NULL ||
      strcmp(colon + 2, lk_error_text(LK_ERR_CONNECTION_LOSS)) == 0)
    return;
  cli_text_puts(out, ": ");
  cli_text_clean(
      out, lk_text(err == LK_ERR_REFUSED ? "the server hung up" : colon + 2));
}

int cli_session_error(const cli_session *l, int err)
{
  return err == LK_ERR_AUTH_FAILED && l->options->auth_file == NULL
             ? LK_ERR_AUTH_REQUIRED
             : err;
}

/* The library's text is "HOST:PORT: why"; of SASL it names the step. */
static void tell_refusal(const cli_session *l, cli_text *out)
{
  const char *text = NULL;
  int err = lk_client_last_error(l->client, &text);
  const char *sasl = err == LK_ERR_AUTH_FAILED ? strstr(text, ": SASL ") : NULL;

  if (sasl != NULL)
    cli_text_clean(out, lk_text(sasl + 2));
  else
    cli_text_puts(out, lk_error_text(cli_session_error(l, l->trouble)));
}

void cli_session_say_cause(const cli_session *l, cli_text *out)
{
  if (l->trouble == LK_ERR_AUTH_FAILED)
    tell_refusal(l, out);
  else
    cli_connection_attempts_say(&l->attempts, lk_client_server(l->client),
                                l->patience_s, out);
}

const char *cli_session_advice(const cli_session *l)
{
  return l->trouble == LK_ERR_AUTH_FAILED
             ? cli_error_advice(cli_session_error(l, l->trouble)) + strlen("; ")
             : cli_connection_attempts_advice(&l->attempts);
}

void cli_session_say_chroot_command(const cli_session *l, cli_text *out)
{
  const cli_options *o = l->options;

  cli_text_puts(out, "latchkey create -p -z ");
  cli_tls_add_servers(&o->tls, o->hosts, out);
  cli_tls_add_options(&o->tls, out);
  cli_text_puts(out, " ");
  cli_text_clean(out, lk_text(lk_client_chroot(l->client)));
  cli_text_puts(out, " makes it");
}

void cli_session_say_no_chroot(const cli_session *l, cli_text *out)
{
  cli_text_puts(out, "the chroot ");
  cli_text_clean(out, lk_text(lk_client_chroot(l->client)));
  cli_text_puts(out, " does not exist; ");
  cli_session_say_chroot_command(l, out);
}

void cli_session_say_no_session(const cli_session *l, cli_text *out)
{
  cli_session_say_cause(l, out);
  cli_text_printf(out, "; %s; latchkey doctor tells more",
                  cli_session_advice(l));
}

void cli_session_run(cli_session *l, const bool *done)
{
  while (!*done && ev_run(l->loop, EVRUN_ONCE) != 0)
    ;
}

bool cli_session_wait(cli_session *l)
{
  cli_session_run(l, &l->decided);
  if (l->decided && l->trouble == 0)
    return true;
  cli_text text = {0};

  cli_session_say_no_session(l, &text);
  cli_fail_text(CLI_EXIT_FAILED, NULL, &text);
  return false;
}

static void on_closed(lk_client *c, int err, void *arg)
{
  cli_session *l = arg;

  (void)c;
  (void)err;
  l->closed = true;
}

static void on_unconfirmed(struct ev_loop *loop, ev_timer *timer, int events)
{
  cli_session *l = timer->data;

  (void)loop;
  (void)events;
  l->closed = true;
}

void cli_session_close(cli_session *l)
{
  if (l->client == NULL || lk_client_close(l->client, on_closed, l) != 0)
    return;
  ev_timer_init(&l->leave, on_unconfirmed, CLI_SESSION_CLOSE_S, 0);
  l->leave.data = l;
  if (cli_session_is_past_deadline(l))
    ev_timer_start(l->loop, &l->leave);
  cli_session_run(l, &l->closed);
  ev_timer_stop(l->loop, &l->leave);
}

void cli_session_free(cli_session *l)
{
  cli_connection_attempts_free(&l->attempts);
  l->decided = true;
  lk_client_free(l->client);
  cli_auth_file_free(&l->identities);
  lk_ev_free(l->ev);
  if (l->loop != NULL) {
    ev_timer_stop(l->loop, &l->patience);
    ev_timer_stop(l->loop, &l->slowness);
    ev_loop_destroy(l->loop);
  }
  l->client = NULL;
  l->ev = NULL;
  l->loop = NULL;
}
