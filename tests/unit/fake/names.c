/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/names.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <ev.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct entry {
  const char *name;
  const char *addresses[8];
} entry;

static const entry entries[] = {
    {"two.test", {"127.0.0.1", "127.0.0.2"}},
    {"both.test", {"127.0.0.1", "::1"}},
    {"twice.test", {"127.0.0.1", "127.0.0.1"}},
    {"late.test", {"127.0.0.1"}},
    {"long.test", {"127.0.0.3", "127.0.0.4"}},
    {"dead.test",
     {"127.0.0.1", "127.9.9.1", "127.9.9.2", "127.9.9.3", "127.9.9.4",
      "127.9.9.5"}},
};

static struct ev_loop *the_loop;
static ev_io udp_io;
static int tcp_listener = -1; /* at the port of udp_io */
static ev_io tcp_io;          /* the one TCP connection */
static atomic_uint lookups;
static unsigned late_queries; /* queries of late.test */
int fake_names_query_timeout_ms;
bool fake_names_no_memory, fake_names_no_thread, fake_names_no_hosts_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping_or_waiting_changed = PTHREAD_COND_INITIALIZER;
static bool stopping;
static unsigned waiting; /* threads in getaddrinfo() for silent.test */

static bool is_test_name(const char *name)
{
  const char *domain = strrchr(name, '.');

  return (domain != NULL && strcmp(domain, ".test") == 0) ||
         (strcasestr(name, "localhost") != NULL &&
          strcasecmp(name, "localhost") != 0);
}

static const entry *find(const char *name)
{
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strcmp(entries[i].name, name) == 0)
      return &entries[i];
  return NULL;
}

unsigned fake_names_lookups(void)
{
  return lookups;
}

/* ---- access() ------------------------------------------------------------ */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
  return fake_names_no_hosts_file && strcmp(path, "/etc/hosts") == 0
             ? -1
             : __real_access(path, mode);
}

/* ---- getaddrinfo() ------------------------------------------------------- */

int __real_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);

/* One result. The canonical name distinguishes it from results of the real
   getaddrinfo(). */
typedef struct fake_result {
  struct addrinfo info;
  struct sockaddr_storage address;
} fake_result;

static char fake_canonical_name[] = "fake";

static fake_result *make_result(const char *literal)
{
  fake_result *i = calloc(1, sizeof *i);
  struct sockaddr_in *v4 = (struct sockaddr_in *)&i->address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&i->address;

  ck_assert_ptr_nonnull(i);
  i->info.ai_addr = (struct sockaddr *)&i->address;
  i->info.ai_canonname = fake_canonical_name;
  i->info.ai_socktype = SOCK_STREAM;
  if (inet_pton(AF_INET, literal, &v4->sin_addr) == 1) {
    i->info.ai_family = AF_INET;
    i->info.ai_addrlen = sizeof *v4;
  } else {
    ck_assert_int_eq(inet_pton(AF_INET6, literal, &v6->sin6_addr), 1);
    i->info.ai_family = AF_INET6;
    i->info.ai_addrlen = sizeof *v6;
  }
  i->info.ai_addr->sa_family = (sa_family_t)i->info.ai_family;
  return i;
}

static void wait_until_stopping(void)
{
  pthread_mutex_lock(&lock);
  waiting++;
  while (!stopping)
    pthread_cond_wait(&stopping_or_waiting_changed, &lock);
  waiting--;
  pthread_cond_broadcast(&stopping_or_waiting_changed);
  pthread_mutex_unlock(&lock);
}

int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out)
{
  const entry *e = find(host);

  atomic_fetch_add(&lookups, 1);
  if (!is_test_name(host))
    return __real_getaddrinfo(host, service, hints, out);
  if (strcmp(host, "silent.test") == 0) {
    wait_until_stopping();
    return EAI_AGAIN;
  }
  if (e == NULL)
    return EAI_NONAME;
  for (size_t i = 0; e->addresses[i] != NULL; i++) {
    fake_result *next = make_result(e->addresses[i]);

    *out = &next->info;
    out = &next->info.ai_next;
  }
  return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
  if (list->ai_canonname != fake_canonical_name) {
    __real_freeaddrinfo(list);
    return;
  }
  while (list != NULL) {
    struct addrinfo *next = list->ai_next;

    free(list);
    list = next;
  }
}

/* ---- memory and threads -------------------------------------------------- */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*what)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*what)(void *), void *arg);

void *__wrap_calloc(size_t count, size_t size)
{
  return fake_names_no_memory ? NULL : __real_calloc(count, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*what)(void *), void *arg)
{
  return fake_names_no_thread ? EAGAIN
                              : __real_pthread_create(thread, attr, what, arg);
}

/* ---- a name server, for c-ares ------------------------------------------- */

/* A message as in RFC 1035, section 4: the header, the query, the answers.
   Numbers are big-endian. */
enum {
  HEADER = 12,
  FLAGS_AT = 2,        /* two bytes */
  ANSWER_COUNT_AT = 7, /* the low byte of two */
  TYPE_AND_CLASS = 4,  /* bytes behind a name */
  TYPE_A = 1
};

/* The first byte of the flags. */
enum { IS_REPLY = 0x80, TRUNCATED = 0x02, RECURSION_DESIRED = 0x01 };

/* The second byte of the flags. */
enum { RECURSION_AVAILABLE = 0x80, NO_SUCH_NAME = 0x03 };

/* Write the queried name to `out` as text. Returns the position behind it. */
static size_t read_name(const unsigned char *message, size_t len, char *out)
{
  size_t at = HEADER; /* in `message` */
  size_t used = 0;    /* bytes in `out` */

  while (at < len && message[at] != 0) {
    size_t label = message[at];

    ck_assert_uint_lt(at + label, len);
    ck_assert_uint_lt(used + label + 1, 255);
    if (used > 0)
      out[used++] = '.';
    memcpy(out + used, message + at + 1, label);
    used += label;
    at += 1 + label;
  }
  out[used] = '\0';
  return at + 1;
}

/* Returns the length of the answer; 0: `literal` is not of this type. */
static size_t add_answer(unsigned char *at, const char *literal, int type)
{
  /* The name, as the position of the queried one; the type, the class, the time
     to live, the length of the address. */
  enum { NAME_AT = 0xc0, INTERNET = 1, SECONDS_TO_LIVE = 9 };
  const unsigned char size = type == TYPE_A ? 4 : 16;
  const unsigned char start[] = {
      NAME_AT, HEADER, 0, (unsigned char)type, 0, INTERNET,
      0,       0,      0, SECONDS_TO_LIVE,     0, size};

  memcpy(at, start, sizeof start);
  if (inet_pton(type == TYPE_A ? AF_INET : AF_INET6, literal,
                at + sizeof start) != 1)
    return 0;
  return sizeof start + size;
}

typedef enum name_transport { OVER_UDP, OVER_TCP } name_transport;

/* Turn the query in `message` into a reply. Returns its length; 0: there is no
   reply. */
static size_t make_reply(unsigned char *message, size_t len,
                         name_transport transport)
{
  char name[256];
  size_t type_at = read_name(message, len, name);
  size_t end = type_at + TYPE_AND_CLASS;
  const entry *e = find(name);

  ck_assert_uint_le(end, len);

  int type = message[type_at + 1]; /* the low byte */

  /* c-ares sends a second query, for IPv6 addresses. */
  if (type == TYPE_A)
    atomic_fetch_add(&lookups, 1);
  if (strcmp(name, "silent.test") == 0)
    return 0;
  if (strcmp(name, "late.test") == 0 && late_queries++ < 2)
    return 0; /* to the first query of each type */
  message[FLAGS_AT] = IS_REPLY | RECURSION_DESIRED;
  message[FLAGS_AT + 1] =
      e == NULL ? RECURSION_AVAILABLE | NO_SUCH_NAME : RECURSION_AVAILABLE;
  memset(message + ANSWER_COUNT_AT - 1, 0, HEADER - (ANSWER_COUNT_AT - 1));
  if (strcmp(name, "long.test") == 0 && transport == OVER_UDP) {
    message[FLAGS_AT] |= TRUNCATED;
    return end;
  }
  for (size_t i = 0; e != NULL && e->addresses[i] != NULL; i++) {
    size_t size = add_answer(message + end, e->addresses[i], type);

    end += size;
    if (size > 0)
      message[ANSWER_COUNT_AT]++;
  }
  return end;
}

static void on_udp_query(struct ev_loop *loop, ev_io *w, int revents)
{
  unsigned char message[1024]; /* a query of up to 512 bytes and the answers */
  struct sockaddr_storage from;
  socklen_t from_len = sizeof from;
  ssize_t got =
      recvfrom(w->fd, message, 512, 0, (struct sockaddr *)&from, &from_len);

  (void)loop;
  (void)revents;
  if (got < HEADER + 1 + TYPE_AND_CLASS)
    return;

  size_t len = make_reply(message, (size_t)got, OVER_UDP);

  if (len > 0)
    sendto(w->fd, message, len, 0, (struct sockaddr *)&from, from_len);
}

/* Each message has its length in front, two bytes. The queries of the tests are
   shorter than 256 bytes, so they come whole, and byte 1 is the length. */
static void on_tcp_query(struct ev_loop *loop, ev_io *w, int revents)
{
  unsigned char message[1024];

  (void)revents;
  if (recv(w->fd, message, 2, 0) != 2) {
    ev_ref(loop);
    ev_io_stop(loop, w);
    close(w->fd);
    return;
  }

  ssize_t got = recv(w->fd, message + 2, message[1], 0);

  ck_assert_int_eq(got, message[1]);

  size_t len = make_reply(message + 2, (size_t)got, OVER_TCP);

  message[1] = (unsigned char)len;
  ck_assert_int_eq(send(w->fd, message, len + 2, MSG_NOSIGNAL),
                   (ssize_t)len + 2);
}

bool fake_names_tcp_waits(void)
{
  struct pollfd p = {.fd = tcp_listener, .events = POLLIN};

  return poll(&p, 1, 0) == 1;
}

void fake_names_accept_tcp(void)
{
  ev_io_init(&tcp_io, on_tcp_query, accept(tcp_listener, NULL, NULL), EV_READ);
  ev_io_start(the_loop, &tcp_io);
  ev_unref(the_loop);
}

/* Bind `*udp` and `tcp_listener` to the same port. Returns false if the port
   that the system chose for UDP is in use for TCP. */
static bool open_sockets(int *udp)
{
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t len = sizeof here;

  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  tcp_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(*udp, 0);
  ck_assert_int_ge(tcp_listener, 0);
  ck_assert_int_eq(bind(*udp, (struct sockaddr *)&here, sizeof here), 0);
  getsockname(*udp, (struct sockaddr *)&here, &len);
  if (bind(tcp_listener, (struct sockaddr *)&here, sizeof here) == 0 &&
      listen(tcp_listener, 1) == 0)
    return true;
  close(*udp);
  close(tcp_listener);
  return false;
}

void fake_names_start(struct ev_loop *loop)
{
  int udp;

  while (!open_sockets(&udp))
    ;
  the_loop = loop;
  lookups = 0;
  late_queries = 0;
  stopping = false;
  ev_io_init(&udp_io, on_udp_query, udp, EV_READ);
  ev_io_start(loop, &udp_io);
  ev_unref(loop); /* the name server does not keep the loop running */
}

void fake_names_stop(void)
{
  ev_ref(the_loop);
  ev_io_stop(the_loop, &udp_io);
  close(udp_io.fd);
  close(tcp_listener);
  the_loop = NULL;
  pthread_mutex_lock(&lock);
  stopping = true;
  pthread_cond_broadcast(&stopping_or_waiting_changed);
  while (waiting > 0)
    pthread_cond_wait(&stopping_or_waiting_changed, &lock);
  pthread_mutex_unlock(&lock);
}

void fake_names_server(char *out, size_t size)
{
  struct sockaddr_in here;
  socklen_t len = sizeof here;

  ck_assert_ptr_nonnull(the_loop);
  getsockname(udp_io.fd, (struct sockaddr *)&here, &len);
  snprintf(out, size, "127.0.0.1:%u", (unsigned)ntohs(here.sin_port));
}
