/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/client/sync_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

server zk;
lk_sync_client *here;
lk_sync_client *there;
lk_sync_lock *lock;
lk_sync_lock *rival;
event_counts lock_events;
const lk_sync_call ten_seconds = {.size = sizeof ten_seconds,
                                  .timeout_ms = 10000};

static char lock_path[64]; /* of `lock` and `rival` */

static void on_event(lk_sync_lock *l, const lk_lock_event *event, void *arg)
{
  event_counts *counts = arg;

  (void)l;
  switch (event->type) {
  case LK_LOCK_EVENT_WAITING: counts->waiting++; break;
  case LK_LOCK_EVENT_UNSURE: counts->unsure++; break;
  case LK_LOCK_EVENT_RENEWED: counts->renewed++; break;
  case LK_LOCK_EVENT_LOST:
    counts->lost_err = event->err;
    counts->lost++;
    break;
  case LK_LOCK_EVENT_PLACE_LOST:
  case LK_LOCK_EVENT_SUSPENDED:
  case LK_LOCK_EVENT_MIXED_QUEUE:
  case LK_LOCK_EVENT_REVOKED:
  case LK_LOCK_EVENT_UNWATCHED: break;
  }
}

static lk_sync_client *new_client(int32_t timeout_ms)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = zk.hosts,
                                    .session_timeout_ms = timeout_ms};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  lk_sync_client *c;

  ck_assert_int_eq(lk_sync_client_new(&c, &config), 0);
  return c;
}

static void make_here(int32_t timeout_ms)
{
  here = new_client(timeout_ms);
  ck_assert_int_eq(
      lk_sync_lock_new(&lock, here, lock_path, NULL, on_event, &lock_events),
      0);
}

static void end_here(void)
{
  lk_sync_lock_free(lock);
  if (lk_sync_client_state(here) == LK_STATE_CONNECTED)
    lk_sync_client_close(here);
  lk_sync_client_free(here);
}

void sync_world_set_up(void)
{
  lk_sync_result *r;

  there = new_client(10000);
  ck_assert_int_eq(lk_sync_create(there, &r, "/w-", lk_text(""), NULL,
                                  LK_SEQUENTIAL, &ten_seconds),
                   0);
  snprintf(lock_path, sizeof lock_path, "%s/lock", r->path);
  lk_sync_result_free(r);
  ck_assert_int_eq(lk_sync_lock_new(&rival, there, lock_path, NULL, NULL, NULL),
                   0);
  make_here(10000);
}

void sync_world_tear_down(void)
{
  end_here();
  lk_sync_lock_free(rival);
  ck_assert_int_eq(lk_sync_client_close(there), 0);
  lk_sync_client_free(there);
}

void renew_here_with_timeout(int32_t ms)
{
  end_here();
  make_here(ms);
}

void wait_for_event(const atomic_uint *count)
{
  for (int i = 0; i < 10000 && *count == 0; i++)
    usleep(1000);
  ck_assert_uint_gt(*count, 0);
}

/* The names of the contender nodes; NULL if there is no lock directory yet. */
static lk_sync_result *list_contenders(void)
{
  lk_sync_result *r;
  int err = lk_sync_get_children(there, &r, lock_path, &ten_seconds);

  ck_assert(err == 0 || err == LK_ERR_NO_NODE);
  return r;
}

size_t count_contenders(void)
{
  lk_sync_result *r = list_contenders();
  size_t count = r == NULL ? 0 : r->count;

  lk_sync_result_free(r);
  return count;
}

void delete_contender_nodes(void)
{
  lk_sync_result *r = list_contenders();
  char node[256];

  ck_assert_ptr_nonnull(r);
  for (size_t i = 0; i < r->count; i++) {
    snprintf(node, sizeof node, "%s/%s", lock_path,
             (const char *)r->names[i].at);
    ck_assert_int_eq(lk_sync_delete(there, node, -1, &ten_seconds), 0);
  }
  lk_sync_result_free(r);
}

bool is_readable(int fd)
{
  struct pollfd polled = {.fd = fd, .events = POLLIN};

  return poll(&polled, 1, 0) == 1;
}

lk_sync_lock *clone_of(lk_sync_lock *l)
{
  lk_sync_lock *clone;

  ck_assert_int_eq(lk_sync_lock_clone(&clone, l, &lock_events), 0);
  return clone;
}

int acquire_clone(void *call)
{
  lk_sync_lock *clone = clone_of(lock);
  int err = lk_sync_lock_acquire(clone, call);

  lk_sync_lock_free(clone);
  return err;
}

int try_clone(void *call)
{
  lk_sync_lock *clone = clone_of(lock);
  int err = lk_sync_lock_try(clone, call);

  lk_sync_lock_free(clone);
  return err;
}

int acquire_rival(void *call)
{
  return lk_sync_lock_acquire(rival, call);
}
