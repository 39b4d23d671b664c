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

#include "live/support/test_driver.h"

enum {
  ROOM = 1 << 20, /* the largest frame, in bytes */
  HOPS = 8,       /* connections at the same time */
  NO_OP = 0,      /* no opcode */
  UNKNOWN_OP = 99 /* an opcode that no server knows */
};

/* Where the fields begin in a frame, which begins with its length. */
enum { LENGTH_BYTES = 4, XID_AT = 4, OPCODE_AT = 8, END_OF_OPCODE = 12 };

/* One direction of a hop, from one socket to the other. */
typedef struct direction {
  test_watch input;
  struct hop *hop;
  int from;
  int to;
  bool is_to_server;    /* otherwise from the server to the client */
  bool saw_handshake;   /* the first frame, the handshake, was forwarded */
  unsigned char *bytes; /* the input that is not forwarded yet */
  size_t len;           /* number of these bytes */
} direction;

enum { TO_SERVER, TO_CLIENT };

/* A connection of a client, and the connection to the server for it. Each
 * direction closes the socket from which it reads. */
typedef struct hop {
  wire *wire;
  bool is_open;
  bool drops_reply; /* close at the reply with the xid `dropped_xid` */
  int32_t dropped_xid;
  direction directions[2]; /* TO_SERVER, TO_CLIENT */
} hop;

struct wire {
  test_watch accept_watch;
  int listener;
  struct sockaddr_in to; /* the server */
  char address[32];      /* of the listener */
  int32_t op;        /* break at the next request with this opcode, or NO_OP */
  lost_message lost; /* the request with the opcode `op`, or its reply */
  bool has_broken;
  int32_t replaced_op; /* see wire_replace_opcode(), or NO_OP */
  hop hops[HOPS];
};

/* The int, in network byte order, that begins at `at`. */
static int32_t int_at(const unsigned char *at)
{
  uint32_t value;

  memcpy(&value, at, sizeof value);
  return (int32_t)ntohl(value);
}

static void hop_close(hop *h)
{
  for (int i = 0; i < 2; i++) {
    test_watch_stop(&h->directions[i].input);
    close(h->directions[i].from);
    free(h->directions[i].bytes);
  }
  h->is_open = false;
}

/* Whether the hop closes instead of forwarding this reply. */
static bool is_reply_to_drop(const direction *d, const unsigned char *reply)
{
  return d->hop->drops_reply && int_at(reply + XID_AT) == d->hop->dropped_xid;
}

/* Whether the hop closes instead of forwarding this request. If it is to lose
 * the reply, remember the xid of the request, by which the reply is found. */
static bool must_break_at_request(direction *d, unsigned char *request)
{
  wire *w = d->hop->wire;

  if (w->op == NO_OP || int_at(request + OPCODE_AT) != w->op)
    return false;
  w->op = NO_OP; /* breaks once */
  d->hop->dropped_xid = int_at(request + XID_AT);
  d->hop->drops_reply = w->lost == LOSE_REPLY;
  return w->lost == LOSE_REQUEST;
}

/* Replace the opcode of a request, see wire_replace_opcode(). */
static void replace_opcode(const wire *w, unsigned char *request)
{
  const uint32_t unknown = htonl(UNKNOWN_OP);

  if (int_at(request + OPCODE_AT) == w->replaced_op)
    memcpy(request + OPCODE_AT, &unknown, sizeof unknown);
}

/* Whether the hop closes instead of forwarding this frame. */
static bool must_break_at_frame(direction *d, unsigned char *frame)
{
  return d->is_to_server ? must_break_at_request(d, frame)
                         : is_reply_to_drop(d, frame);
}

/* Forward the first frame of the input, which has `len` bytes; returns false if
 * the hop must close. The first frame in each direction is the handshake, which
 * has no opcode. send() accepts a frame as a whole, since the frames are small.
 */
static bool forward_frame(direction *d, size_t len)
{
  if (d->saw_handshake && len >= END_OF_OPCODE) {
    if (must_break_at_frame(d, d->bytes)) {
      d->hop->wire->has_broken = true;
      return false;
    }
    if (d->is_to_server)
      replace_opcode(d->hop->wire, d->bytes);
  }
  d->saw_handshake = true;
  if (send(d->to, d->bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
    return false;
  d->len -= len;
  memmove(d->bytes, d->bytes + len, d->len);
  return true;
}

/* The size of the first frame of the input; 0: it is not complete yet. */
static size_t complete_frame_size(const direction *d)
{
  size_t size;

  if (d->len < LENGTH_BYTES)
    return 0;
  size = LENGTH_BYTES + (size_t)int_at(d->bytes);
  return d->len < size ? 0 : size;
}

static void on_bytes(test_watch *input)
{
  direction *d = input->arg;
  ssize_t got = read(d->from, d->bytes + d->len, ROOM - d->len);
  bool is_open = got > 0;
  size_t len;

  d->len += is_open ? (size_t)got : 0;
  while (is_open && (len = complete_frame_size(d)) != 0)
    is_open = forward_frame(d, len);
  if (!is_open)
    hop_close(d->hop);
  else
    ck_assert_uint_lt(d->len, ROOM);
}

static void hop_start_direction(hop *h, direction *d, int from, int to)
{
  *d = (direction){.hop = h,
                   .from = from,
                   .to = to,
                   .is_to_server = d == &h->directions[TO_SERVER]};
  d->bytes = malloc(ROOM);
  ck_assert_ptr_nonnull(d->bytes);
  d->input = (test_watch){.fd = from, .on_readable = on_bytes, .arg = d};
  test_watch_start(&d->input);
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

static void on_accept(test_watch *watch)
{
  wire *w = watch->arg;
  hop *h = find_free_hop(w);
  int client = accept(w->listener, NULL, NULL);
  int server = socket(AF_INET, SOCK_STREAM, 0);

  if (client < 0 || server < 0 ||
      connect(server, (struct sockaddr *)(void *)&w->to, sizeof w->to) != 0) {
    close(client);
    close(server);
    return;
  }
  *h = (hop){.wire = w, .is_open = true};
  hop_start_direction(h, &h->directions[TO_SERVER], client, server);
  hop_start_direction(h, &h->directions[TO_CLIENT], server, client);
}

wire *wire_new(const char *to)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t len = sizeof address;
  char host[64];
  wire *w = calloc(1, sizeof *w);

  ck_assert_ptr_nonnull(w);
  snprintf(host, sizeof host, "%.*s", (int)strcspn(to, ":"), to);
  w->to.sin_family = AF_INET;
  w->to.sin_port = htons((uint16_t)atoi(to + strcspn(to, ":") + 1));
  ck_assert_int_eq(inet_pton(AF_INET, host, &w->to.sin_addr), 1);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  w->listener = socket(AF_INET, SOCK_STREAM, 0);
  ck_assert_int_eq(
      bind(w->listener, (struct sockaddr *)(void *)&address, sizeof address),
      0);
  ck_assert_int_eq(listen(w->listener, HOPS), 0);
  ck_assert_int_eq(
      getsockname(w->listener, (struct sockaddr *)(void *)&address, &len), 0);
  snprintf(w->address, sizeof w->address, "127.0.0.1:%d",
           (int)ntohs(address.sin_port));
  w->accept_watch =
      (test_watch){.fd = w->listener, .on_readable = on_accept, .arg = w};
  test_watch_start(&w->accept_watch);
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

void wire_break_at_request(wire *w, int32_t op, lost_message lost)
{
  w->op = op;
  w->lost = lost;
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
  test_watch_stop(&w->accept_watch);
  for (size_t i = 0; i < HOPS; i++) {
    if (w->hops[i].is_open)
      hop_close(&w->hops[i]);
  }
}

void wire_mend(wire *w)
{
  test_watch_start(&w->accept_watch);
}
