/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/client/wire.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  ROOM = 1 << 20, /* bytes of input that are no complete frame yet */
  HOPS = 8,       /* connections at the same time */
  NO_OP = 0       /* no opcode */
};

/* One direction of a hop, from one socket to the other. */
typedef struct direction {
  ev_io io;
  struct hop *hop;
  int from;
  int to;
  bool up;            /* from the client to the server */
  bool saw_handshake; /* the first frame, the handshake, was forwarded */
  unsigned char *bytes;
  size_t len;
} direction;

/* A connection of a client, and the connection to the server for it. */
typedef struct hop {
  wire *wire;
  bool is_open;
  bool drops_reply; /* close at the reply to `xid` */
  int32_t xid;
  direction directions[2];
} hop;

struct wire {
  struct ev_loop *loop;
  ev_io accept_io;
  int listener;
  struct sockaddr_in to;
  char address[32];
  int32_t op;   /* break at this request, or NO_OP */
  bool replied; /* break at the reply to this request */
  bool has_broken;
  int32_t replaced_op; /* see wire_replace_opcode(), or NO_OP */
  hop hops[HOPS];
};

static int32_t int_at(const unsigned char *at)
{
  uint32_t v;

  memcpy(&v, at, sizeof v);
  return (int32_t)ntohl(v);
}

static void hop_close(hop *h)
{
  for (int i = 0; i < 2; i++) {
    ev_io_stop(h->wire->loop, &h->directions[i].io);
    close(h->directions[i].from);
    free(h->directions[i].bytes);
  }
  h->is_open = false;
}

/* Whether the hop closes instead of forwarding this reply. */
static bool is_reply_to_drop(const direction *d, const unsigned char *answer)
{
  return d->hop->drops_reply && int_at(answer + 4) == d->hop->xid;
}

/* Whether the hop closes instead of forwarding this request. Before, replace
 * the opcode of the request if the test wants that. */
static bool is_request_to_break_at(direction *d, unsigned char *request)
{
  static const unsigned char unknown[] = {0, 0, 0, 99};
  wire *on = d->hop->wire;
  const int32_t op = int_at(request + 8);

  if (op == on->replaced_op)
    memcpy(request + 8, unknown, sizeof unknown);
  if (on->op == NO_OP || op != on->op)
    return false;
  on->op = NO_OP;
  d->hop->drops_reply = on->replied;
  d->hop->xid = int_at(request + 4);
  return !on->replied;
}

/* Whether the hop closes instead of forwarding this frame. The first frame in
 * each direction is the handshake, which has no opcode. */
static bool breaks_at_frame(direction *d, unsigned char *frame, size_t len)
{
  const bool saw_handshake = d->saw_handshake;

  d->saw_handshake = true;
  if (!saw_handshake || len < 12)
    return false;
  return d->up ? is_request_to_break_at(d, frame) : is_reply_to_drop(d, frame);
}

/* Forward the first frame of the input; returns false if the hop must close.
 * send() accepts a frame as a whole, since the frames are small. */
static bool forward_frame(direction *d, size_t len)
{
  if (breaks_at_frame(d, d->bytes, len)) {
    d->hop->wire->has_broken = true;
    return false;
  }
  if (send(d->to, d->bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
    return false;
  d->len -= len;
  memmove(d->bytes, d->bytes + len, d->len);
  return true;
}

static void on_bytes(struct ev_loop *loop, ev_io *io, int revents)
{
  direction *d = io->data;
  ssize_t got = read(d->from, d->bytes + d->len, ROOM - d->len);
  bool is_open = got > 0;
  size_t len;

  (void)loop;
  (void)revents;
  d->len += is_open ? (size_t)got : 0;
  while (is_open && d->len >= 4 &&
         d->len >= (len = 4 + (size_t)int_at(d->bytes)))
    is_open = forward_frame(d, len);
  if (!is_open)
    hop_close(d->hop);
  else
    ck_assert_uint_lt(d->len, ROOM);
}

static void hop_start_direction(hop *h, int i, int from, int to)
{
  direction *d = &h->directions[i];

  *d = (direction){.hop = h, .from = from, .to = to, .up = i == 0};
  d->bytes = malloc(ROOM);
  ck_assert_ptr_nonnull(d->bytes);
  ev_io_init(&d->io, on_bytes, from, EV_READ);
  d->io.data = d;
  ev_io_start(h->wire->loop, &d->io);
}

static hop *find_free_hop(wire *w)
{
  for (size_t i = 0; i < HOPS; i++) {
    if (!w->hops[i].is_open)
      return &w->hops[i];
  }
  ck_abort_msg("more than %d connections at once", (int)HOPS);
  return NULL;
}

static void on_accept(struct ev_loop *loop, ev_io *io, int revents)
{
  wire *w = io->data;
  hop *h = find_free_hop(w);
  int client = accept(w->listener, NULL, NULL);
  int server = socket(AF_INET, SOCK_STREAM, 0);

  (void)loop;
  (void)revents;
  if (client < 0 || server < 0 ||
      connect(server, (struct sockaddr *)(void *)&w->to, sizeof w->to) != 0) {
    close(client);
    close(server);
    return;
  }
  *h = (hop){.wire = w, .is_open = true};
  hop_start_direction(h, 0, client, server);
  hop_start_direction(h, 1, server, client);
}

wire *wire_new(struct ev_loop *loop, const char *to)
{
  struct sockaddr_in own = {.sin_family = AF_INET};
  socklen_t len = sizeof own;
  char host[64];
  wire *w = calloc(1, sizeof *w);

  ck_assert_ptr_nonnull(w);
  snprintf(host, sizeof host, "%.*s", (int)strcspn(to, ":"), to);
  w->loop = loop;
  w->to.sin_family = AF_INET;
  w->to.sin_port = htons((uint16_t)atoi(to + strcspn(to, ":") + 1));
  ck_assert_int_eq(inet_pton(AF_INET, host, &w->to.sin_addr), 1);
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  w->listener = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_eq(
      bind(w->listener, (struct sockaddr *)(void *)&own, sizeof own), 0);
  ck_assert_int_eq(listen(w->listener, HOPS), 0);
  ck_assert_int_eq(
      getsockname(w->listener, (struct sockaddr *)(void *)&own, &len), 0);
  snprintf(w->address, sizeof w->address, "127.0.0.1:%d",
           (int)ntohs(own.sin_port));
  ev_io_init(&w->accept_io, on_accept, w->listener, EV_READ);
  w->accept_io.data = w;
  ev_io_start(loop, &w->accept_io);
  return w;
}

void wire_free(wire *w)
{
  wire_break(w);
  close(w->listener);
  free(w);
}

const char *wire_address(const wire *w)
{
  return w->address;
}

void wire_break_at_request(wire *w, int32_t op, bool replied)
{
  w->op = op;
  w->replied = replied;
  w->has_broken = false;
}

bool wire_has_broken(const wire *w)
{
  return w->has_broken;
}

void wire_replace_opcode(wire *w, int32_t op)
{
  w->replaced_op = op;
}

void wire_break(wire *w)
{
  ev_io_stop(w->loop, &w->accept_io);
  for (size_t i = 0; i < HOPS; i++) {
    if (w->hops[i].is_open)
      hop_close(&w->hops[i]);
  }
}

void wire_mend(wire *w)
{
  ev_io_start(w->loop, &w->accept_io);
}
