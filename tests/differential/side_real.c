/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Real servers as a side, with blocking sockets. */

#include "differential/side.h"
#include "jute/reader.h"
#include "support/real_server.h"
#include "support/server_version.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  PATIENCE_MS = 20000,
  PING_WHILE_WAITING_MS = 100,
  PING_SESSIONS_MS = 10000,
  READ_SIZE = 65536
};

/* Exit codes that automake understands. */
enum { EXIT_SKIPPED = 77, EXIT_ERROR = 99 };

typedef struct real {
  side base;
  server zk;
  struct sockaddr_in addresses[3];
  int fds[SIDE_CONNS];
  int ping_conns[3]; /* with a session at each server; unused if there is only
                        one server */
  int64_t pinged_ms; /* when pings were last sent */
} real;

static real *real_of(side *s)
{
  return (real *)s;
}

static void exit_with_error(const char *failed)
{
  fprintf(stderr, "differential: %s: %s\n", failed, strerror(errno));
  exit(EXIT_ERROR);
}

static int64_t now_ms(side *s)
{
  struct timespec t;

  (void)s;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int connect_to(real *r, unsigned number)
{
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

  if (fd < 0 || connect(fd, (struct sockaddr *)&r->addresses[number],
                        sizeof r->addresses[number]) != 0)
    exit_with_error("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

/* Sends a ping to each server of an ensemble. ZooKeeper's CommitProcessor
 * sometimes does not handle a request until the next one arrives: it was
 * notified between its check for work and its wait. */
static void ping_servers(real *r)
{
  /* length 8, xid -2, opcode 11 */
  static const unsigned char ping[] = {0,    0,    0, 8, 0xff, 0xff,
                                       0xff, 0xfe, 0, 0, 0,    11};
  unsigned char discarded[4096];

  if (r->base.servers == 1)
    return;
  for (unsigned i = 0; i < r->base.servers; i++) {
    while (recv(r->ping_conns[i], discarded, sizeof discarded, MSG_DONTWAIT) >
           0)
      continue;
    send(r->ping_conns[i], ping, sizeof ping, MSG_NOSIGNAL);
  }
  r->pinged_ms = now_ms(&r->base);
}

static void expect_release(real *r, const char *release)
{
  char answer[4096] = "", prefix[64];
  int fd = connect_to(r, 0);

  snprintf(prefix, sizeof prefix, "Zookeeper version: %s-", release);
  if (send(fd, "srvr", 4, MSG_NOSIGNAL) != 4 ||
      recv(fd, answer, sizeof answer - 1, MSG_WAITALL) <= 0)
    exit_with_error("srvr");
  close(fd);
  if (strncmp(answer, prefix, strlen(prefix)) == 0)
    return;
  printf("skipped: the model is of %s; %.*s\n", release,
         (int)strcspn(answer, "\n"), answer);
  exit(EXIT_SKIPPED);
}

static void open_ping_conns(real *r)
{
  /* A connect request. At 0: its length; at 16: a timeout of 65535 ms; at 28:
   * the length of the password. */
  unsigned char request[49] = {[3] = 45, [18] = 0xff, [19] = 0xff, [31] = 16};

  if (r->base.servers == 1)
    return;
  for (unsigned i = 0; i < r->base.servers; i++) {
    unsigned char reply[41];

    r->ping_conns[i] = connect_to(r, i);
    if (send(r->ping_conns[i], request, sizeof request, MSG_NOSIGNAL) < 0 ||
        recv(r->ping_conns[i], reply, sizeof reply, MSG_WAITALL) !=
            sizeof reply)
      exit_with_error("handshake");
  }
}

static lk_bytes data_of_reply(const unsigned char *reply, size_t len)
{
  enum { HEADER = 4 + 16 }; /* the length field and the reply header */
  lk_reader in;

  lk__reader_init(&in, reply + HEADER, len < HEADER ? 0 : len - HEADER);
  return lk__reader_bytes(&in);
}

/* Reads the content of /zookeeper/config, which is empty on a standalone
 * server. */
static void read_members(real *r)
{
  /* A getData. The NUL that ends the string is the field `watch`: false. */
  static const unsigned char request[] =
      "\0\0\0\x1e\0\0\0\1\0\0\0\4\0\0\0\x11/zookeeper/config";
  unsigned char reply[1024];

  if (r->base.servers == 1)
    return;
  if (send(r->ping_conns[0], request, sizeof request, MSG_NOSIGNAL) < 0)
    exit_with_error("send");
  ssize_t got = recv(r->ping_conns[0], reply, sizeof reply, 0);
  lk_bytes data = data_of_reply(reply, got < 0 ? 0 : (size_t)got);

  if (data.len == 0 || data.len >= sizeof r->base.members)
    exit_with_error("/zookeeper/config");
  memcpy(r->base.members, data.at, data.len);
}

static void open_conn(side *s, unsigned conn, unsigned number)
{
  real_of(s)->fds[conn] = connect_to(real_of(s), number);
}

static void send_bytes(side *s, unsigned conn, const void *bytes, size_t len)
{
  const char *at = bytes;

  if (now_ms(s) - real_of(s)->pinged_ms > PING_SESSIONS_MS)
    ping_servers(real_of(s)); /* the sessions of the pings must not expire */
  while (len > 0) {
    ssize_t sent = send(real_of(s)->fds[conn], at, len, MSG_NOSIGNAL);

    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      return; /* the server has closed, which wait_for_bytes() notices */
    at += sent;
    len -= (size_t)sent;
  }
}

static bool wait_for_bytes(side *s, unsigned conn)
{
  lk_buf *in = &s->conns[conn].in;
  struct pollfd p = {real_of(s)->fds[conn], POLLIN, 0};
  int waited = 0;
  ssize_t got;

  for (; poll(&p, 1, PING_WHILE_WAITING_MS) != 1;
       waited += PING_WHILE_WAITING_MS) {
    if (waited >= PATIENCE_MS)
      return false;
    ping_servers(real_of(s));
  }
  if (!lk__buf_reserve(in, READ_SIZE))
    abort();
  got = recv(p.fd, lk__buf_room(in), READ_SIZE, 0);
  if (got > 0)
    in->end += (size_t)got;
  else
    s->conns[conn].closed = true;
  return true;
}

/* Closes the connection and waits until the server has closed it, too. A late
 * close could end the next connection of the same session. */
static void close_conn(side *s, unsigned conn)
{
  struct pollfd p = {real_of(s)->fds[conn], POLLIN, 0};
  unsigned char discarded[4096];

  shutdown(p.fd, SHUT_WR);
  while (poll(&p, 1, PATIENCE_MS) == 1 &&
         recv(p.fd, discarded, sizeof discarded, 0) > 0)
    continue;
  close(p.fd);
}

static void pass_time(side *s)
{
  struct timespec tenth_of_ms = {0, 100000};

  (void)s;
  nanosleep(&tenth_of_ms, NULL);
}

static void free_real(side *s)
{
  server_end(&real_of(s)->zk);
  free(s);
}

/* The leader becomes number 0 of the side, since it behaves differently. */
static void put_leader_first(real *r)
{
  /* The servers' numbers begin with 1. */
  int leader = r->base.servers == 1 ? 1 : server_in_mode(&r->zk, "leader");
  struct sockaddr_in first = r->addresses[0];

  if (leader == 0)
    exit_with_error("no leader");
  r->addresses[0] = r->addresses[leader - 1];
  r->addresses[leader - 1] = first;
}

static void find_addresses(real *r)
{
  const char *at = r->zk.connect;
  char host[64];
  unsigned port;

  for (unsigned i = 0; i < r->base.servers; i++) {
    if (sscanf(at, "%63[^:]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &r->addresses[i].sin_addr) != 1)
      exit_with_error(r->zk.connect);
    r->addresses[i].sin_family = AF_INET;
    r->addresses[i].sin_port = htons((uint16_t)port);
    at += strcspn(at, ",") + 1;
  }
}

side *side_real_new(const side_config *config)
{
  static const side_kind kind = {"server",       open_conn,  send_bytes,
                                 wait_for_bytes, close_conn, pass_time,
                                 now_ms,         free_real};
  char servers[16], tick[16], min[16], max[16], sweep[16];
  const char *options[] = {"-n",
                           servers,
                           "--tick",
                           tick,
                           "--min-timeout",
                           min,
                           "--max-timeout",
                           max,
                           "--container-check",
                           sweep,
                           "--heap",
                           "512",
                           "--property",
                           config->ttls
                               ? "zookeeper.extendedTypesEnabled=true"
                               : "zookeeper.extendedTypesEnabled=false",
                           NULL};
  real *r = calloc(1, sizeof *r);

  if (r == NULL)
    abort();
  snprintf(servers, sizeof servers, "%u", config->servers);
  snprintf(tick, sizeof tick, "%d", (int)config->tick_ms);
  snprintf(min, sizeof min, "%d", (int)config->min_timeout_ms);
  snprintf(max, sizeof max, "%d", (int)config->max_timeout_ms);
  snprintf(sweep, sizeof sweep, "%d", (int)config->sweep_ms);
  r->base.kind = &kind;
  r->base.servers = config->servers;
  server_start(&r->zk, options);
  find_addresses(r);
  put_leader_first(r);
  expect_release(r, server_tested_version() == NULL ? "3.8.0"
                                                    : server_tested_version());
  open_ping_conns(r);
  read_members(r);
  return &r->base;
}
