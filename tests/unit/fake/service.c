/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/service.h"

#include <check.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/list.h"
#include "jute/reader.h"
#include "support/wire.h"
#include "unit/fake/sockets.h"

enum { OP_CLOSE = -11, OP_PING = 11, NO_NODE = -101, TIMEOUT_MS = 600 };

enum { NEW_SESSION = 77, ZXID = 1 }; /* of all new sessions, all replies */

enum { FRAME_HEADER = 4 }; /* the length of the frame behind it */

struct service {
  struct ev_loop *loop;
  service_faults faults;
  unsigned accepted, resumed, requests;
  int listener;
  ev_io io;
  lk_link connections;
};

typedef struct connection {
  lk_link link;
  service *service;
  bool handshake_done;
  lk_buf in, out;
  ev_io io;               /* receives and serves */
  ev_prepare before_poll; /* sends, once in each turn of the loop */
} connection;

typedef enum ending { CLOSE, RESET } ending;

/* The calls of ev_ref() undo those of ev_unref() in on_accept(). */
static void end_connection(connection *c, ending how)
{
  ev_ref(c->service->loop);
  ev_io_stop(c->service->loop, &c->io);
  ev_ref(c->service->loop);
  ev_prepare_stop(c->service->loop, &c->before_poll);
  if (how == RESET)
    sockets_reset(c->io.fd);
  else
    close(c->io.fd);
  lk__buf_free(&c->in);
  lk__buf_free(&c->out);
  lk__list_remove(&c->link);
  free(c);
}

static void answer_handshake(connection *c, lk_reader *r)
{
  int64_t session;

  lk__reader_int(r);  /* protocol version */
  lk__reader_long(r); /* last zxid seen */
  lk__reader_int(r);  /* timeout */
  session = lk__reader_long(r);
  c->handshake_done = true;
  if (session == 0)
    session = NEW_SESSION;
  else
    c->service->resumed++;
  wire_welcome(&c->out, session, TIMEOUT_MS);
}

static void answer_request(connection *c, lk_reader *r)
{
  int32_t xid = lk__reader_int(r);
  int32_t op = lk__reader_int(r);
  int32_t err = 0;

  if (op != OP_PING && op != OP_CLOSE) {
    c->service->requests++;
    err = NO_NODE;
  }
  if (!c->service->faults.idle)
    wire_reply(&c->out, xid, ZXID, err);
}

/* Returns false if no whole frame has arrived. */
static bool serve_frame(connection *c)
{
  const unsigned char *in = lk__buf_bytes(&c->in);
  lk_reader r;
  size_t len;

  if (in == NULL || lk__buf_len(&c->in) < FRAME_HEADER)
    return false;
  lk__reader_init(&r, in, lk__buf_len(&c->in));
  len = (size_t)lk__reader_int(&r);
  if (lk__buf_len(&c->in) < FRAME_HEADER + len)
    return false;
  if (c->handshake_done)
    answer_request(c, &r);
  else
    answer_handshake(c, &r);
  lk__buf_consume(&c->in, FRAME_HEADER + len);
  return true;
}

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
  connection *c = w->data;
  ssize_t got;

  (void)loop;
  (void)revents;
  ck_assert(lk__buf_reserve(&c->in, 65536));
  got = read(c->io.fd, lk__buf_room(&c->in), 65536);
  if (got <= 0) {
    end_connection(c, CLOSE);
    return;
  }
  c->in.end += (size_t)got;
  while (!c->service->faults.mute && serve_frame(c))
    ;
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int revents)
{
  connection *c = w->data;
  size_t len = lk__buf_len(&c->out);

  (void)loop;
  (void)revents;
  if (len == 0)
    return;
  if (c->service->faults.slow)
    len = 1;
  /* A failure is ignored: on_readable() then finds that the client is gone. */
  if (write(c->io.fd, lk__buf_bytes(&c->out), len) == (ssize_t)len)
    lk__buf_consume(&c->out, len);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
  service *s = w->data;
  connection *c = calloc(1, sizeof *c);

  (void)revents;
  ck_assert_ptr_nonnull(c);
  s->accepted++;
  c->service = s;
  c->in = wire_buf();
  c->out = wire_buf();
  lk__list_init(&c->link);
  lk__list_add(&s->connections, &c->link);
  ev_io_init(&c->io, on_readable, sockets_accept(s->listener), EV_READ);
  c->io.data = c;
  ev_io_start(loop, &c->io);
  ev_unref(loop);
  ev_prepare_init(&c->before_poll, on_prepare);
  c->before_poll.data = c;
  ev_prepare_start(loop, &c->before_poll);
  ev_unref(loop);
}

service *service_new(struct ev_loop *loop, uint16_t *port)
{
  service *s = calloc(1, sizeof *s);

  ck_assert_ptr_nonnull(s);
  s->loop = loop;
  lk__list_init(&s->connections);
  s->listener = sockets_listen("127.0.0.1", port);
  ev_io_init(&s->io, on_accept, s->listener, EV_READ);
  s->io.data = s;
  ev_io_start(loop, &s->io);
  ev_unref(loop);
  return s;
}

static void end_all_connections(service *s, ending how)
{
  while (!lk__list_empty(&s->connections))
    end_connection(LK_OWNER(s->connections.next, connection, link), how);
}

void service_reset(service *s)
{
  end_all_connections(s, RESET);
}

void service_free(service *s)
{
  end_all_connections(s, CLOSE);
  ev_ref(s->loop);
  ev_io_stop(s->loop, &s->io);
  close(s->listener);
  free(s);
}

service_faults *service_faults_of(service *s)
{
  return &s->faults;
}

unsigned service_accepted(const service *s)
{
  return s->accepted;
}

unsigned service_resumed(const service *s)
{
  return s->resumed;
}

unsigned service_requests(const service *s)
{
  return s->requests;
}
