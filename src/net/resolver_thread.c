/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver_thread.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/fork_check.h"
#include "net/resolver.h"
#include "net/wakeup.h"

/*
 * Each query has a thread, which calls getaddrinfo(), puts the result into the
 * mailbox, and ends. The loop's thread takes the results out of the mailbox.
 * A thread may still run when the object is freed; the mailbox is then freed by
 * the last thread. Therefore mailbox and queries come from malloc(): the user's
 * allocator may be called on the loop's thread only.
 */
typedef struct thread_query {
  lk_link link; /* in lk_lookup_threads.waiting, until the thread starts */
  struct thread_query *next; /* in mailbox.ended */
  struct mailbox *mailbox;
  void *name; /* used by the loop's thread only */
  lk_lookup_kind kind;
  struct addrinfo *found; /* NULL: nothing was found */
  int error;              /* of getaddrinfo(); 0: none */
  int sys_errno;          /* for EAI_SYSTEM */
  char host[];
} thread_query;

typedef struct mailbox {
  pthread_mutex_t lock; /* for the other members */
  bool closed;          /* the object is freed: threads free their results, and
                           do not signal `wakeup` */
  lk_wakeup wakeup;     /* signalled for each result */
  thread_query *ended;  /* results that the loop's thread has not taken yet,
                           the newest first */
  size_t refs;          /* one for the object and one for each thread */
} mailbox;

struct lk_lookup_threads {
  const lk_mem *mem;
  lk_resolver *resolver;
  mailbox *mailbox;
  lk_link waiting; /* queries without a thread */
  unsigned running[LK_LOOKUP_KINDS];
};

static const int families[LK_LOOKUP_KINDS] = {[LK_LOOKUP_ANY] = AF_UNSPEC,
                                              [LK_LOOKUP_IPV4] = AF_INET,
                                              [LK_LOOKUP_IPV6] = AF_INET6};

/* ---- threads ------------------------------------------------------------- */

static void thread_query_free(thread_query *q)
{
  if (q->found != NULL)
    freeaddrinfo(q->found);
  free(q);
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
  thread_query *q = arg;
  mailbox *m = q->mailbox;
  const struct addrinfo hints = {.ai_family = families[q->kind],
                                 .ai_socktype = SOCK_STREAM};

  q->error = getaddrinfo(q->host, NULL, &hints, &q->found);
  q->sys_errno = errno;

  pthread_mutex_lock(&m->lock);
  if (m->closed) {
    thread_query_free(q);
  } else {
    q->next = m->ended;
    m->ended = q;
    lk__wakeup_signal(&m->wakeup);
  }
  mailbox_unlock_and_unref(m);
  return NULL;
}

/* All signals are blocked on the new thread, since the program does not expect
   its handlers to run there. Returns 0 or an errno. */
static int start_thread(thread_query *q)
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
  error = pthread_create(&thread, &attr, thread_query_run, q);
  pthread_sigmask(SIG_SETMASK, &previous_mask, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

/* false: the thread could not be started. */
static bool threads_start(lk_lookup_threads *t, thread_query *q)
{
  pthread_mutex_lock(&t->mailbox->lock);
  t->mailbox->refs++;
  pthread_mutex_unlock(&t->mailbox->lock);
  if (start_thread(q) != 0) {
    pthread_mutex_lock(&t->mailbox->lock);
    mailbox_unlock_and_unref(t->mailbox);
    return false;
  }
  t->running[q->kind]++;
  return true;
}

/* ---- queries ------------------------------------------------------------- */

static unsigned count_running(const lk_lookup_threads *t)
{
  unsigned count = 0;

  for (int kind = 0; kind < LK_LOOKUP_KINDS; kind++)
    count += t->running[kind];
  return count;
}

bool lk__lookup_threads_are_busy(const lk_lookup_threads *t)
{
  return count_running(t) > LK_LOOKUP_THREADS / 2;
}

static bool threads_have_room(const lk_lookup_threads *t, lk_lookup_kind kind)
{
  return t->running[kind] < LK_LOOKUP_THREADS_OF_A_KIND &&
         count_running(t) < LK_LOOKUP_THREADS;
}

/* Whether the name has no address. */
static bool is_definite(int error)
{
#ifdef EAI_NODATA
  if (error == EAI_NODATA)
    return true;
#endif
  return error == EAI_NONAME;
}

static const char *reason_of(const thread_query *q)
{
  if (q->found != NULL)
    return NULL;
  if (q->error == 0)
    return "no address";
  return q->error == EAI_SYSTEM ? strerror(q->sys_errno)
                                : gai_strerror(q->error);
}

static void threads_report(lk_lookup_threads *t, thread_query *q,
                           const char *why)
{
  const lk_lookup_result result = {.name = q->name,
                                   .kind = q->kind,
                                   .found = q->found,
                                   .why = why,
                                   .temporary = !is_definite(q->error)};

  lk__resolver_on_query_result(t->resolver, &result);
  thread_query_free(q);
}

static void threads_start_waiting(lk_lookup_threads *t)
{
  for (lk_link *l = t->waiting.next, *next; l != &t->waiting; l = next) {
    thread_query *q = LK_OWNER(l, thread_query, link);

    next = l->next;
    if (!threads_have_room(t, q->kind))
      continue;
    lk__list_remove(l);
    if (!threads_start(t, q))
      threads_report(t, q, "cannot start a thread");
  }
}

static void threads_take(lk_lookup_threads *t, thread_query *q)
{
  t->running[q->kind]--;
  threads_report(t, q, reason_of(q));
}

/* Reverse the list, so that the newest result comes last. */
static thread_query *in_order(thread_query *newest)
{
  thread_query *oldest = NULL;

  while (newest != NULL) {
    thread_query *next = newest->next;

    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

static void on_mailbox_wakeup(void *arg)
{
  lk_lookup_threads *t = arg;
  mailbox *m = t->mailbox;

  pthread_mutex_lock(&m->lock);
  thread_query *ended = in_order(m->ended);

  m->ended = NULL;
  pthread_mutex_unlock(&m->lock);
  while (ended != NULL) {
    thread_query *q = ended;

    ended = q->next;
    threads_take(t, q);
  }
  threads_start_waiting(t);
}

bool lk__lookup_threads_query(lk_lookup_threads *t, const char *host,
                              lk_lookup_kind kind, void *name)
{
  size_t size = strlen(host) + 1;
  thread_query *q = calloc(1, sizeof *q + size);

  if (q == NULL)
    return false;
  memcpy(q->host, host, size);
  q->name = name;
  q->kind = kind;
  q->mailbox = t->mailbox;
  lk__list_init(&q->link);
  if (!threads_have_room(t, kind)) {
    lk__list_add(&t->waiting, &q->link);
    return true;
  }
  if (threads_start(t, q))
    return true;
  thread_query_free(q);
  return false;
}

/* ---- creation and end ---------------------------------------------------- */

int lk__lookup_threads_new(lk_lookup_threads **out, lk_loop *loop,
                           const lk_fork_check *fork_check, const lk_mem *mem,
                           lk_resolver *resolver)
{
  lk_lookup_threads *t = lk__mem_new(mem, sizeof *t);
  mailbox *m = calloc(1, sizeof *m);

  *out = NULL;
  if (t == NULL || m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
    lk__mem_free(mem, t);
    free(m);
    return LK_ERR_NO_MEMORY;
  }
  if (lk__wakeup_open(&m->wakeup, loop, fork_check, on_mailbox_wakeup, t) !=
      0) {
    pthread_mutex_destroy(&m->lock);
    lk__mem_free(mem, t);
    free(m);
    return LK_ERR_SYSTEM;
  }
  *t = (lk_lookup_threads){.mem = mem, .resolver = resolver, .mailbox = m};
  lk__list_init(&t->waiting);
  m->refs = 1;
  *out = t;
  return 0;
}

/* A forked child does not free the mailbox. A thread of the parent may have
   held the lock during the fork, and the child has no thread to unlock it. */
static void mailbox_close(mailbox *m, bool forked)
{
  if (forked) {
    lk__wakeup_close(&m->wakeup);
    return;
  }
  pthread_mutex_lock(&m->lock);
  lk__wakeup_close(&m->wakeup);
  m->closed = true;
  while (m->ended != NULL) {
    thread_query *q = m->ended;

    m->ended = q->next;
    thread_query_free(q);
  }
  mailbox_unlock_and_unref(m);
}

void lk__lookup_threads_free(lk_lookup_threads *t, bool forked)
{
  if (t == NULL)
    return;
  while (!lk__list_empty(&t->waiting))
    thread_query_free(LK_OWNER(lk__list_pop(&t->waiting), thread_query, link));
  mailbox_close(t->mailbox, forked);
  lk__mem_free(t->mem, t);
}
