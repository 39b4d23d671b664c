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

enum { ROOM = 1 << 20, HOPS = 8, NO_OP = 0 };

/* One direction of a hop. */
typedef struct direction {
  ev_io io;
  struct hop *hop;
  int from;
  int to;
  bool up;
  bool saw_handshake; /* the first frame, the handshake, was forwarded */
  unsigned char *bytes;
  size_t len;
} direction;

/* One connection of a client, and the one to the server. */
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
  int32_t op; /* where to break, or NO_OP */
  bool replied;
  bool has_broken;
  int32_t replaced_op; /* or NO_OP */
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
static bool is_reply_to_drop(const direction *w, const unsigned char *answer)
{
  return w->hop->drops_reply && int_at(answer + 4) == w->hop->xid;
}

/* Whether the hop closes instead of forwarding this request. May replace the
 * request's opcode. */
static bool is_request_to_break_at(direction *w, unsigned char *request)
{
  static const unsigned char unknown[] = {0, 0, 0, 99};
  wire *on = w->hop->wire;
  const int32_t op = int_at(request + 8);

  if (op == on->replaced_op)
    memcpy(request + 8, unknown, sizeof unknown);
  if (on->op == NO_OP || op != on->op)
    return false;
  on->op = NO_OP;
  w->hop->drops_reply = on->replied;
  w->hop->xid = int_at(request + 4);
  return !on->replied;
}

/* The first frame in each direction is a handshake. */
static bool breaks_at_frame(direction *w, unsigned char *frame, size_t len)
{
  const bool saw_handshake = w->saw_handshake;

  w->saw_handshake = true;
  if (!saw_handshake || len < 12)
    return false;
  return w->up ? is_request_to_break_at(w, frame) : is_reply_to_drop(w, frame);
}

/* The frames are small, so send() takes each as a whole. */
static bool forward(direction *w, size_t len)
{
  if (breaks_at_frame(w, w->bytes, len)) {
    w->hop->wire->has_broken = true;
    return false;
  }
  if (send(w->to, w->bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
    return false;
  w->len -= len;
  memmove(w->bytes, w->bytes + len, w->len);
  return true;
}

static void on_bytes(struct ev_loop *loop, ev_io *io, int revents)
{
  direction *w = io->data;
  ssize_t got = read(w->from, w->bytes + w->len, ROOM - w->len);
  bool is_open = got > 0;
  size_t len;

  (void)loop;
  (void)revents;
  w->len += is_open ? (size_t)got : 0;
  while (is_open && w->len >= 4 &&
         w->len >= (len = 4 + (size_t)int_at(w->bytes)))
    is_open = forward(w, len);
  if (!is_open)
    hop_close(w->hop);
  else
    ck_assert_uint_lt(w->len, ROOM);
}

static void hop_start_direction(hop *h, int i, int from, int to)
{
  direction *w = &h->directions[i];

  *w = (direction){.hop = h, .from = from, .to = to, .up = i == 0};
  w->bytes = malloc(ROOM);
  ck_assert_ptr_nonnull(w->bytes);
  ev_io_init(&w->io, on_bytes, from, EV_READ);
  w->io.data = w;
  ev_io_start(h->wire->loop, &w->io);
}

static hop *free_hop(wire *w)
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
  hop *h = free_hop(w);
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
