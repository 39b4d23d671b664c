/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/stage.h"

stage st;

/* locker_on_event() expects nodes of queues; single nodes have other names. */
static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  lk_lock_event copy = *e;

  if (e->type == LK_LOCK_EVENT_WAITING)
    copy.node = "its holder"; /* the last ten characters are shown */
  locker_on_event(lock, &copy, arg);
}

lk_lock_config stage_config(lk_lock_config options)
{
  options.size = sizeof options;
  options.layout = st.kind->config.layout;
  options.prefix = st.kind->config.prefix;
  options.local_queue = st.kind->config.local_queue;
  return options;
}

bool stage_try_init(locker *l, party *p, const lk_lock_config *options)
{
  lk_lock_config c = *options;

  locker_clear(l, p);
  c.on_event = on_event;
  c.arg = l;
  int err = st.kind->make(l, p == &st.theirs, &c);

  ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
  return err == 0;
}

void stage_begin_empty(const kind *k, size_t dirs)
{
  st.kind = k;
  model_init(&st.server);
  for (size_t i = 0; i < dirs && k->dirs[i] != NULL; i++)
    model_create(&st.server, k->dirs[i]);
  if (dirs > 1 && k->limit != NULL)
    model_set(&st.server, k->dirs[1], k->limit);
}

void stage_begin_with(const kind *k, lk_lock_config options)
{
  stage_begin_empty(k, SIZE_MAX);
  options = stage_config(options);
  party_join(&st.ours, &st.server, NULL);
  party_join(&st.theirs, &st.server, NULL);
  ck_assert(stage_try_init(&st.own, &st.ours, &options));
  ck_assert(stage_try_init(&st.rival, &st.theirs, &options));
  model_turn(&st.server);
  stage_forget();
}

void stage_begin(const kind *k)
{
  stage_begin_with(k, (lk_lock_config){0});
}

static void end_party(party *p)
{
  if (p->link->client != NULL) {
    ck_assert_uint_eq(lk_lease_pending_cleanups(p->link->client), 0);
    ck_assert_uint_eq(model_watches(p->link), 0);
  }
  party_leave(p);
}

void stage_end(void)
{
  locker_free(&st.own);
  locker_free(&st.rival);
  model_run(&st.server, T);
  ck_assert_uint_eq(stage_nodes(), 0);
  end_party(&st.ours);
  end_party(&st.theirs);
  model_done(&st.server);
}

void stage_end_sessions(void)
{
  model_expire(&st.server, st.ours.link->last_session);
  model_expire(&st.server, st.theirs.link->last_session);
  stage_end();
}

size_t stage_nodes(void)
{
  size_t count = 0;

  for (size_t i = 0; st.kind->queues[i] != NULL; i++)
    count += model_children(&st.server, st.kind->queues[i]);
  return count;
}

const char *stage_node_of(const party *p, size_t i)
{
  const char *path = NULL;

  for (size_t q = 0; st.kind->queues[q] != NULL; q++) {
    const char *dir = st.kind->queues[q];

    for (size_t n = 0; n < model_children(&st.server, dir); n++) {
      path = model_child(&st.server, dir, n);
      if (model_node(&st.server, path)->stat.ephemeral_owner ==
              p->link->last_session &&
          i-- == 0)
        return path;
    }
  }
  return NULL;
}

void stage_want(locker *l)
{
  ck_assert_int_eq(locker_want(l, -1), 0);
  model_turn(&st.server);
}

void stage_hold(locker *l)
{
  stage_want(l);
  ck_assert_int_eq(l->acquired, 0);
  ck_assert(lk_lock_ok(l->lock));
}

void stage_release(locker *l)
{
  locker_release(l);
  model_turn(&st.server);
  ck_assert_int_eq(l->released, 0);
}

void stage_forget(void)
{
  st.ours.link->log[0] = '\0';
  st.theirs.link->log[0] = '\0';
  st.own.told[0] = '\0';
  st.rival.told[0] = '\0';
}

void stage_wait(void)
{
  char text[64];

  stage_hold(&st.rival);
  stage_want(&st.own);
  ck_assert_int_eq(st.own.acquired, NOT_YET);
  snprintf(text, sizeof text, "waiting %zu its holder\n", st.kind->position);
  ck_assert(locker_told(&st.own, text));
  stage_forget();
}

void stage_cut(party *p)
{
  st.server.down = true;
  model_drop(p->link);
  model_turn(&st.server);
}

void stage_reconnect(void)
{
  st.server.down = false;
  model_run(&st.server, T / 4);
}

void stage_expire(party *p)
{
  stage_cut(p);
  model_expire(&st.server, p->link->last_session);
  stage_reconnect();
}
