/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/name_service.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/wakeup.h"

/*
 * Each query has a thread, which calls getaddrinfo(), puts the result into the
 * mailbox, and ends. The loop's thread takes the results out of the mailbox.
 * A thread may still run when the name service is freed; the mailbox is then
 * freed by the last thread. Therefore mailbox and queries come from malloc():
 * the user's allocator may be called on the loop's thread only.
 */
typedef struct thread_query {
  struct thread_query *next; /* in mailbox.ended */
  struct mailbox *mailbox;
  lk_name_query *query;   /* used by the loop's thread only */
  struct addrinfo *found; /* NULL: nothing was found */
  int error;              /* of getaddrinfo(); 0: none */
  char host[];
} thread_query;

typedef struct mailbox {
  pthread_mutex_t lock; /* for the other members */
  bool closed;         /* the name service is freed: threads free their results,
                          and do not signal `wakeup` */
  lk_wakeup wakeup;    /* signalled for each result */
  thread_query *ended; /* results that the loop's thread has not taken yet */
  size_t refs;         /* one for the name service and one for each thread */
} mailbox;

struct lk_name_service {
  const lk_mem *mem;
  mailbox *mailbox;
};

static void thread_query_free(thread_query *t)
{
  if (t->found != NULL)
    freeaddrinfo(t->found);
  free(t);
}

/* Drop a reference and unlock, and free the mailbox if no reference is left. */
static void mailbox_unlock_and_unref(mailbox *m)
{
  m->refs--;
  bool unused = m->refs == 0;

  pthread_mutex_unlock(&m->lock);
  if (!unused)
    return;
  pthread_mutex_destroy(&m->lock);
  free(m);
}

static void *thread_query_run(void *arg)
{
  thread_query *t = arg;
  mailbox *m = t->mailbox;
  const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                 .ai_socktype = SOCK_STREAM};

  t->error = getaddrinfo(t->host, NULL, &hints, &t->found);

  pthread_mutex_lock(&m->lock);
  if (m->closed) {
    thread_query_free(t);
  } else {
    t->next = m->ended;
    m->ended = t;
    lk__wakeup_signal(&m->wakeup);
  }
  mailbox_unlock_and_unref(m);
  return NULL;
}

static void thread_query_complete(thread_query *t)
{
  for (const struct addrinfo *a = t->found; a != NULL; a = a->ai_next)
    lk__name_query_add_address(t->query, a->ai_addr);
  lk__name_query_complete(t->query,
                          t->error == 0 ? NULL : gai_strerror(t->error));
  thread_query_free(t);
}

static void on_mailbox_wakeup(void *arg)
{
  mailbox *m = arg;

  pthread_mutex_lock(&m->lock);
  thread_query *ended = m->ended;

  m->ended = NULL;
  pthread_mutex_unlock(&m->lock);
  while (ended != NULL) {
    thread_query *t = ended;

    ended = t->next;
    thread_query_complete(t);
  }
}

int lk__name_service_new(lk_name_service **out, lk_loop *loop,
                         const lk_fork_check *fork_check, const lk_mem *mem)
{
  lk_name_service *n = lk__mem_new(mem, sizeof *n);
  mailbox *m = calloc(1, sizeof *m);

  *out = NULL;
  if (n == NULL || m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
    lk__mem_free(mem, n);
    free(m);
    return LK_ERR_NO_MEMORY;
  }
  if (lk__wakeup_open(&m->wakeup, loop, fork_check, on_mailbox_wakeup, m) !=
      0) {
    pthread_mutex_destroy(&m->lock);
    lk__mem_free(mem, n);
    free(m);
    return LK_ERR_SYSTEM;
  }
  n->mem = mem;
  n->mailbox = m;
  m->refs = 1;
  *out = n;
  return 0;
}

/* All signals are blocked on the new thread, since the program does not expect
   its handlers to run there. Returns 0 or an errno. */
static int thread_query_start(thread_query *t)
{
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all_signals, previous_mask;
  int error = pthread_attr_init(&attr);

  if (error != 0)
    return error;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigfillset(&all_signals);
  pthread_sigmask(SIG_SETMASK, &all_signals, &previous_mask);
  error = pthread_create(&thread, &attr, thread_query_run, t);
  pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

void lk__name_service_query(lk_name_service *n, lk_name_query *q)
{
  size_t size = strlen(q->host) + 1;
  thread_query *t = calloc(1, sizeof *t + size);

  if (t == NULL) {
    lk__name_query_complete(q, "out of memory");
    return;
  }
  memcpy(t->host, q->host, size);
  t->query = q;
  t->mailbox = n->mailbox;
  pthread_mutex_lock(&n->mailbox->lock);
  n->mailbox->refs++;
  pthread_mutex_unlock(&n->mailbox->lock);
  if (thread_query_start(t) == 0)
    return;
  pthread_mutex_lock(&n->mailbox->lock);
  mailbox_unlock_and_unref(n->mailbox);
  thread_query_free(t);
  lk__name_query_complete(q, "cannot start a thread");
}

/* There is nothing to forget: getaddrinfo() itself reads a configuration that
   has changed. */
void lk__name_service_on_idle(lk_name_service *n)
{
  (void)n;
}

void lk__name_service_free(lk_name_service *n, bool forked)
{
  mailbox *m = n->mailbox;

  lk__mem_free(n->mem, n);
  /* A forked child does not free the mailbox. A thread of the parent may have
     held the lock during the fork, and the child has no thread to unlock it. */
  if (forked) {
    lk__wakeup_close(&m->wakeup);
    return;
  }
  pthread_mutex_lock(&m->lock);
  lk__wakeup_close(&m->wakeup);
  m->closed = true;
  while (m->ended != NULL) {
    thread_query *t = m->ended;

    m->ended = t->next;
    thread_query_free(t);
  }
  mailbox_unlock_and_unref(m);
}
