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

typedef union place {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} place;

static int listen_at(const char *literal, uint16_t *port, int backlog)
{
  place p;
  socklen_t len = sizeof p;
  int fd;

  memset(&p, 0, sizeof p);
  p.any.sa_family = AF_INET;
  if (inet_pton(AF_INET, literal, &p.v4.sin_addr) != 1) {
    p.any.sa_family = AF_INET6;
    ck_assert_int_eq(inet_pton(AF_INET6, literal, &p.v6.sin6_addr), 1);
  }
  fd = socket(p.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, &p.any, sizeof p) != 0)
    return -1;
  ck_assert_int_eq(listen(fd, backlog), 0);
  ck_assert_int_eq(getsockname(fd, &p.any, &len), 0);
  *port = ntohs(p.any.sa_family == AF_INET ? p.v4.sin_port : p.v6.sin6_port);
  return fd;
}

int sockets_listen(const char *literal, uint16_t *port)
{
  return listen_at(literal, port, 1024);
}

uint16_t sockets_dead_port(void)
{
  uint16_t port;
  int fd = sockets_listen("127.0.0.1", &port);

  close(fd);
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

int sockets_listen_deaf(uint16_t *port)
{
  struct sockaddr_in to = {.sin_family = AF_INET};
  int listener = listen_at("127.0.0.1", port, 0);

  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(*port);
  /* Fill its queue; these stay open until the test ends. */
  for (int i = 0; i < 3; i++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    (void)connect(fd, (struct sockaddr *)&to, sizeof to);
  }
  return listener;
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

bool sockets_ended(int fd)
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

void sockets_many(void)
{
  struct rlimit limit;

  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_cur < 4096 && limit.rlim_max >= 4096) {
    limit.rlim_cur = 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
}
