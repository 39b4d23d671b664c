/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/names.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
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
    {"soon.test", {"127.0.0.1", "::1"}},
    {"late.test", {"127.0.0.1", "::1"}},
    {"half.test", {"127.0.0.1", "::1"}},
    {"six.test", {"127.0.0.1", "::1"}},
    {"broken.test", {"127.0.0.1", "::1"}},
    {"dead.test",
     {"127.0.0.1", "127.9.9.1", "127.9.9.2", "127.9.9.3", "127.9.9.4",
      "127.9.9.5"}},
};

static atomic_uint lookups;
atomic_bool fake_names_fail, fake_names_hang, fake_names_moved;
bool fake_names_no_memory, fake_names_no_thread, fake_names_no_hosts_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping_or_waiting_changed = PTHREAD_COND_INITIALIZER;
static bool stopping;
static unsigned waiting; /* threads in getaddrinfo() that wait for the stop */

static bool is_test_name(const char *name)
{
  const char *domain = strrchr(name, '.');

  return (domain != NULL && strcmp(domain, ".test") == 0) ||
         (strcasestr(name, "localhost") != NULL &&
          strcasecmp(name, "localhost") != 0);
}

static const entry *find(const char *name)
{
  static const entry any = {"any*", {"127.0.0.1"}};

  static const entry old = {"moved.test", {"127.0.0.2"}};

  if (strncmp(name, "any", 3) == 0)
    return &any;
  if (strcmp(name, "moved.test") == 0)
    return fake_names_moved ? &any : &old;
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

unsigned fake_names_waiting(void)
{
  pthread_mutex_lock(&lock);
  unsigned count = waiting;

  pthread_mutex_unlock(&lock);
  return count;
}

static bool begins_with(const char *text, const char *prefix)
{
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether no name server replies to a query of this family. */
static bool is_silent(const char *host, int family)
{
  return fake_names_hang || begins_with(host, "silent") ||
         (begins_with(host, "half") && family != AF_INET) ||
         (begins_with(host, "six") && family != AF_INET6) ||
         (strcmp(host, "soon.test") == 0 && family == AF_UNSPEC);
}

/* Take as long as the name says. Returns whether there is a result. */
static bool wait_for_result(const char *host, int family)
{
  bool silent = is_silent(host, family);

  if (silent)
    wait_until_stopping();
  else if (strcmp(host, "soon.test") == 0 && family == AF_INET6)
    poll(NULL, 0, FAKE_NAMES_SOON_MS);
  else if (strcmp(host, "late.test") == 0 && family != AF_INET)
    poll(NULL, 0, FAKE_NAMES_LATE_MS);
  else if (strcmp(host, "moved.test") == 0 && fake_names_moved)
    poll(NULL, 0, FAKE_NAMES_LATE_MS);
  return !silent && !fake_names_fail;
}

static bool is_of_family(const char *literal, int family)
{
  bool is_ipv6 = strchr(literal, ':') != NULL;

  return family == AF_UNSPEC || is_ipv6 == (family == AF_INET6);
}

static int find_addresses(const entry *e, int family, struct addrinfo **out)
{
  struct addrinfo **end = out;

  *out = NULL;
  for (size_t i = 0; e->addresses[i] != NULL; i++) {
    if (!is_of_family(e->addresses[i], family))
      continue;
    fake_result *next = make_result(e->addresses[i]);

    *end = &next->info;
    end = &next->info.ai_next;
  }
  return *out == NULL ? EAI_NONAME : 0;
}

int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out)
{
  if (hints->ai_family == AF_UNSPEC)
    atomic_fetch_add(&lookups, 1);
  if (!is_test_name(host))
    return __real_getaddrinfo(host, service, hints, out);
  if (!wait_for_result(host, hints->ai_family))
    return EAI_AGAIN;
  if (strcmp(host, "broken.test") == 0 && hints->ai_family != AF_INET)
    return EAI_AGAIN;

  const entry *e = find(host);

  return e == NULL ? EAI_NONAME : find_addresses(e, hints->ai_family, out);
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

/* ---- start and stop ------------------------------------------------------ */

void fake_names_start(void)
{
  lookups = 0;
  fake_names_fail = false;
  fake_names_hang = false;
  fake_names_moved = false;
  pthread_mutex_lock(&lock);
  stopping = false;
  pthread_mutex_unlock(&lock);
}

void fake_names_stop(void)
{
  pthread_mutex_lock(&lock);
  stopping = true;
  pthread_cond_broadcast(&stopping_or_waiting_changed);
  while (waiting > 0)
    pthread_cond_wait(&stopping_or_waiting_changed, &lock);
  pthread_mutex_unlock(&lock);
}
