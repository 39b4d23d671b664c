/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/port_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "cli/doctor/four_letter_word.h"
#include "cli/doctor/server_checks.h"
#include "cli/output/system_clocks.h"

/* ---- a connection to one address ----------------------------------------- */

/* A reply ends this long after its first byte, if the server does not close the
   connection. */
enum { REPLY_MS = 1000 };

/* The descriptor stays readable if the connection has ended. */
static void port_end_reply(cli_port_connection *c)
{
  lk__loop_stop_io(c->transport.loop, &c->transport.io);
  lk__loop_stop_timer(c->transport.loop, &c->reply_timer);
  c->on_event(c, CLI_PORT_REPLY);
}

static void port_receive(cli_port_connection *c)
{
  lk_watched_transport *s = &c->transport;

  while (c->len < sizeof c->text) {
    size_t got;
    lk_flow flow = s->type->recv(s->object, c->text + c->len,
                                 sizeof c->text - c->len, &got);

    if (c->len == 0 && got > 0)
      lk__loop_set_timer(s->loop, &c->reply_timer, REPLY_MS);
    c->len += got;
    c->failed = flow == LK_FLOW_FAILED;
    if (flow == LK_FLOW_END || flow == LK_FLOW_FAILED)
      break;
    if (flow == LK_FLOW_DONE)
      continue;
    (void)lk__watched_transport_watch_for(s, flow);
    return;
  }
  port_end_reply(c);
}

/* A send that fails is ignored: bytes that the server sent before it closed the
   connection can still be received. */
static void port_send(cli_port_connection *c)
{
  const lk_watched_transport *s = &c->transport;
  size_t len = c->word == NULL ? 0 : strlen(c->word);

  while (c->sent < len) {
    size_t done;
    lk_flow flow =
        s->type->send(s->object, c->word + c->sent, len - c->sent, &done);

    c->sent += done;
    if (flow == LK_FLOW_FAILED)
      break;
    if (c->sent < len && lk__watched_transport_watch_for(&c->transport, flow))
      return;
  }
  port_receive(c);
}

static void port_continue_connecting(cli_port_connection *c, lk_flow flow)
{
  if (lk__watched_transport_watch_for(&c->transport, flow))
    return;
  lk__loop_stop_io(c->transport.loop, &c->transport.io);
  if (flow != LK_FLOW_DONE) {
    c->on_event(c, CLI_PORT_FAILED);
    return;
  }
  c->connected = true;
  c->on_event(c, CLI_PORT_CONNECTED);
  if (c->connected)
    port_send(c);
}

static void on_port_ready(lk_loop_io *io, int events)
{
  cli_port_connection *c = LK_OWNER(io, cli_port_connection, transport.io);

  if ((events & LK_LOOP_ERROR) != 0)
    c->on_event(c, c->connected ? CLI_PORT_REPLY : CLI_PORT_FAILED);
  else if (c->connected)
    port_send(c);
  else
    port_continue_connecting(c,
                             c->transport.type->handshake(c->transport.object));
}

static void on_reply_timeout(lk_loop_timer *t)
{
  port_end_reply(LK_OWNER(t, cli_port_connection, reply_timer));
}

/* Connects, and sends `word`. The caller zeroes `c` and sets `on_event`, which
   may be invoked before this returns. false: out of memory. */
static bool port_connection_open(cli_port_connection *c, lk_loop *loop,
                                 const lk_transport_type *type,
                                 const lk_transport_target *to,
                                 const char *word)
{
  c->transport = (lk_watched_transport){.io.on_events = on_port_ready};
  c->reply_timer.on_timer = on_reply_timeout;
  c->word = word;
  c->sent = 0;
  c->connected = false;
  c->failed = false;
  c->len = 0;
  if (!lk__watched_transport_init(&c->transport, loop, type, &lk__mem_libc))
    return false;
  port_continue_connecting(c, lk__watched_transport_connect(&c->transport, to));
  return true;
}

/* Closes and frees it, at any stage. Another open may follow. */
static void port_connection_close(cli_port_connection *c)
{
  if (c->transport.object == NULL)
    return;
  lk__loop_stop_timer(c->transport.loop, &c->reply_timer);
  lk__watched_transport_close(&c->transport);
  lk__watched_transport_free(&c->transport, &lk__mem_libc);
  c->transport.object = NULL;
  c->connected = false;
}

/* ---- the result ---------------------------------------------------------- */

static void set_text(cli_port_check *check, cli_port_stage stage,
                     const char *text, size_t len)
{
  cli_port_result *result = &check->result;

  result->stage = stage;
  result->len = len < sizeof result->text ? len : sizeof result->text;
  if (len > 0)
    memcpy(result->text, text, result->len);
}

static void set_stage(cli_port_check *check, cli_port_stage stage)
{
  set_text(check, stage, NULL, 0);
}

static void finish_port_check(cli_port_check *check)
{
  cli_port_check_end(check);
  cli_server_check_on_port_checked(
      LK_OWNER(check, cli_server_check, port_check));
}

static void fail_port_check(cli_port_check *check, cli_port_stage stage,
                            const char *why)
{
  set_text(check, stage, why, strlen(why));
  finish_port_check(check);
}

static void record_tls_connection(cli_port_check *check)
{
  check->result.has_connection =
      check->tls != NULL &&
      lk_tls_inspect(check->connection.transport.object,
                     &check->result.connection,
                     sizeof check->result.connection) == 0;
}

/* ---- time ---------------------------------------------------------------- */

static int64_t time_left_ms(const cli_port_check *check)
{
  int64_t left_ms = check->until_ms - cli_boottime_ms();

  return left_ms > 0 ? left_ms : 0;
}

/* Each address gets an equal share of the remaining time. */
static int64_t share_of_address_ms(const cli_port_check *check)
{
  return time_left_ms(check) / (int64_t)(check->count - check->index);
}

static void set_port_timer(cli_port_check *check, int64_t after_ms,
                           void (*on_timer)(lk_loop_timer *t))
{
  lk__loop_stop_timer(check->loop, &check->timer);
  check->timer.on_timer = on_timer;
  lk__loop_set_timer(check->loop, &check->timer, after_ms);
}

static void try_next_address(cli_port_check *check, int error);

static void on_address_timeout(lk_loop_timer *t)
{
  try_next_address(LK_OWNER(t, cli_port_check, timer), ETIMEDOUT);
}

/* ---- four-letter words --------------------------------------------------- */

static lk_transport_target target_of(const cli_port_check *check,
                                     const lk_tls_config *tls)
{
  return (lk_transport_target){.address = &check->addresses[check->index],
                               .port = check->port,
                               .host = check->host,
                               .tls = tls};
}

static void on_connection_event(cli_port_connection *c, cli_port_event event);

static void open_connection(cli_port_check *check)
{
  const lk_transport_type *type =
      check->tls == NULL ? lk_transport_tcp() : lk_transport_tls();
  lk_transport_target to = target_of(check, check->tls);

  check->connection.on_event = on_connection_event;
  if (!port_connection_open(&check->connection, check->loop, type, &to,
                            *check->word))
    fail_port_check(check, CLI_PORT_NOT_CONNECTED, strerror(ENOMEM));
}

/* The reply to the word before is the result. */
static void on_word_timeout(lk_loop_timer *t)
{
  finish_port_check(LK_OWNER(t, cli_port_check, timer));
}

/* If the server has disabled this word, sends the next one. Each needs a
   connection of its own. */
static void take_reply(cli_port_check *check)
{
  const cli_port_connection *c = &check->connection;

  if (c->len > 0)
    set_text(check, CLI_PORT_REPLIED, c->text, c->len);
  else if (check->result.stage != CLI_PORT_REPLIED)
    set_stage(check, CLI_PORT_HUNG_UP);
  bool is_disabled =
      c->len > 0 && cli_four_letter_is_disabled(lk_bytes_of(c->text, c->len));

  if (!is_disabled || check->word[1] == NULL) {
    finish_port_check(check);
    return;
  }
  check->word++;
  port_connection_close(&check->connection);
  set_port_timer(check, time_left_ms(check) / 2, on_word_timeout);
  open_connection(check);
}

/* ---- the other transport ------------------------------------------------- */

/* After this time without a reply, the other transport is tried (TLS instead of
   plain TCP, or the reverse). The first connection stays open meanwhile. */
enum { OTHER_TRANSPORT_AFTER_MS = 2000 };

/* Half of the time is left for the other transport. */
static int64_t time_for_first_transport_ms(int64_t left_ms)
{
  return left_ms / 2 < OTHER_TRANSPORT_AFTER_MS ? left_ms / 2
                                                : OTHER_TRANSPORT_AFTER_MS;
}

static void end_other_transport(cli_port_check *check)
{
  port_connection_close(&check->other);
  check->other_is_open = false;
  lk__loop_stop_timer(check->loop, &check->timer);
  if (check->next == CLI_PORT_TAKE_REPLY)
    take_reply(check);
  else if (check->result.wrong_transport || check->next == CLI_PORT_FINISH)
    finish_port_check(check);
  else if (check->index + 1 < check->count)
    set_port_timer(check, share_of_address_ms(check), on_address_timeout);
}

static bool is_reply_of_zookeeper(const cli_port_connection *c)
{
  cli_four_letter_reply reply;

  cli_four_letter_reply_read(&reply, lk_bytes_of(c->text, c->len));
  return c->len > 0 && reply.state != CLI_FOUR_LETTER_NOT_ZOOKEEPER;
}

/* Whether the version of TLS was agreed. Then the port speaks TLS even if the
   handshake failed: the server may require a client certificate. */
static bool has_tls_version(const cli_port_connection *c)
{
  lk_tls_connection found;

  return lk_tls_inspect(c->transport.object, &found, sizeof found) == 0 &&
         found.version[0] != '\0';
}

static void on_other_event(cli_port_connection *c, cli_port_event event)
{
  cli_port_check *check = LK_OWNER(c, cli_port_check, other);
  bool is_plain = check->tls != NULL;

  if (event == CLI_PORT_CONNECTED && is_plain)
    return; /* the reply follows */
  check->result.wrong_transport =
      is_plain ? event == CLI_PORT_REPLY && is_reply_of_zookeeper(c)
               : event == CLI_PORT_CONNECTED || has_tls_version(c);
  end_other_transport(check);
}

static void on_other_timeout(lk_loop_timer *t)
{
  end_other_transport(LK_OWNER(t, cli_port_check, timer));
}

/* Checks whether the port speaks the transport that is not selected: plain TCP,
   on which it replies to a four-letter word; or TLS. `next` follows. */
static void check_other_transport(cli_port_check *check, cli_port_next next)
{
  static const lk_tls_config any = {.size = sizeof any,
                                    .any_certificate = true};
  bool is_plain = check->tls != NULL;
  const lk_transport_type *type =
      is_plain ? lk_transport_tcp() : lk_transport_tls();
  lk_transport_target to = target_of(check, is_plain ? NULL : &any);

  check->next = next;
  check->other_is_open = true;
  set_port_timer(check, time_left_ms(check) / 2, on_other_timeout);
  check->other.on_event = on_other_event;
  if (type == NULL ||
      !port_connection_open(&check->other, check->loop, type, &to,
                            is_plain ? cli_four_letter_words[0] : NULL))
    end_other_transport(check);
}

/* The first connection has ended or replied while the other transport is
   tried, which is not needed any more. */
static void drop_other_transport(cli_port_check *check)
{
  port_connection_close(&check->other);
  check->other_is_open = false;
  lk__loop_stop_timer(check->loop, &check->timer);
}

/* ---- connecting ---------------------------------------------------------- */

/* TCP is connected, and the TLS handshake takes long. While TCP is not
   connected, the other transport cannot be tried. */
static void on_slow_handshake(lk_loop_timer *t)
{
  cli_port_check *check = LK_OWNER(t, cli_port_check, timer);

  if (!lk__watched_transport_has_tcp(&check->connection.transport)) {
    set_port_timer(check, share_of_address_ms(check), on_address_timeout);
    return;
  }
  set_stage(check, CLI_PORT_TLS_HANDSHAKE);
  check_other_transport(check, CLI_PORT_WAIT);
}

static void connect_address(cli_port_check *check)
{
  lk_address address = check->addresses[check->index];
  int64_t share_ms = share_of_address_ms(check);

  lk__address_set_port(&address, check->port);
  lk__address_text(&address, check->result.address,
                   sizeof check->result.address);
  set_stage(check, CLI_PORT_CONNECTING);
  if (check->tls == NULL)
    set_port_timer(check, share_ms, on_address_timeout);
  else
    set_port_timer(check, time_for_first_transport_ms(share_ms),
                   on_slow_handshake);
  open_connection(check);
}

/* The connection to an address has failed. */
static void try_next_address(cli_port_check *check, int error)
{
  port_connection_close(&check->connection);
  check->index++;
  if (check->index < check->count)
    connect_address(check);
  else
    fail_port_check(check, CLI_PORT_NOT_CONNECTED, strerror(error));
}

/* If the port does not speak TLS, checks whether it is a plain port of
   ZooKeeper. */
static void take_tls_failure(cli_port_check *check)
{
  static const char mark[] = "TLS: ";
  const size_t mark_len = sizeof mark - 1;
  const lk_transport *t = check->connection.transport.object;
  bool is_marked = strncmp(t->why, mark, mark_len) == 0;
  const char *why = is_marked ? t->why + mark_len : t->why;

  lk__loop_stop_timer(check->loop, &check->timer);
  record_tls_connection(check);
  check->result.cause = t->cause;
  set_text(check, CLI_PORT_TLS_FAILED, why, strlen(why));
  if (t->cause == LK_TLS_NOT_TLS)
    check_other_transport(check, CLI_PORT_FINISH);
  else
    finish_port_check(check);
}

static void take_connect_failure(cli_port_check *check)
{
  const lk_transport *t = check->connection.transport.object;

  if (t->err == LK_ERR_TLS)
    take_tls_failure(check);
  else
    try_next_address(check, t->sys_errno != 0 ? t->sys_errno : EIO);
}

/* ---- events of the connection -------------------------------------------- */

/* The server does not reply on a plain connection. */
static void on_no_reply(lk_loop_timer *t)
{
  check_other_transport(LK_OWNER(t, cli_port_check, timer), CLI_PORT_WAIT);
}

static void on_connected(cli_port_check *check)
{
  lk__loop_stop_timer(check->loop, &check->timer);
  record_tls_connection(check);
  /* Holds if the check ends before a reply comes. A reply to an earlier word
     says more. */
  if (check->result.stage != CLI_PORT_REPLIED)
    set_stage(check, CLI_PORT_SILENT);
  if (check->tls == NULL)
    set_port_timer(check, time_for_first_transport_ms(time_left_ms(check)),
                   on_no_reply);
}

static void on_connection_event(cli_port_connection *c, cli_port_event event)
{
  cli_port_check *check = LK_OWNER(c, cli_port_check, connection);
  bool another_word = check->word != cli_four_letter_words;

  if (check->other_is_open)
    drop_other_transport(check);
  lk__loop_stop_timer(check->loop, &check->timer);
  if (event == CLI_PORT_CONNECTED)
    on_connected(check);
  else if (event == CLI_PORT_FAILED && another_word)
    finish_port_check(check); /* the reply to the word before is the result */
  else if (event == CLI_PORT_FAILED)
    take_connect_failure(check);
  /* TLS 1.3 refuses a client certificate after the handshake. */
  else if (c->len == 0 && c->failed && c->transport.object->err == LK_ERR_TLS)
    take_tls_failure(check);
  else if (check->tls == NULL && !is_reply_of_zookeeper(c))
    check_other_transport(check, CLI_PORT_TAKE_REPLY);
  else
    take_reply(check);
}

/* ---- creation ------------------------------------------------------------ */

static bool set_addresses(cli_port_check *check, const lk_address *list,
                          size_t count)
{
  check->addresses = malloc(count * sizeof *list);
  if (check->addresses == NULL)
    return false;
  memcpy(check->addresses, list, count * sizeof *list);
  check->count = count;
  return true;
}

static void begin_with_addresses(cli_port_check *check, const lk_address *list,
                                 size_t count)
{
  if (set_addresses(check, list, count))
    connect_address(check);
  else
    fail_port_check(check, CLI_PORT_NOT_CONNECTED, strerror(ENOMEM));
}

/* The reason without "resolve HOST: ". */
static const char *reason_of(const char *why)
{
  const char *mark = strstr(why, ": ");

  return mark == NULL ? why : mark + strlen(": ");
}

static void on_lookup(lk_lookup *l, const lk_address *list, size_t count,
                      const char *why)
{
  cli_port_check *check = LK_OWNER(l, cli_port_check, lookup);

  lk__lookup_cancel(l);
  check->result.lookup_ms = cli_boottime_ms() - check->began_ms;
  if (count > 0)
    begin_with_addresses(check, list, count);
  else
    fail_port_check(check, CLI_PORT_NOT_RESOLVED, reason_of(why));
}

void cli_port_check_begin(cli_port_check *check, const char *host,
                          uint16_t port, const lk_tls_config *tls,
                          int64_t patience_ms, lk_loop *loop,
                          lk_resolver *resolver)
{
  const size_t one = 1;
  lk_address literal;

  check->host = host;
  check->port = port;
  check->tls = tls;
  check->began_ms = cli_boottime_ms();
  check->until_ms = check->began_ms + patience_ms;
  check->loop = loop;
  check->resolver = resolver;
  check->word = cli_four_letter_words;
  lk__list_init(&check->lookup.link);
  check->lookup.done = on_lookup;
  if (lk__address_parse(&literal, host))
    begin_with_addresses(check, &literal, one);
  else if (!lk__resolver_lookup(resolver, &check->lookup, host))
    fail_port_check(check, CLI_PORT_NOT_RESOLVED, strerror(ENOMEM));
}

/* ---- end ----------------------------------------------------------------- */

static bool is_asking(const cli_port_check *check, lk_lookup_kind kind)
{
  return lk__resolver_is_asking(check->resolver, check->host, kind);
}

/* If a family is not answered, its query and the one for both families hang. */
static void record_silent_families(cli_port_check *check)
{
  bool for_both = is_asking(check, LK_LOOKUP_ANY);
  bool for_ipv4 = is_asking(check, LK_LOOKUP_IPV4);
  bool for_ipv6 = is_asking(check, LK_LOOKUP_IPV6);

  check->result.no_ipv4_answer = for_both && for_ipv4 && !for_ipv6;
  check->result.no_ipv6_answer = for_both && for_ipv6 && !for_ipv4;
}

void cli_port_check_end(cli_port_check *check)
{
  if (check->loop == NULL)
    return;
  record_silent_families(check);
  lk__lookup_cancel(&check->lookup);
  lk__loop_stop_timer(check->loop, &check->timer);
  port_connection_close(&check->connection);
  port_connection_close(&check->other);
  free(check->addresses);
  check->addresses = NULL;
  check->loop = NULL;
}
