/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void on_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  test_client *p = arg;
  size_t at = strlen(p->left_behind);

  if (c != p->link->client)
    abort();
  snprintf(p->left_behind + at, sizeof p->left_behind - at, "%s %s\n",
           lk_error_name(err), path);
}

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  test_client *p = arg;

  (void)err;
  (void)text;
  if (level == LK_LOG_WARNING)
    p->warnings++;
  else if (level == LK_LOG_ERROR)
    p->errors++;
}

bool test_client_try_init(test_client *p, model_server *s,
                          const lk_lease_config *config)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = s->hosts,
                                    .session_timeout_ms = T,
                                    .mem = &p->mem.mem,
                                    .log = on_log,
                                    .log_arg = p};
  lk_lease_config lease_config = {.size = sizeof lease_config};

  if (config != NULL)
    lease_config = *config;
  lease_config.left_behind = on_left_behind;
  lease_config.arg = p;
  p->warnings = 0;
  p->errors = 0;
  p->left_behind[0] = '\0';
  p->link = model_client(s, &client_config);
  if (p->link == NULL)
    return false;
  int err = lk_lease_configure(p->link->client, &lease_config);

  if (err != 0 && err != LK_ERR_NO_MEMORY)
    abort();
  return err == 0;
}

void test_client_init(test_client *p, model_server *s,
                      const lk_lease_config *config)
{
  failing_mem_init(&p->mem);
  if (!test_client_try_init(p, s, config))
    abort();
}

static void ignore_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

void test_client_end_watches(test_client *p, const char *path)
{
  lk_watch *w;
  lk_call call = {.size = sizeof call, .on_event = ignore_event, .watch = &w};

  if (lk_add_watch(p->link->client, path, LK_WATCH_PERSISTENT, &call, NULL,
                   NULL) != 0)
    abort();
  model_turn(p->link->server);
  (void)lk_watch_remove(p->link->client, w, NULL, NULL);
  model_turn(p->link->server);
}

void test_client_free(test_client *p)
{
  if (p->link != NULL)
    lk_client_free(p->link->client);
  if (p->mem.live != 0) {
    fprintf(stderr, "%zu blocks are left\n", p->mem.live);
    abort();
  }
}

/* ---- locks ------------------------------------------------------------- */

static void record_event(locker *l, const char *text)
{
  size_t at = strlen(l->events);

  if (at + strlen(text) + 2 > sizeof l->events)
    abort();
  snprintf(l->events + at, sizeof l->events - at, "%s\n", text);
}

static void note_callback(locker *l, const char *text)
{
  l->calls++;
  if (l->react != NULL)
    l->react(l, text);
}

enum { SEQUENCE_NUMBER_LEN = 10 };

/* The digits of the sequence number at the end of a path. */
static const char *sequence_number(const char *path)
{
  return path + strlen(path) - SEQUENCE_NUMBER_LEN;
}

void locker_on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  locker *l = arg;
  char text[256];

  if (lock != l->lock)
    abort();
  switch (e->type) {
  case LK_LOCK_EVENT_WAITING:
    snprintf(text, sizeof text, "waiting %zu %s", e->position,
             sequence_number(e->node));
    break;
  case LK_LOCK_EVENT_PLACE_LOST:
    snprintf(text, sizeof text, "place lost %s", lk_error_name(e->err));
    break;
  case LK_LOCK_EVENT_SUSPENDED: snprintf(text, sizeof text, "suspended"); break;
  case LK_LOCK_EVENT_UNSURE: snprintf(text, sizeof text, "unsure"); break;
  case LK_LOCK_EVENT_RENEWED: snprintf(text, sizeof text, "held"); break;
  case LK_LOCK_EVENT_LOST:
    snprintf(text, sizeof text, "lost %s", lk_error_name(e->err));
    break;
  case LK_LOCK_EVENT_MIXED_QUEUE:
    snprintf(text, sizeof text, "mixed %s", e->node);
    break;
  case LK_LOCK_EVENT_UNWATCHED: snprintf(text, sizeof text, "unwatched"); break;
  case LK_LOCK_EVENT_REVOKED: snprintf(text, sizeof text, "revoked"); break;
  }
  record_event(l, text);
  note_callback(l, text);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->acquired != NOT_YET)
    abort();
  l->acquired = err;
  note_callback(l, "acquired");
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->released != NOT_YET)
    abort();
  l->released = err;
  note_callback(l, "released");
}

static void on_verified(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->verified != NOT_YET)
    abort();
  l->verified = err;
  note_callback(l, "verified");
}

void locker_clear(locker *l, test_client *p)
{
  *l = (locker){
      .p = p, .acquired = NOT_YET, .released = NOT_YET, .verified = NOT_YET};
}

bool locker_try_init(locker *l, test_client *p, const lk_lock_config *config)
{
  lk_lock_config c = {.size = sizeof c};

  locker_clear(l, p);
  if (config != NULL)
    c = *config;
  c.on_event = locker_on_event;
  c.arg = l;
  int err = lk_lock_new(&l->lock, p->link->client, LOCKS, &c);

  if (err != 0 && err != LK_ERR_NO_MEMORY)
    abort();
  return err == 0;
}

void locker_init(locker *l, test_client *p, const lk_lock_config *config)
{
  if (!locker_try_init(l, p, config))
    abort();
}

int locker_acquire(locker *l, int64_t timeout_ms)
{
  l->acquired = NOT_YET;
  return lk_lock_acquire(l->lock, timeout_ms, on_acquired, l);
}

int locker_try(locker *l)
{
  l->acquired = NOT_YET;
  return lk_lock_try(l->lock, on_acquired, l);
}

int locker_try_with_next_connection(locker *l)
{
  l->acquired = NOT_YET;
  return lk_lock_try_until(l->lock, LK_NO_LIMIT, on_acquired, l);
}

void locker_request(locker *l)
{
  if (locker_acquire(l, LK_NO_LIMIT) != 0)
    abort();
  model_turn(l->p->link->server);
}

int locker_try_release(locker *l)
{
  l->released = NOT_YET;
  return lk_lock_release(l->lock, on_released, l);
}

void locker_release(locker *l)
{
  if (locker_try_release(l) != 0)
    abort();
}

int locker_verify(locker *l)
{
  l->verified = NOT_YET;
  return lk_lock_verify(l->lock, on_verified, l);
}

void locker_free(locker *l)
{
  if (l->rw != NULL)
    lk_rwlock_free(l->rw);
  else
    lk_lock_free(l->lock);
  l->lock = NULL;
  l->rw = NULL;
}

bool locker_check_events(locker *l, const char *text)
{
  bool same = strcmp(l->events, text) == 0;

  if (!same)
    fprintf(stderr, "events:   %s\nexpected: %s\n", l->events, text);
  l->events[0] = '\0';
  return same;
}

/* ---- two clients and their locks ---------------------------------------- */

void lock_pair_begin(lock_pair *lp, const lk_lease_config *lease_config,
                     const lk_lock_config *lock_config)
{
  model_init(&lp->server);
  lock_pair_open(lp, lease_config, lock_config);
}

void lock_pair_open(lock_pair *lp, const lk_lease_config *lease_config,
                    const lk_lock_config *lock_config)
{
  test_client_init(&lp->one, &lp->server, lease_config);
  test_client_init(&lp->two, &lp->server, lease_config);
  model_create(&lp->server, "/locks");
  model_create(&lp->server, LOCKS);
  locker_init(&lp->a, &lp->one, lock_config);
  locker_init(&lp->b, &lp->two, lock_config);
  model_turn(&lp->server);
}

void lock_pair_end(lock_pair *lp)
{
  locker_free(&lp->a);
  locker_free(&lp->b);
  model_run(&lp->server, T); /* so that a disconnected client reconnects, and
                               deletes its node */
  if (model_children(&lp->server, LOCKS) != 0)
    abort();
  test_client_free(&lp->one);
  test_client_free(&lp->two);
  model_done(&lp->server);
}

static void other_path(char *path, size_t size, int i)
{
  snprintf(path, size, LOCKS "/other-%d", i);
}

void lock_pair_add_others(lock_pair *lp, int count)
{
  char path[64];

  for (int i = 0; i < count; i++) {
    other_path(path, sizeof path, i);
    model_create(&lp->server, path);
  }
}

void lock_pair_delete_others(lock_pair *lp, int count)
{
  char path[64];

  for (int i = 0; i < count; i++) {
    other_path(path, sizeof path, i);
    model_delete(&lp->server, path);
  }
}

void lock_pair_hold(lock_pair *lp)
{
  locker_request(&lp->a);
  if (lp->a.acquired != 0)
    abort();
  lp->one.link->log[0] = '\0';
}

void lock_pair_queue(lock_pair *lp)
{
  lock_pair_hold(lp);
  locker_request(&lp->b);
  if (lp->b.acquired != NOT_YET ||
      !locker_check_events(&lp->b, "waiting 1 0000000000\n"))
    abort();
  lp->two.link->log[0] = '\0';
}
