/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

static lk_tcp *tcp_of(lk_transport *t)
{
  return (lk_tcp *)(void *)t;
}

/* Set the error of a failed connect. `error` is an errno. */
static lk_flow tcp_fail_connect(lk_transport *t, int error)
{
  char address[LK_ADDRESS_TEXT_SIZE];
  char what[sizeof "connect to " + LK_ADDRESS_TEXT_SIZE];

  lk__address_text(&tcp_of(t)->to, address, sizeof address);
  snprintf(what, sizeof what, "connect to %s", address);
  return lk__transport_fail(t, LK_ERR_CONNECT, what, error);
}

static lk_flow tcp_open(lk_transport *t, const lk_endpoint *to)
{
  const int yes = 1;
  lk_address *address = &tcp_of(t)->to;
  lk_endpoint own;

  if (lk__transport_copy_endpoint(t, &own, to) != LK_FLOW_DONE)
    return LK_FLOW_FAILED;
  if (!lk__address_copy(address, own.address))
    return tcp_fail_connect(t, EAFNOSUPPORT);
  t->fd = socket(address->any.sa_family,
                 SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (t->fd < 0)
    return tcp_fail_connect(t, errno);
  /* Without TCP_NODELAY the kernel would hold a small request back until the
     server has acknowledged the request before. */
  setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  /* After EINTR the kernel goes on connecting, as after EINPROGRESS. */
  if (connect(t->fd, &address->any, lk__address_len(address)) == 0 ||
      errno == EINPROGRESS || errno == EINTR)
    return LK_FLOW_WRITE;
  return tcp_fail_connect(t, errno);
}

static lk_flow tcp_handshake(lk_transport *t)
{
  lk_address local, peer;
  int error = 0;
  socklen_t len = sizeof error;

  if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
    return tcp_fail_connect(t, errno);
  /* The server had accepted the connection and has closed it, which the next
     send or receive reports. A port that refuses has ECONNREFUSED. */
  if (error == EPIPE || error == ECONNRESET)
    return LK_FLOW_DONE;
  if (error != 0)
    return tcp_fail_connect(t, error);
  len = sizeof peer;
  if (getpeername(t->fd, &peer.any, &len) != 0) {
    bool still_connecting = errno == ENOTCONN;

    return still_connecting ? LK_FLOW_WRITE : tcp_fail_connect(t, errno);
  }
  /* The client may be connected to itself. This happens if it connects to a
     port of its own machine on which nothing listens, and the kernel gives the
     same port to the client's socket. */
  len = sizeof local;
  if (getsockname(t->fd, &local.any, &len) == 0 &&
      lk__address_equal(&local, &peer))
    return tcp_fail_connect(t, ECONNREFUSED);
  return LK_FLOW_DONE;
}

static lk_flow tcp_send(lk_transport *t, const void *bytes, size_t len,
                        size_t *done)
{
  ssize_t sent;

  *done = 0;
  do {
    sent = send(t->fd, bytes, len, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
    return lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "send", errno);
  if (sent > 0)
    *done = (size_t)sent;
  return *done == len ? LK_FLOW_DONE : LK_FLOW_WRITE;
}

static lk_flow tcp_recv(lk_transport *t, void *room, size_t size, size_t *got)
{
  ssize_t n;

  *got = 0;
  do {
    n = recv(t->fd, room, size, 0);
  } while (n < 0 && errno == EINTR);
  if (n == 0)
    return LK_FLOW_END;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return LK_FLOW_READ;
  if (n < 0)
    return lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "receive", errno);
  *got = (size_t)n;
  return LK_FLOW_DONE;
}

static void tcp_close(lk_transport *t)
{
  if (t->fd >= 0)
    close(t->fd);
  t->fd = -1;
}

const lk_transport_type *lk_transport_tcp(void)
{
  static const lk_transport_type type = {
      .size = sizeof type,
      .object_size = sizeof(lk_tcp),
      .open = tcp_open,
      .handshake = tcp_handshake,
      .send = tcp_send,
      .recv = tcp_recv,
      .close = tcp_close,
  };

  return &type;
}
