/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void on_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  party *p = arg;
  size_t at = strlen(p->left_behind);

  if (c != p->link->client)
    abort();
  snprintf(p->left_behind + at, sizeof p->left_behind - at, "%s %s\n",
           lk_error_name(err), path);
}

static void on_log(void *arg, int level, int err, const char *text)
{
  party *p = arg;

  (void)err;
  (void)text;
  p->warnings += level == LK_LOG_WARNING;
  p->errors += level == LK_LOG_ERROR;
}

bool party_try_join(party *p, model_server *s, const lk_lease_config *config)
{
  lk_client_config cc = {.size = sizeof cc,
                         .session_timeout_ms = T,
                         .mem = &p->mem.mem,
                         .log = on_log,
                         .log_arg = p};
  lk_lease_config kc = {.size = sizeof kc};

  if (config != NULL)
    kc = *config;
  kc.left_behind = on_left_behind;
  kc.arg = p;
  p->warnings = 0;
  p->errors = 0;
  p->left_behind[0] = '\0';
  p->link = model_client(s, &cc);
  if (p->link == NULL)
    return false;
  int err = lk_lease_configure(p->link->client, &kc);

  if (err != 0 && err != LK_ERR_NO_MEMORY)
    abort();
  return err == 0;
}

void party_join(party *p, model_server *s, const lk_lease_config *config)
{
  failing_mem_init(&p->mem);
  if (!party_try_join(p, s, config))
    abort();
}

void party_leave(party *p)
{
  if (p->link != NULL)
    lk_client_free(p->link->client);
  if (p->mem.live != 0) {
    fprintf(stderr, "%zu blocks are left\n", p->mem.live);
    abort();
  }
}

/* ---- locks ------------------------------------------------------------- */

static void say(locker *l, const char *text)
{
  size_t at = strlen(l->told);

  if (at + strlen(text) + 2 > sizeof l->told)
    abort();
  snprintf(l->told + at, sizeof l->told - at, "%s\n", text);
}

static void end(locker *l, const char *text)
{
  l->calls++;
  if (l->react != NULL)
    l->react(l, text);
}

static const char *short_node(const char *path)
{
  return path + strlen(path) - 10;
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
             short_node(e->node));
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
  say(l, text);
  end(l, text);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->acquired != NOT_YET)
    abort();
  l->acquired = err;
  end(l, "acquired");
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->released != NOT_YET)
    abort();
  l->released = err;
  end(l, "released");
}

static void on_verified(lk_lock *lock, int err, void *arg)
{
  locker *l = arg;

  if (lock != l->lock || l->verified != NOT_YET)
    abort();
  l->verified = err;
  end(l, "verified");
}

void locker_clear(locker *l, party *p)
{
  *l = (locker){.p = p,
                .acquired = NOT_YET,
                .released = NOT_YET,
                .verified = NOT_YET};
}

bool locker_try_init(locker *l, party *p, const lk_lock_config *config)
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

void locker_init(locker *l, party *p, const lk_lock_config *config)
{
  if (!locker_try_init(l, p, config))
    abort();
}

int locker_want(locker *l, int64_t timeout_ms)
{
  l->acquired = NOT_YET;
  return lk_lock_acquire(l->lock, timeout_ms, on_acquired, l);
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

bool locker_told(locker *l, const char *text)
{
  bool same = strcmp(l->told, text) == 0;

  if (!same)
    fprintf(stderr, "told: %s\nnot:  %s\n", l->told, text);
  l->told[0] = '\0';
  return same;
}

/* ---- scenes ------------------------------------------------------------ */

void scene_begin(scene *sc, const lk_lease_config *kc, const lk_lock_config *lc)
{
  model_init(&sc->server);
  party_join(&sc->one, &sc->server, kc);
  party_join(&sc->two, &sc->server, kc);
  model_create(&sc->server, "/locks");
  model_create(&sc->server, LOCKS);
  locker_init(&sc->a, &sc->one, lc);
  locker_init(&sc->b, &sc->two, lc);
  model_turn(&sc->server);
}

void scene_end(scene *sc)
{
  locker_free(&sc->a);
  locker_free(&sc->b);
  model_run(&sc->server, T); /* whoever is cut off comes back */
  if (model_children(&sc->server, LOCKS) != 0)
    abort();
  party_leave(&sc->one);
  party_leave(&sc->two);
  model_done(&sc->server);
}

void scene_hold(scene *sc)
{
  if (locker_want(&sc->a, -1) != 0)
    abort();
  model_turn(&sc->server);
  if (sc->a.acquired != 0)
    abort();
  sc->one.link->log[0] = '\0';
}

void scene_queue(scene *sc)
{
  scene_hold(sc);
  if (locker_want(&sc->b, -1) != 0)
    abort();
  model_turn(&sc->server);
  if (sc->b.acquired != NOT_YET ||
      !locker_told(&sc->b, "waiting 1 0000000000\n"))
    abort();
  sc->two.link->log[0] = '\0';
}
