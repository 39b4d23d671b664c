/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "net/wakeup.h"

/*
 * A thread per name, which lives as long as getaddrinfo() takes. A desk stands
 * between the threads and the loop; it outlives the resolver while a thread is
 * on its way to it. Desk and jobs come from malloc(), because the thread may
 * be the one to free them, and the user's allocator belongs to the loop.
 */
typedef struct job {
  struct job *next;
  struct desk *desk;
  lk_name_query *query; /* the loop's; the thread does not look at it */
  struct addrinfo *found;
  int failed;
  char host[];
} job;

typedef struct desk {
  pthread_mutex_t lock;
  bool closed; /* the resolver is gone, and the bell */
  lk_wakeup bell;
  job *finished;
  size_t users; /* the resolver, and each thread */
} desk;

struct lk_name_service {
  const lk_mem *mem;
  desk *desk;
};

static void free_job(job *j)
{
  if (j->found != NULL)
    freeaddrinfo(j->found);
  free(j);
}

/* Give the lock back, and the desk if nobody is left. */
static void leave(desk *d)
{
  bool last = --d->users == 0;

  pthread_mutex_unlock(&d->lock);
  if (!last)
    return;
  pthread_mutex_destroy(&d->lock);
  free(d);
}

static void *work(void *arg)
{
  job *j = arg;
  desk *d = j->desk;
  const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                 .ai_socktype = SOCK_STREAM};

  j->failed = getaddrinfo(j->host, NULL, &hints, &j->found);

  pthread_mutex_lock(&d->lock);
  if (d->closed) {
    free_job(j);
  } else {
    j->next = d->finished;
    d->finished = j;
    lk__wakeup_signal(&d->bell);
  }
  leave(d);
  return NULL;
}

static void finish(job *j)
{
  for (const struct addrinfo *a = j->found; a != NULL; a = a->ai_next)
    lk__name_query_add_address(j->query, a->ai_addr);
  lk__name_query_complete(j->query,
                          j->failed == 0 ? NULL : gai_strerror(j->failed));
  free_job(j);
}

static void on_bell(void *arg)
{
  desk *d = arg;

  pthread_mutex_lock(&d->lock);
  job *list = d->finished;

  d->finished = NULL;
  pthread_mutex_unlock(&d->lock);
  while (list != NULL) {
    job *j = list;

    list = j->next;
    finish(j);
  }
}

int lk__name_service_new(lk_name_service **out, struct ev_loop *loop,
                         const lk_mem *mem)
{
  lk_name_service *n = lk__mem_new(mem, sizeof *n);
  desk *d = calloc(1, sizeof *d);

  *out = NULL;
  if (n == NULL || d == NULL || pthread_mutex_init(&d->lock, NULL) != 0) {
    lk__mem_free(mem, n);
    free(d);
    return LK_ERR_NO_MEMORY;
  }
  if (lk__wakeup_open(&d->bell, loop, on_bell, d) != 0) {
    pthread_mutex_destroy(&d->lock);
    lk__mem_free(mem, n);
    free(d);
    return LK_ERR_SYSTEM;
  }
  n->mem = mem;
  n->desk = d;
  d->users = 1;
  *out = n;
  return 0;
}

/* No signal handler of the program's shall run on a thread it does not know. */
static int start(job *j)
{
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all, before;
  int failed = pthread_attr_init(&attr);

  if (failed != 0)
    return failed;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  failed = pthread_create(&thread, &attr, work, j);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return failed;
}

void lk__name_service_query(lk_name_service *n, lk_name_query *q)
{
  size_t size = strlen(q->host) + 1;
  job *j = calloc(1, sizeof *j + size);

  if (j == NULL) {
    lk__name_query_complete(q, "out of memory");
    return;
  }
  memcpy(j->host, q->host, size);
  j->query = q;
  j->desk = n->desk;
  pthread_mutex_lock(&n->desk->lock);
  n->desk->users++;
  pthread_mutex_unlock(&n->desk->lock);
  if (start(j) == 0)
    return;
  pthread_mutex_lock(&n->desk->lock);
  leave(n->desk);
  free_job(j);
  lk__name_query_complete(q, "cannot start a thread");
}

void lk__name_service_idle(lk_name_service *n)
{
  (void)n;
}

void lk__name_service_free(lk_name_service *n, bool forked)
{
  desk *d = n->desk;

  lk__mem_free(n->mem, n);
  /* A child has no such threads, and one of them may have held the lock. */
  if (forked) {
    lk__wakeup_close(&d->bell);
    return;
  }
  pthread_mutex_lock(&d->lock);
  lk__wakeup_close(&d->bell);
  d->closed = true;
  while (d->finished != NULL) {
    job *j = d->finished;

    d->finished = j->next;
    free_job(j);
  }
  leave(d);
}
