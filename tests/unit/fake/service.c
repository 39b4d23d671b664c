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

struct service {
  struct ev_loop *loop;
  service_faults faults;
  unsigned accepted, resumed, requests;
  int listener;
  ev_io io;
  lk_link lines;
};

/* A connection. */
typedef struct line {
  lk_link link;
  service *service;
  bool welcomed;
  lk_buf in, out;
  ev_io io;
  ev_prepare turn; /* sends, a byte at a time or all */
} line;

static void hang_up(line *n, bool reset)
{
  ev_ref(n->service->loop);
  ev_io_stop(n->service->loop, &n->io);
  ev_ref(n->service->loop);
  ev_prepare_stop(n->service->loop, &n->turn);
  if (reset)
    sockets_reset(n->io.fd);
  else
    close(n->io.fd);
  lk__buf_free(&n->in);
  lk__buf_free(&n->out);
  lk__list_remove(&n->link);
  free(n);
}

static void welcome(line *n, lk_reader *r)
{
  int64_t session;

  lk__reader_int(r); /* protocol version */
  lk__reader_long(r);
  lk__reader_int(r);
  session = lk__reader_long(r);
  n->service->resumed += session != 0;
  n->welcomed = true;
  wire_welcome(&n->out, session != 0 ? session : 77, TIMEOUT_MS);
}

static void answer(line *n, lk_reader *r)
{
  int32_t xid = lk__reader_int(r);
  int32_t op = lk__reader_int(r);

  n->service->requests += op != OP_PING && op != OP_CLOSE;
  if (!n->service->faults.idle)
    wire_reply(&n->out, xid, 1, op == OP_PING || op == OP_CLOSE ? 0 : NO_NODE);
}

/* Take a frame out of what has arrived. */
static bool take(line *n)
{
  const unsigned char *in = lk__buf_bytes(&n->in);
  lk_reader r;
  size_t len;

  if (in == NULL || lk__buf_len(&n->in) < 4)
    return false;
  lk__reader_init(&r, in, lk__buf_len(&n->in));
  len = (size_t)lk__reader_int(&r);
  if (lk__buf_len(&n->in) < 4 + len)
    return false;
  if (n->welcomed)
    answer(n, &r);
  else
    welcome(n, &r);
  lk__buf_consume(&n->in, 4 + len);
  return true;
}

static void on_line(struct ev_loop *loop, ev_io *w, int revents)
{
  line *n = w->data;
  ssize_t got;

  (void)loop;
  (void)revents;
  ck_assert(lk__buf_reserve(&n->in, 65536));
  got = read(n->io.fd, lk__buf_room(&n->in), 65536);
  if (got <= 0) {
    hang_up(n, false);
    return;
  }
  n->in.end += (size_t)got;
  while (!n->service->faults.mute && take(n))
    ;
}

static void on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
  line *n = w->data;
  size_t len = lk__buf_len(&n->out);

  (void)loop;
  (void)revents;
  if (len == 0)
    return;
  if (n->service->faults.slow)
    len = 1;
  /* The client may be gone, which shows when reading. */
  if (write(n->io.fd, lk__buf_bytes(&n->out), len) == (ssize_t)len)
    lk__buf_consume(&n->out, len);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
  service *s = w->data;
  line *n = calloc(1, sizeof *n);

  (void)revents;
  ck_assert_ptr_nonnull(n);
  s->accepted++;
  n->service = s;
  n->in = wire_buf();
  n->out = wire_buf();
  lk__list_init(&n->link);
  lk__list_add(&s->lines, &n->link);
  ev_io_init(&n->io, on_line, sockets_accept(s->listener), EV_READ);
  n->io.data = n;
  ev_io_start(loop, &n->io);
  ev_unref(loop);
  ev_prepare_init(&n->turn, on_turn);
  n->turn.data = n;
  ev_prepare_start(loop, &n->turn);
  ev_unref(loop);
}

service *service_new(struct ev_loop *loop, uint16_t *port)
{
  service *s = calloc(1, sizeof *s);

  ck_assert_ptr_nonnull(s);
  s->loop = loop;
  lk__list_init(&s->lines);
  s->listener = sockets_listen("127.0.0.1", port);
  ev_io_init(&s->io, on_accept, s->listener, EV_READ);
  s->io.data = s;
  ev_io_start(loop, &s->io);
  ev_unref(loop);
  return s;
}

static void hang_up_all(service *s, bool reset)
{
  while (!lk__list_empty(&s->lines))
    hang_up(LK_OWNER(s->lines.next, line, link), reset);
}

void service_reset(service *s)
{
  hang_up_all(s, true);
}

void service_free(service *s)
{
  hang_up_all(s, false);
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
