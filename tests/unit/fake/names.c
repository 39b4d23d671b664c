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
static ev_io port_io;
static int tcp = -1; /* listens at the same port */
static ev_io tcp_io; /* its one connection */
static atomic_uint asked;
static unsigned late_asked; /* questions for late.test */
int fake_names_patience_ms;
bool fake_names_no_memory, fake_names_no_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static bool stopping;
static unsigned waiting; /* threads in getaddrinfo() for a silent name */

static bool is_test_name(const char *name)
{
  size_t len = strlen(name);

  return len > 5 && strcmp(name + len - 5, ".test") == 0;
}

static const entry *find(const char *name)
{
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strcmp(entries[i].name, name) == 0)
      return &entries[i];
  return NULL;
}

unsigned fake_names_asked(void)
{
  return asked;
}

/* ---- getaddrinfo() ------------------------------------------------------- */

int __real_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
void __real_freeaddrinfo(struct addrinfo *list);
void __wrap_freeaddrinfo(struct addrinfo *list);

/* One result; the list is ours, which shows by its canonical name. */
typedef struct item {
  struct addrinfo info;
  struct sockaddr_storage address;
} item;

static char ours[] = "ours";

static item *make_item(const char *literal)
{
  item *i = calloc(1, sizeof *i);
  struct sockaddr_in *v4 = (struct sockaddr_in *)&i->address;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&i->address;

  ck_assert_ptr_nonnull(i);
  i->info.ai_addr = (struct sockaddr *)&i->address;
  i->info.ai_canonname = ours;
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

static void stay_silent(void)
{
  pthread_mutex_lock(&lock);
  waiting++;
  while (!stopping)
    pthread_cond_wait(&change, &lock);
  waiting--;
  pthread_cond_broadcast(&change);
  pthread_mutex_unlock(&lock);
}

int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out)
{
  const entry *e = find(host);

  atomic_fetch_add(&asked, 1);
  if (!is_test_name(host))
    return __real_getaddrinfo(host, service, hints, out);
  if (strcmp(host, "silent.test") == 0) {
    stay_silent();
    return EAI_AGAIN;
  }
  if (e == NULL)
    return EAI_NONAME;
  for (size_t i = 0; e->addresses[i] != NULL; i++) {
    item *next = make_item(e->addresses[i]);

    *out = &next->info;
    out = &next->info.ai_next;
  }
  return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
  if (list->ai_canonname != ours) {
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

enum { HEADER = 12, TYPE_A = 1, TYPE_AAAA = 28 };

/* The queried name as text; returns the position behind it. */
static size_t read_name(const unsigned char *message, size_t len, char *out)
{
  size_t at = HEADER;
  size_t used = 0;

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

static size_t add_answer(unsigned char *at, const char *literal, int type)
{
  static const unsigned char start[] = {0xc0, HEADER, 0, 0, 0, 1, 0, 0, 0, 9};
  int family = type == TYPE_A ? AF_INET : AF_INET6;
  size_t size = type == TYPE_A ? 4 : 16;

  memcpy(at, start, sizeof start);
  at[3] = (unsigned char)type;
  at[10] = 0;
  at[11] = (unsigned char)size;
  if (inet_pton(family, literal, at + 12) != 1)
    return 0;
  return 12 + size;
}

/* Make an answer of the question in `message`; its length, 0: none. */
static size_t answer(unsigned char *message, size_t len, bool over_tcp)
{
  char name[256];
  size_t end = read_name(message, len, name) + 4;
  int type = message[end - 3];
  const entry *e = find(name);

  ck_assert_uint_le(end, len);
  if (type == TYPE_A)
    atomic_fetch_add(&asked, 1);
  if (strcmp(name, "silent.test") == 0)
    return 0;
  if (strcmp(name, "late.test") == 0 && late_asked++ < 2)
    return 0;        /* once for each family */
  message[2] = 0x81; /* an answer, recursion desired */
  message[3] = e == NULL ? 0x83 : 0x80;
  memset(message + 6, 0, HEADER - 6);
  if (strcmp(name, "long.test") == 0 && !over_tcp) {
    message[2] |= 0x02; /* truncated */
    return end;
  }
  for (size_t i = 0; e != NULL && e->addresses[i] != NULL; i++) {
    size_t size = add_answer(message + end, e->addresses[i], type);

    end += size;
    message[7] = (unsigned char)(message[7] + (size > 0));
  }
  return end;
}

static void on_question(struct ev_loop *loop, ev_io *w, int revents)
{
  unsigned char message[1024];
  struct sockaddr_storage from;
  socklen_t from_len = sizeof from;
  ssize_t got =
      recvfrom(w->fd, message, 512, 0, (struct sockaddr *)&from, &from_len);

  (void)loop;
  (void)revents;
  if (got < HEADER + 5)
    return;

  size_t len = answer(message, (size_t)got, false);

  if (len > 0)
    sendto(w->fd, message, len, 0, (struct sockaddr *)&from, from_len);
}

/* Questions are short, so that they come whole, each behind its length. */
static void on_tcp_question(struct ev_loop *loop, ev_io *w, int revents)
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

  size_t len = answer(message + 2, (size_t)got, true);

  message[1] = (unsigned char)len;
  ck_assert_int_eq(send(w->fd, message, len + 2, MSG_NOSIGNAL),
                   (ssize_t)len + 2);
}

bool fake_names_tcp_waits(void)
{
  struct pollfd p = {.fd = tcp, .events = POLLIN};

  return poll(&p, 1, 0) == 1;
}

void fake_names_accept_tcp(void)
{
  ev_io_init(&tcp_io, on_tcp_question, accept(tcp, NULL, NULL), EV_READ);
  ev_io_start(the_loop, &tcp_io);
  ev_unref(the_loop);
}

/* Both at one port; false: it is taken. */
static bool open_ports(int *udp)
{
  struct sockaddr_in here = {.sin_family = AF_INET};
  socklen_t len = sizeof here;

  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(*udp, 0);
  ck_assert_int_ge(tcp, 0);
  ck_assert_int_eq(bind(*udp, (struct sockaddr *)&here, sizeof here), 0);
  getsockname(*udp, (struct sockaddr *)&here, &len);
  if (bind(tcp, (struct sockaddr *)&here, sizeof here) == 0 &&
      listen(tcp, 1) == 0)
    return true;
  close(*udp);
  close(tcp);
  return false;
}

void fake_names_start(struct ev_loop *loop)
{
  int udp;

  while (!open_ports(&udp))
    ;
  the_loop = loop;
  asked = 0;
  late_asked = 0;
  stopping = false;
  ev_io_init(&port_io, on_question, udp, EV_READ);
  ev_io_start(loop, &port_io);
  ev_unref(loop);
}

void fake_names_stop(void)
{
  ev_ref(the_loop);
  ev_io_stop(the_loop, &port_io);
  close(port_io.fd);
  close(tcp);
  the_loop = NULL;
  pthread_mutex_lock(&lock);
  stopping = true;
  pthread_cond_broadcast(&change);
  while (waiting > 0)
    pthread_cond_wait(&change, &lock);
  pthread_mutex_unlock(&lock);
}

void fake_names_server(char *out, size_t size)
{
  struct sockaddr_in here;
  socklen_t len = sizeof here;

  ck_assert_ptr_nonnull(the_loop);
  getsockname(port_io.fd, (struct sockaddr *)&here, &len);
  snprintf(out, size, "127.0.0.1:%u", (unsigned)ntohs(here.sin_port));
}
