/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/sockets.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union socket_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} socket_address;

/* A socket that is bound to `*port`, or if that is 0 to a free one, which
   `*port` gets. -1: that is not possible. */
static int bind_to(const char *address, uint16_t *port)
{
  socket_address a;
  socklen_t len = sizeof a;
  int fd;

  memset(&a, 0, sizeof a);
  a.any.sa_family = AF_INET;
  if (inet_pton(AF_INET, address, &a.v4.sin_addr) != 1) {
    a.any.sa_family = AF_INET6;
    ck_assert_int_eq(inet_pton(AF_INET6, address, &a.v6.sin6_addr), 1);
  }
  if (a.any.sa_family == AF_INET)
    a.v4.sin_port = htons(*port);
  else
    a.v6.sin6_port = htons(*port);
  fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, &a.any, sizeof a) != 0)
    return -1;
  ck_assert_int_eq(getsockname(fd, &a.any, &len), 0);
  *port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
  return fd;
}

static int listen_with_backlog(const char *address, uint16_t *port, int backlog)
{
  int fd = bind_to(address, port);

  if (fd >= 0)
    ck_assert_int_eq(listen(fd, backlog), 0);
  return fd;
}

int sockets_listen(const char *address, uint16_t *port)
{
  *port = 0;
  return listen_with_backlog(address, port, 1024);
}

int sockets_listen_at(const char *address, uint16_t port)
{
  return listen_with_backlog(address, &port, 1024);
}

/* The socket stays bound: otherwise the server of another test could get the
   port. */
uint16_t sockets_dead_port(void)
{
  static uint16_t port;

  if (port == 0)
    ck_assert_int_ge(bind_to("127.0.0.1", &port), 0);
  return port;
}

uint16_t sockets_free_port(void)
{
  uint16_t port = 0;

  close(bind_to("127.0.0.1", &port));
  return port;
}

int sockets_accept(int listener)
{
  int fd;

  do {
    fd = accept(listener, NULL, NULL);
  } while (fd < 0 && errno == EINTR);
  ck_assert_int_ge(fd, 0);
  return fd;
}

int sockets_listen_deaf_at(const char *address, uint16_t *port)
{
  int listener = listen_with_backlog(address, port, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(*port)};

  ck_assert_int_eq(inet_pton(AF_INET, address, &own.sin_addr), 1);
  /* Nobody accepts these connections, so they fill the queue of the listener.
     They stay open until the test ends. */
  for (int i = 0; i < 3; i++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    (void)connect(fd, (struct sockaddr *)&own, sizeof own);
  }
  return listener;
}

int sockets_listen_deaf(uint16_t *port)
{
  *port = 0;
  return sockets_listen_deaf_at("127.0.0.1", port);
}

void sockets_write(int fd, const void *bytes, size_t len)
{
  ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
}

void sockets_read(int fd, void *room, size_t len)
{
  ck_assert_int_eq(recv(fd, room, len, MSG_WAITALL), (ssize_t)len);
}

bool sockets_quiet(int fd)
{
  struct pollfd p = {.fd = fd, .events = POLLIN};

  return poll(&p, 1, 0) == 0;
}

bool sockets_wait_for_end(int fd)
{
  char byte;
  ssize_t got = read(fd, &byte, 1);

  return got == 0 || (got < 0 && errno == ECONNRESET);
}

void sockets_reset(int fd)
{
  struct linger now = {.l_onoff = 1, .l_linger = 0};

  ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
  close(fd);
}

void sockets_raise_descriptor_limit(void)
{
  struct rlimit limit;

  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 4096 && limit.rlim_max >= 4096) {
    limit.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
}
