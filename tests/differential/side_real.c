/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Real servers, over blocking sockets. */

#include "differential/side.h"
#include "jute/reader.h"
#include "support/real_server.h"

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

enum { PATIENCE_MS = 20000, NUDGE_MS = 100, NUDGE_EVERY_MS = 10000 };

typedef struct real {
  side base;
  server zk;
  struct sockaddr_in addresses[3];
  int fds[SIDE_CONNS];
  int nudges[3]; /* a session at each server of several */
  int64_t nudged_ms;
} real;

static real *real_of(side *s)
{
  return (real *)s;
}

static void die(const char *what)
{
  fprintf(stderr, "differential: %s: %s\n", what, strerror(errno));
  exit(99);
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
    die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

/* Servers of an ensemble sometimes forget a request until they get another
   one: their CommitProcessor looks whether there is work, and may be told of
   some before it begins to wait. So each gets a ping now and then. */
static void nudge(real *r)
{
  static const unsigned char ping[] = {0,    0,    0, 8, 0xff, 0xff,
                                       0xff, 0xfe, 0, 0, 0,    11};
  unsigned char drop[4096];

  for (unsigned i = 0; r->base.servers > 1 && i < r->base.servers; i++) {
    while (recv(r->nudges[i], drop, sizeof drop, MSG_DONTWAIT) > 0)
      continue;
    send(r->nudges[i], ping, sizeof ping, MSG_NOSIGNAL);
  }
  r->nudged_ms = now_ms(&r->base);
}

/* The model is of one release; others differ from it, and rightly so. */
static void expect_release(real *r, const char *release)
{
  char answer[4096] = "", prefix[64];
  int fd = connect_to(r, 0);

  snprintf(prefix, sizeof prefix, "Zookeeper version: %s-", release);
  if (send(fd, "srvr", 4, MSG_NOSIGNAL) != 4 ||
      recv(fd, answer, sizeof answer - 1, MSG_WAITALL) <= 0)
    die("srvr");
  close(fd);
  if (strncmp(answer, prefix, strlen(prefix)) == 0)
    return;
  printf("skipped: the model is of %s; %.*s\n", release,
         (int)strcspn(answer, "\n"), answer);
  exit(77);
}

static void open_nudges(real *r)
{
  unsigned char hello[49] = {[3] = 45, [18] = 0xff, [19] = 0xff, [31] = 16};

  for (unsigned i = 0; r->base.servers > 1 && i < r->base.servers; i++) {
    unsigned char reply[41];

    r->nudges[i] = connect_to(r, i);
    if (send(r->nudges[i], hello, sizeof hello, MSG_NOSIGNAL) < 0 ||
        recv(r->nudges[i], reply, sizeof reply, MSG_WAITALL) != sizeof reply)
      die("handshake");
  }
}

static lk_bytes data_of(const unsigned char *reply, size_t len)
{
  enum { HEADER = 4 + 16 };
  lk_reader in;

  lk__reader_init(&in, reply + HEADER, len < HEADER ? 0 : len - HEADER);
  return lk__reader_bytes(&in);
}

/* One that is alone has none. */
static void read_members(real *r)
{
  static const unsigned char request[] =
      "\0\0\0\x1e\0\0\0\1\0\0\0\4\0\0\0\x11/zookeeper/config";
  unsigned char reply[1024];

  if (r->base.servers == 1)
    return;
  /* the last byte of all is one for no watch */
  if (send(r->nudges[0], request, sizeof request, MSG_NOSIGNAL) < 0)
    die("send");
  ssize_t got = recv(r->nudges[0], reply, sizeof reply, 0);
  lk_bytes data = data_of(reply, got < 0 ? 0 : (size_t)got);

  if (data.len == 0 || data.len >= sizeof r->base.members)
    die("/zookeeper/config");
  memcpy(r->base.members, data.at, data.len);
}

static void open_conn(side *s, unsigned conn, unsigned number)
{
  real_of(s)->fds[conn] = connect_to(real_of(s), number);
}

static void send_bytes(side *s, unsigned conn, const void *bytes, size_t len)
{
  const char *at = bytes;

  if (now_ms(s) - real_of(s)->nudged_ms > NUDGE_EVERY_MS)
    nudge(real_of(s)); /* its sessions want to live */
  while (len > 0) {
    ssize_t sent = send(real_of(s)->fds[conn], at, len, MSG_NOSIGNAL);

    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      return; /* it was closed; whoever reads will see */
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

  for (; poll(&p, 1, NUDGE_MS) != 1; waited += NUDGE_MS) {
    if (waited >= PATIENCE_MS)
      return false;
    nudge(real_of(s));
  }
  if (!lk__buf_reserve(in, 65536))
    abort();
  got = recv(p.fd, lk__buf_room(in), 65536, 0);
  if (got > 0)
    in->end += (size_t)got;
  else
    s->conns[conn].closed = true;
  return true;
}

/* Wait until the server has closed it, too: one that has not may take the
   session's next connection for it when it does. */
static void close_conn(side *s, unsigned conn)
{
  struct pollfd p = {real_of(s)->fds[conn], POLLIN, 0};
  unsigned char drop[4096];

  shutdown(p.fd, SHUT_WR);
  while (poll(&p, 1, PATIENCE_MS) == 1 && recv(p.fd, drop, sizeof drop, 0) > 0)
    continue;
  close(p.fd);
}

static void rest(side *s)
{
  struct timespec moment = {0, 100000};

  (void)s;
  nanosleep(&moment, NULL);
}

static void free_real(side *s)
{
  server_end(&real_of(s)->zk);
  free(s);
}

/* Server 0 is the leader, which is not like the others. */
static void put_leader_first(real *r)
{
  int leader = r->base.servers == 1 ? 1 : server_in_mode(&r->zk, "leader");
  struct sockaddr_in first = r->addresses[0];

  if (leader == 0)
    die("no leader");
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
      die(r->zk.connect);
    r->addresses[i].sin_family = AF_INET;
    r->addresses[i].sin_port = htons((uint16_t)port);
    at += strcspn(at, ",") + 1;
  }
}

side *side_real_new(const side_config *config)
{
  static const side_kind kind = {"server",       open_conn,  send_bytes,
                                 wait_for_bytes, close_conn, rest,
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
  snprintf(tick, sizeof tick, "%d", (int)config->tick);
  snprintf(min, sizeof min, "%d", (int)config->min_timeout);
  snprintf(max, sizeof max, "%d", (int)config->max_timeout);
  snprintf(sweep, sizeof sweep, "%d", (int)config->sweep);
  r->base.kind = &kind;
  r->base.servers = config->servers;
  server_start(&r->zk, options);
  find_addresses(r);
  put_leader_first(r);
  expect_release(r, "3.8.0");
  open_nudges(r);
  read_members(r);
  return &r->base;
}
