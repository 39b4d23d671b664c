/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/waiters.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sync/call.h"

static void *run_waiter(void *arg)
{
  waiter *w = arg;

  w->err = w->call(w->arg);
  return NULL;
}

void waiter_start(waiter *w, int (*call)(void *arg), void *arg)
{
  *w = (waiter){.call = call, .arg = arg};
  ck_assert_int_eq(pthread_create(&w->thread, NULL, run_waiter, w), 0);
}

int waiter_end(waiter *w)
{
  ck_assert_int_eq(pthread_join(w->thread, NULL), 0);
  return w->err;
}

static atomic_bool stands_still;

static void stand_still(int sig)
{
  const struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};

  (void)sig;
  atomic_store(&stands_still, true);
  nanosleep(&pause, NULL);
  atomic_store(&stands_still, false);
}

void waiter_stand_still(waiter *w)
{
  const struct sigaction action = {.sa_handler = stand_still};

  ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
  ck_assert_int_eq(pthread_kill(w->thread, SIGUSR1), 0);
  while (!waiter_stands_still())
    usleep(200);
}

bool waiter_stands_still(void)
{
  return atomic_load(&stands_still);
}

void waiters_inside(lk_sync_client *c, size_t count)
{
  bool all_inside = false;

  while (!all_inside) {
    usleep(200);
    pthread_mutex_lock(&c->mutex);
    all_inside = c->calls_inside == count && lk__list_empty(&c->tasks);
    pthread_mutex_unlock(&c->mutex);
  }
  usleep(1000); /* the last thread may not have posted its request yet */
}

static void *resize(void *arg, void *p, size_t size)
{
  shared_mem *m = arg;

  pthread_mutex_lock(&m->mutex);
  bool must_fail = false;

  if (size == 0) {
    m->live--;
  } else {
    m->count++;
    must_fail = m->count == m->fail_at;
    if (!must_fail && p == NULL)
      m->live++;
  }
  pthread_mutex_unlock(&m->mutex);
  if (size > 0)
    return must_fail ? NULL : realloc(p, size);
  free(p);
  return NULL;
}

void shared_mem_init(shared_mem *m)
{
  *m = (shared_mem){.mem = {.resize = resize, .arg = m}};
  pthread_mutex_init(&m->mutex, NULL);
}
