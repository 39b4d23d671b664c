/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/doctor/server_checks.h"
#include "cli/output/print.h"
#include "poll/loop.h"

/* ---- the list ------------------------------------------------------------ */

/* Allocates one block: the text "host:port", and behind it the host. */
static bool set_server_name(cli_server_check *check, const char *host,
                            uint16_t port)
{
  bool ipv6 = strchr(host, ':') != NULL;
  size_t host_size = strlen(host) + 1;
  size_t name_size = strlen(host) + sizeof "[]:65535";

  check->name = malloc(name_size + host_size);
  if (check->name == NULL)
    return false;
  snprintf(check->name, name_size, ipv6 ? "[%s]:%u" : "%s:%u", host,
           (unsigned)port);
  memcpy(check->name + name_size, host, host_size);
  check->host = check->name + name_size;
  check->port = port;
  return true;
}

static void add_server_check(const char *host, uint16_t port, void *arg)
{
  cli_server_checks *s = arg;
  void *items = realloc(s->items, (s->count + 1) * sizeof *s->items);

  if (items != NULL)
    s->items = items;
  if (items == NULL || s->err != 0) {
    s->err = LK_ERR_NO_MEMORY;
    return;
  }
  memset(&s->items[s->count], 0, sizeof *s->items);
  if (set_server_name(&s->items[s->count], host, port))
    s->count++;
  else
    s->err = LK_ERR_NO_MEMORY;
}

int cli_server_checks_open(cli_server_checks *s, const cli_options *o)
{
  memset(s, 0, sizeof *s);
  s->options = o;
  int err = cli_tls_hosts_each(&o->tls, o->hosts, add_server_check, s);

  return err != 0 ? err : s->err;
}

static bool had_session(const cli_server_check *check)
{
  return check->timeout_ms != 0;
}

size_t cli_server_checks_count_serving(const cli_server_checks *s)
{
  size_t serving = 0;

  for (size_t i = 0; i < s->count; i++)
    if (had_session(&s->items[i]))
      serving++;
  return serving;
}

/* ---- one server ---------------------------------------------------------- */

/* With TLS 1.3 a server can refuse the client's certificate after the handshake
   has ended for the client, and the port check may not see the refusal. So the
   failure of the session replaces the result of the port check. */
static void copy_tls_failure(cli_server_check *check, const char *text)
{
  cli_port_result *result = &check->port_check.result;
  const char *mark = strstr(text, "TLS: ");

  result->stage = CLI_PORT_TLS_FAILED;
  result->cause = lk_client_tls_cause(check->client);
  result->len = 0;
  if (mark != NULL) {
    text = mark + strlen("TLS: ");
    result->len =
        strlen(text) < sizeof result->text ? strlen(text) : sizeof result->text;
    memcpy(result->text, text, result->len);
  }
}

/* Stores why the client has no session. */
static void copy_last_error(cli_server_check *check)
{
  size_t len = strlen(check->name);
  const char *text;
  int err = lk_client_last_error(check->client, &text);

  check->failure_err = err;
  if (err == 0)
    return;
  if (err == LK_ERR_TLS && !had_session(check))
    copy_tls_failure(check, text);
  /* The library's text is "HOST:PORT: reason". */
  if (strncmp(text, check->name, len) == 0 && text[len] == ':')
    text += len + strlen(": ");
  check->failure.len = 0;
  cli_text_puts(&check->failure, text);
}

static void finish_server_check(cli_server_check *check)
{
  cli_server_checks *checks = check->checks;

  if (check->finished)
    return;
  check->finished = true;
  cli_port_check_end(&check->port_check);
  if (check->client != NULL)
    copy_last_error(check);
  lk_client_free(check->client);
  check->client = NULL;
  for (size_t i = 0; i < checks->count; i++)
    if (!checks->items[i].finished)
      return;
  checks->done = true;
}

static void on_check_closed(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)err;
  finish_server_check(arg);
}

static void on_check_state(lk_client *c, lk_state state, int err, void *arg)
{
  cli_server_check *check = arg;

  (void)err;
  if (state != LK_STATE_CONNECTED || had_session(check))
    return;
  check->timeout_ms = lk_client_timeout_ms(c);
  lk_client_close(c, on_check_closed, check);
}

static void on_check_log(void *arg, lk_log_level level, int err,
                         const char *text)
{
  (void)arg;
  (void)level;
  (void)err;
  cli_notice("%s", text);
}

static int begin_check_session(cli_server_check *check)
{
  const cli_options *o = check->checks->options;
  lk_client_config config = {.size = sizeof config};

  config.hosts = check->name;
  config.session_timeout_ms = (int32_t)o->session_timeout_ms;
  config.tls =
      cli_tls_is_selected(&o->tls, o->hosts) ? &check->checks->tls : NULL;
  config.log = o->verbose ? on_check_log : NULL;
  check->listener.size = sizeof check->listener;
  check->listener.state = on_check_state;
  check->listener.arg = check;
  int err =
      lk__driver_client_new(&check->client, &check->checks->driver, &config);

  if (err == 0)
    lk_client_attach(check->client, &check->listener);
  return err;
}

/* Whether the server may give a session, by the result of the port check. */
static bool may_give_session(const cli_server_check *check)
{
  const cli_port_result *result = &check->port_check.result;

  if (result->wrong_transport)
    return false;
  /* The session shows why a server has closed the connection. */
  return result->stage == CLI_PORT_HUNG_UP ||
         (result->stage == CLI_PORT_REPLIED &&
          check->reply.state != CLI_FOUR_LETTER_NO_QUORUM &&
          check->reply.state != CLI_FOUR_LETTER_READ_ONLY);
}

void cli_server_check_on_port_checked(cli_server_check *check)
{
  const cli_port_result *result = &check->port_check.result;

  if (result->stage == CLI_PORT_REPLIED)
    cli_four_letter_reply_read(&check->reply,
                               lk_bytes_of(result->text, result->len));
  int err = may_give_session(check) ? begin_check_session(check) : 0;

  if (err != 0) {
    check->checks->err = err;
    check->checks->done = true;
  }
  if (check->client == NULL)
    finish_server_check(check);
}

/* ---- all servers --------------------------------------------------------- */

/* Ends the checks of servers that refuse a session: without this, the client
   would retry until the time is over. After LK_ERR_CONNECT it may retry, since
   the port check has reached another address of the server. */
static void on_check_tick(lk_loop_timer *t)
{
  cli_server_checks *s = LK_OWNER(t, cli_server_checks, ticker);

  lk__loop_set_timer(s->loop, t, CLI_CLOCK_CHECK_TICK_MS);
  for (size_t i = 0; i < s->count; i++) {
    cli_server_check *check = &s->items[i];
    const char *text;

    if (check->client == NULL || had_session(check))
      continue;
    int err = lk_client_last_error(check->client, &text);

    if (err != 0 && err != LK_ERR_CONNECT)
      finish_server_check(check);
  }
}

static void on_check_timeout(lk_loop_timer *t)
{
  cli_server_checks *s = LK_OWNER(t, cli_server_checks, connect_timer);

  for (size_t i = 0; i < s->count; i++)
    finish_server_check(&s->items[i]);
}

static int begin_all_checks(cli_server_checks *s)
{
  const cli_options *o = s->options;
  bool tls_selected = cli_tls_is_selected(&o->tls, o->hosts);
  int err = lk__driver_init(&s->driver, s->loop, &lk__mem_libc);

  if (err != 0)
    return err;
  s->tls = cli_tls_config(&o->tls);
  for (size_t i = 0; i < s->count; i++) {
    cli_server_check *check = &s->items[i];

    check->checks = s;
    cli_port_check_begin(&check->port_check, check->host, check->port,
                         tls_selected ? &s->tls : NULL, o->connect_timeout_ms,
                         s->loop, s->driver.shared.resolver);
  }
  return s->err;
}

static void start_check_timers(cli_server_checks *s)
{
  s->connect_timer.on_timer = on_check_timeout;
  lk__loop_set_timer(s->loop, &s->connect_timer,
                     s->options->connect_timeout_ms);
  s->ticker.on_timer = on_check_tick;
  lk__loop_set_timer(s->loop, &s->ticker, CLI_CLOCK_CHECK_TICK_MS);
}

int cli_server_checks_run(cli_server_checks *s, cli_clock_check *clocks)
{
  int err = lk__poll_loop_new(&s->loop, &lk__mem_libc);

  if (err != 0)
    return err;
  s->err = begin_all_checks(s);
  start_check_timers(s);
  cli_clock_check_start(clocks, s->loop);
  lk__loop_ref(s->loop); /* the port checks do not keep it running */
  if (s->err == 0)
    lk__poll_loop_run(s->loop, &s->done);
  cli_clock_check_stop(clocks);
  lk__loop_stop_timer(s->loop, &s->connect_timer);
  lk__loop_stop_timer(s->loop, &s->ticker);
  return s->err;
}

void cli_server_checks_free(cli_server_checks *s)
{
  for (size_t i = 0; i < s->count; i++) {
    cli_port_check_end(&s->items[i].port_check);
    lk_client_free(s->items[i].client);
    cli_text_free(&s->items[i].failure);
    free(s->items[i].name);
  }
  free(s->items);
  lk__driver_free(&s->driver);
  lk__poll_loop_free(s->loop);
}
