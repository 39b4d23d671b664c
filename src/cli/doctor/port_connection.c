/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/list.h"
#include "base/mem.h"
#include "cli/doctor/port_connection.h"

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

bool cli_port_connection_open(cli_port_connection *c, lk_loop *loop,
                              const lk_transport_type *type,
                              const lk_transport_target *to, const char *word)
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

void cli_port_connection_close(cli_port_connection *c)
{
  if (c->transport.object == NULL)
    return;
  lk__loop_stop_timer(c->transport.loop, &c->reply_timer);
  lk__watched_transport_close(&c->transport);
  lk__watched_transport_free(&c->transport, &lk__mem_libc);
  c->transport.object = NULL;
  c->connected = false;
}
