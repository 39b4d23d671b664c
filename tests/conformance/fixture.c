/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/fixture.h"

fixture fx;

/* locker_on_event() logs the last ten characters of the predecessor's node,
   which are its sequence number. The node of a single-node lock has no number,
   so another text is logged for all kinds. */
static void on_event(lk_lock *lock, const lk_lock_event *e, void *arg)
{
  lk_lock_event copy = *e;

  if (e->type == LK_LOCK_EVENT_WAITING)
    copy.node = "its holder"; /* ten characters */
  locker_on_event(lock, &copy, arg);
}

lk_lock_config fixture_config(lk_lock_config options)
{
  options.size = sizeof options;
  options.layout = fx.kind->config.layout;
  options.prefix = fx.kind->config.prefix;
  return options;
}

bool fixture_try_make(locker *l, test_client *p, const lk_lock_config *options)
{
  lk_lock_config c = *options;

  locker_clear(l, p);
  c.on_event = on_event;
  c.arg = l;
  bool is_rival = p == &fx.rival_client;
  int err = fx.kind->make(l, is_rival, &c);

  ck_assert(err == 0 || err == LK_ERR_NO_MEMORY);
  return err == 0;
}

void fixture_begin_empty(const kind *k)
{
  fx.kind = k;
  model_init(&fx.server);
}

void fixture_begin_server(const kind *k)
{
  fixture_begin_empty(k);
  for (size_t i = 0; k->dirs[i] != NULL; i++)
    model_create(&fx.server, k->dirs[i]);
  if (k->limit != NULL)
    model_set(&fx.server, k->dirs[1], k->limit);
}

void fixture_begin_with(const kind *k, lk_lock_config options)
{
  fixture_begin_server(k);
  options = fixture_config(options);
  test_client_init(&fx.own_client, &fx.server, NULL);
  test_client_init(&fx.rival_client, &fx.server, NULL);
  ck_assert(fixture_try_make(&fx.own, &fx.own_client, &options));
  ck_assert(fixture_try_make(&fx.rival, &fx.rival_client, &options));
  model_turn(&fx.server);
  fixture_clear_logs();
}

void fixture_begin(const kind *k)
{
  fixture_begin_with(k, (lk_lock_config){0});
}

static void end_client(test_client *p)
{
  if (p->link->client != NULL) {
    ck_assert_uint_eq(lk_lease_pending_cleanups(p->link->client), 0);
    ck_assert_uint_eq(model_watches(p->link), 0);
  }
  test_client_free(p);
}

void fixture_end(void)
{
  locker_free(&fx.own);
  locker_free(&fx.rival);
  model_run(&fx.server, T);
  ck_assert_uint_eq(fixture_count_nodes(), 0);
  end_client(&fx.own_client);
  end_client(&fx.rival_client);
  model_done(&fx.server);
}

void fixture_end_sessions(void)
{
  model_expire(&fx.server, fx.own_client.link->last_session);
  model_expire(&fx.server, fx.rival_client.link->last_session);
  fixture_end();
}

size_t fixture_count_nodes(void)
{
  size_t count = 0;

  for (size_t i = 0; fx.kind->queues[i] != NULL; i++)
    count += model_children(&fx.server, fx.kind->queues[i]);
  return count;
}

const char *fixture_node_of(const test_client *p, size_t i)
{
  const char *path = NULL;

  for (size_t q = 0; fx.kind->queues[q] != NULL; q++) {
    const char *dir = fx.kind->queues[q];

    for (size_t n = 0; n < model_children(&fx.server, dir); n++) {
      path = model_child(&fx.server, dir, n);
      if (model_node(&fx.server, path)->stat.ephemeral_owner !=
          p->link->last_session)
        continue;
      if (i == 0)
        return path;
      i--;
    }
  }
  return NULL;
}

uint64_t fixture_newest_czxid(const test_client *p)
{
  int64_t newest = 0;
  const char *path;

  for (size_t i = 0; (path = fixture_node_of(p, i)) != NULL; i++) {
    const sim_node *n = model_node(&fx.server, path);

    if (n->stat.czxid > newest)
      newest = n->stat.czxid;
  }
  return (uint64_t)newest;
}

void fixture_hold(locker *l)
{
  locker_request(l);
  ck_assert_int_eq(l->acquired, 0);
  ck_assert(lk_lock_ok(l->lock));
}

void fixture_release(locker *l)
{
  locker_release(l);
  model_turn(&fx.server);
  ck_assert_int_eq(l->released, 0);
}

void fixture_clear_logs(void)
{
  fx.own_client.link->log[0] = '\0';
  fx.rival_client.link->log[0] = '\0';
  fx.own.events[0] = '\0';
  fx.rival.events[0] = '\0';
}

void fixture_wait_behind_rival(void)
{
  char text[64];

  fixture_hold(&fx.rival);
  locker_request(&fx.own);
  ck_assert_int_eq(fx.own.acquired, NOT_YET);
  snprintf(text, sizeof text, "waiting %zu its holder\n", fx.kind->position);
  ck_assert(locker_check_events(&fx.own, text));
  fixture_clear_logs();
}

void fixture_break_connection(test_client *p)
{
  fx.server.down = true;
  model_drop(p->link);
  model_turn(&fx.server);
}

void fixture_reconnect(void)
{
  fx.server.down = false;
  model_run(&fx.server, T / 4); /* longer than the reconnect takes */
}

void fixture_expire(test_client *p)
{
  fixture_break_connection(p);
  model_expire(&fx.server, p->link->last_session);
  fixture_reconnect();
}
