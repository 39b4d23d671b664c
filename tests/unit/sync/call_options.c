/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The options of a call of the blocking interface: watches and repetition. */

#include <latchkey/sync.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "support/every_call.h"
#include "support/suite.h"
#include "unit/fake/scripted.h"

#define STAT_BODY                                                          \
  " long=101 long=102 long=103 long=104 int=5 int=6 int=7 long=108 int=9 " \
  "int=10 long=111"

static const int64_t limit_ms = 10000;

/* For scripted_set(): which request is lost with its connection. */
enum { NO_REQUEST = 0, FIRST_REQUEST = 1 };

static scripted zk;
static lk_sync_client *client;

static void start(void)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .session_timeout_ms = 6000};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  scripted_start(&zk);
  client_config.hosts = zk.loopback.hosts;
  ck_assert_int_eq(lk_sync_client_new(&client, &config), 0);
}

static void stop(void)
{
  lk_sync_client_free(client);
  scripted_stop(&zk);
}

/* ---- calls --------------------------------------------------------------- */

static int do_exists(const lk_sync_call *call)
{
  return lk_sync_exists(client, NULL, "/a", call);
}

static int do_get(const lk_sync_call *call)
{
  return lk_sync_get(client, NULL, "/a", call);
}

static int do_children(const lk_sync_call *call)
{
  return lk_sync_get_children(client, NULL, "/a", call);
}

static int do_config(const lk_sync_call *call)
{
  return lk_sync_get_config(client, NULL, call);
}

static int do_add_watch(const lk_sync_call *call)
{
  return lk_sync_add_watch(client, "/a", LK_WATCH_RECURSIVE, call);
}

/* A call that sets a watch. */
typedef struct watching_call {
  int (*call)(const lk_sync_call *call);
  const char *expected_request;
  const char *replies[SCRIPTED_REPLIES];
  const char *path; /* of the watch */
} watching_call;

static const watching_call watching_calls[] = {
    {do_exists, "exists path=\"/a\" watch=1\n", {"7 ok" STAT_BODY}, "/a"},
    {do_exists, "exists path=\"/a\" watch=1\n", {"7 NO_NODE"}, "/a"},
    {do_get,
     "getData path=\"/a\" watch=1\n",
     {"7 ok \"data\"" STAT_BODY},
     "/a"},
    {do_children,
     "getChildren2 path=\"/a\" watch=1\n",
     {"7 ok count=0" STAT_BODY},
     "/a"},
    {do_config,
     "getData path=\"/zookeeper/config\" watch=1\n",
     {"7 ok \"data\"" STAT_BODY},
     "/zookeeper/config"},
    {do_add_watch, "addWatch path=\"/a\" mode=1\n", {"7 ok int=0"}, "/a"},
};

enum { WATCHING_CALLS = sizeof watching_calls / sizeof watching_calls[0] };

static const watching_call *
watching_call_of(int (*function)(const lk_sync_call *call))
{
  const watching_call *found = watching_calls;

  while (found->call != function)
    found++;
  return found;
}

/* ---- watch events -------------------------------------------------------- */

static struct {
  sem_t arrivals; /* counts the events */
  lk_event_type type;
  int err;
  char path[64];
  lk_sync_client *client;
} last_event;

static void on_event(lk_sync_client *c, const lk_event *event, void *arg)
{
  last_event.client = c;
  last_event.type = event->type;
  last_event.err = event->err;
  snprintf(last_event.path, sizeof last_event.path, "%.*s",
           (int)event->path.len, (const char *)event->path.at);
  sem_post(arg);
}

static void await_event(lk_event_type type, int err, const char *path)
{
  struct timespec end;

  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += limit_ms / 1000;
  ck_assert_int_eq(sem_timedwait(&last_event.arrivals, &end), 0);
  ck_assert_ptr_eq(last_event.client, client);
  ck_assert_int_eq(last_event.type, type);
  ck_assert_int_eq(last_event.err, err);
  ck_assert_str_eq(last_event.path, path);
}

static bool gets_no_more_events(void)
{
  usleep(20000);
  return sem_trywait(&last_event.arrivals) != 0;
}

enum watch_end { UNTIL_CLOSE, UNTIL_DISCONNECT };

/* Makes a call that sets a watch, which the server has registered when this
 * returns. */
static lk_sync_watch *start_watch(const watching_call *r, enum watch_end end)
{
  lk_sync_watch *w = NULL;
  lk_sync_call call = {.size = sizeof call,
                       .timeout_ms = limit_ms,
                       .until_disconnect = end == UNTIL_DISCONNECT,
                       .on_event = on_event,
                       .watch_arg = &last_event.arrivals,
                       .watch = &w};

  start();
  ck_assert_int_eq(sem_init(&last_event.arrivals, 0, 0), 0);
  scripted_set(&zk, r->replies, NO_REQUEST);
  int err = r->call(&call);

  ck_assert_msg(err == 0 || err == LK_ERR_NO_NODE, "%s: %d",
                r->expected_request, err);
  ck_assert(scripted_was_asked(&zk, r->expected_request));
  ck_assert_ptr_nonnull(w);
  return w;
}

START_TEST(watch_of_every_call_is_set_and_gets_its_event)
{
  for (size_t i = 0; i < WATCHING_CALLS; i++) {
    bool is_persistent = watching_calls[i].call == do_add_watch;
    bool is_of_children = watching_calls[i].call == do_children;
    lk_event_type type = is_of_children ? LK_EVENT_CHILDREN : LK_EVENT_CHANGED;
    lk_sync_watch *w = start_watch(&watching_calls[i], UNTIL_CLOSE);

    scripted_send_event(&zk, (int32_t)type, watching_calls[i].path);
    await_event(type, 0, watching_calls[i].path);
    if (is_persistent) {
      scripted_send_event(&zk, LK_EVENT_DELETED, "/a/b");
      await_event(LK_EVENT_DELETED, 0, "/a/b");
    }
    ck_assert(gets_no_more_events());
    lk_sync_watch_free(w);
    stop();
  }
}
END_TEST

START_TEST(watch_that_is_freed_gets_no_event)
{
  for (size_t i = 0; i < WATCHING_CALLS; i++) {
    lk_sync_watch *w = start_watch(&watching_calls[i], UNTIL_CLOSE);

    lk_sync_watch_free(w);
    scripted_send_event(&zk, LK_EVENT_CHANGED, watching_calls[i].path);
    ck_assert(gets_no_more_events());
    stop();
  }
}
END_TEST

static atomic_bool callback_has_returned;

static void on_event_slowly(lk_sync_client *c, const lk_event *event, void *arg)
{
  (void)c;
  (void)event;
  sem_post(arg);
  usleep(50000);
  callback_has_returned = true;
}

START_TEST(free_of_a_watch_waits_for_its_callback)
{
  lk_sync_watch *w;
  const lk_sync_call call = {.size = sizeof call,
                             .on_event = on_event_slowly,
                             .watch_arg = &last_event.arrivals,
                             .watch = &w};

  start();
  ck_assert_int_eq(sem_init(&last_event.arrivals, 0, 0), 0);
  scripted_set(&zk, watching_call_of(do_exists)->replies, NO_REQUEST);
  ck_assert_int_eq(do_exists(&call), 0);
  scripted_send_event(&zk, LK_EVENT_CHANGED, "/a");
  ck_assert_int_eq(sem_wait(&last_event.arrivals), 0);
  lk_sync_watch_free(w);
  ck_assert(callback_has_returned);
  stop();
}
END_TEST

static lk_sync_watch *freed_watch;

static void on_event_free(lk_sync_client *c, const lk_event *event, void *arg)
{
  (void)c;
  (void)event;
  lk_sync_watch_free(freed_watch);
  sem_post(arg);
}

START_TEST(watch_that_its_callback_frees_gets_one_event)
{
  int (*const calls[])(const lk_sync_call *call) = {do_get, do_add_watch};
  const lk_sync_call call = {.size = sizeof call,
                             .on_event = on_event_free,
                             .watch_arg = &last_event.arrivals,
                             .watch = &freed_watch};

  for (size_t i = 0; i < 2; i++) {
    start();
    ck_assert_int_eq(sem_init(&last_event.arrivals, 0, 0), 0);
    scripted_set(&zk, watching_call_of(calls[i])->replies, NO_REQUEST);
    ck_assert_int_eq(calls[i](&call), 0);
    scripted_send_event(&zk, LK_EVENT_CHANGED, "/a");
    ck_assert_int_eq(sem_wait(&last_event.arrivals), 0);
    scripted_send_event(&zk, LK_EVENT_CHANGED, "/a");
    ck_assert(gets_no_more_events());
    stop();
  }
}
END_TEST

START_TEST(watch_until_disconnect_ends_with_the_connection)
{
  for (size_t i = 0; i < WATCHING_CALLS; i++) {
    lk_sync_watch *w = start_watch(&watching_calls[i], UNTIL_DISCONNECT);

    loopback_drop(&zk.loopback);
    await_event(LK_EVENT_ENDED, LK_ERR_CONNECTION_LOSS, watching_calls[i].path);
    lk_sync_watch_free(w);
    stop();
  }
}
END_TEST

START_TEST(watch_without_until_disconnect_ends_with_the_client)
{
  for (size_t i = 0; i < WATCHING_CALLS; i++) {
    lk_sync_watch *w = start_watch(&watching_calls[i], UNTIL_CLOSE);

    ck_assert_int_eq(lk_sync_client_close(client), 0);
    await_event(LK_EVENT_ENDED, LK_ERR_CLOSED, watching_calls[i].path);
    lk_sync_watch_free(w);
    stop();
  }
}
END_TEST

/* ---- repetition ---------------------------------------------------------- */

START_TEST(read_is_repeated_only_if_requested)
{
  static const char *const reads[] = {
      "exists",     "get",         "get_children",
      "get_config", "server_sync", "multi_read",
      "get_acl",    "who_am_i",    "count_descendants",
      "ephemerals",
  };
  lk_sync_call call = {.size = sizeof call, .timeout_ms = limit_ms};

  start();
  const every_object o = {.client = client, .path = "/a", .call = &call};

  for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
    const every_call *c = every_call_named(reads[i]);

    scripted_set(&zk, NULL, FIRST_REQUEST);
    call.repeat = false;
    ck_assert_int_eq(c->call(&o), LK_ERR_CONNECTION_LOSS);
    scripted_set(&zk, NULL, FIRST_REQUEST);
    call.repeat = true;
    /* A request for which the test gives no reply gets NO_AUTH. */
    ck_assert_int_eq(c->call(&o), LK_ERR_NO_AUTH);
    ck_assert_uint_eq(zk.requests, 2);
  }
  stop();
}
END_TEST

SUITE("call_options", watch_of_every_call_is_set_and_gets_its_event,
      watch_that_is_freed_gets_no_event, free_of_a_watch_waits_for_its_callback,
      watch_that_its_callback_frees_gets_one_event,
      watch_until_disconnect_ends_with_the_connection,
      watch_without_until_disconnect_ends_with_the_client,
      read_is_repeated_only_if_requested)
