/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Tests with an ensemble: its configuration, nodes with a TTL, and persistent
 * watches when a server dies. Each test runs without a chroot and with one. */

#include "live/client/world.h"
#include "support/server_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- configuration ------------------------------------------------------ */

static lk_watch *config_watch;
static bool config_changed;
static char changed_path[64];

static void on_config_event(lk_client *c, lk_watch *w, const lk_event *event,
                            void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_ptr_eq(w, config_watch);
  ck_assert_int_eq(event->type, LK_EVENT_CHANGED);
  snprintf(changed_path, sizeof changed_path, "%s",
           (const char *)event->path.at);
  config_changed = true;
}

/* The result of the last request for the configuration. */
static size_t member_count;
static int64_t config_version;
static bool config_done;
static int config_err;

static void on_config(lk_client *c, int err, const lk_bytes *data,
                      const lk_stat *stat, void *arg)
{
  lk_server_entry m;

  (void)c;
  (void)stat;
  (void)arg;
  member_count = 0;
  config_err = err;
  if (err == 0) {
    lk_bytes text = *data;

    ck_assert_int_eq(lk_config_version(text, &config_version), 0);
    while (lk_config_next(&text, &m) == 1)
      member_count++;
  }
  config_done = true;
}

/* `call_err` is what the call has returned that queues the request. */
static int wait_for_config(int call_err)
{
  if (call_err != 0)
    return call_err;
  wait_until(&config_done);
  return config_err;
}

/* `call`: NULL, or it also sets a watch. */
static int read_config(const lk_call *call)
{
  config_done = false;
  return wait_for_config(lk_get_config(here, call, on_config, NULL));
}

static int remove_member(const char *id, int64_t expected_version)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = id, .version = expected_version};

  config_done = false;
  return wait_for_config(lk_reconfig(here, &change, NULL, on_config, NULL));
}

/* The number of the server to which `here` is connected: its place in the list
 * of addresses, from 1 on. */
static int server_of_here(void)
{
  const char *address = strstr(zk.connect, lk_client_server(here));
  int n = 1;

  ck_assert_ptr_nonnull(address);
  for (const char *at = zk.connect; at < address; at++) {
    if (*at == ',')
      n++;
  }
  return n;
}

/* The id of a follower to which `here` is not connected. */
static const char *another_follower(void)
{
  static char id[12];
  int leader = server_in_mode(&zk, "leader"), n = 1;

  while (n == leader || n == server_of_here())
    n++;
  snprintf(id, sizeof id, "%d", n);
  return id;
}

START_TEST(configuration_is_read_watched_and_changed)
{
  lk_call call = {
      .size = sizeof call, .on_event = on_config_event, .watch = &config_watch};

  connect_here(with_chroot(_i));
  if (with_chroot(_i)) {
    /* The turn without a chroot was first, and has removed a member. */
    ck_assert_int_eq(read_config(NULL), 0);
    ck_assert_uint_eq(member_count, 2);
    return;
  }
  ck_assert_int_eq(read_config(&call), 0);
  ck_assert_uint_eq(member_count, 3);
  ck_assert_int_eq(remove_member("1", -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "super:secret"), 0);
  ck_assert_int_eq(remove_member("1", config_version + 1), LK_ERR_BAD_VERSION);
  ck_assert(!config_changed);
  ck_assert_int_eq(remove_member(another_follower(), config_version), 0);
  ck_assert_uint_eq(member_count, 2);
  wait_until(&config_changed);
  ck_assert_str_eq(changed_path, "/zookeeper/config");
}
END_TEST

/* ---- nodes with a TTL ---------------------------------------------------- */

/* The servers know the opcode, and refuse the request, since
 * extendedTypesEnabled is false. The error does not show an unknown opcode, so
 * the client sends a second request, too. */
START_TEST(ttl_is_refused_without_extended_types)
{
  connect_here(with_chroot(_i));
  for (int i = 0; i < 2; i++) {
    completion a = {0};

    ck_assert_int_eq(lk_create_ttl(here, "/t", lk_text(""), NULL, LK_PERSISTENT,
                                   1000, NULL, on_created, &a),
                     0);
    wait_until(&a.done);
    ck_assert_int_eq(a.err, LK_ERR_UNIMPLEMENTED);
  }
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

/* ---- persistent watches -------------------------------------------------- */

static bool tree_reregistered;
static unsigned created_count;

static void on_tree_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  if (event->type == LK_EVENT_REREGISTERED)
    tree_reregistered = true;
  if (event->type == LK_EVENT_CREATED)
    created_count++;
}

START_TEST(recursive_watch_continues_at_another_server)
{
  lk_call call = {.size = sizeof call, .on_event = on_tree_event};
  completion a = {0};

  connect_here(with_chroot(_i));
  tree_reregistered = false;
  created_count = 0;
  ck_assert_int_eq(
      lk_add_watch(here, "/t", LK_WATCH_RECURSIVE, &call, on_done, &a), 0);
  wait_until(&a.done);
  ck_assert_int_eq(a.err, 0);
  ck_assert_int_eq(create(here, "/t", "", LK_PERSISTENT), 0);
  ck_assert_uint_eq(created_count, 1);
  const int killed = server_of_here();

  server_ask(&zk, "kill %d", killed);
  wait_until(&tree_reregistered);
  ck_assert_int_ne(server_of_here(), killed);
  server_ask(&zk, "start %d", killed);
  server_ask(&zk, "wait");
  wait_for_state(here, LK_STATE_CONNECTED);
  /* The start of the server may break the connection again. */
  while (create(here, "/t/x", "", LK_EPHEMERAL) != 0)
    wait_for_state(here, LK_STATE_CONNECTED);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  /* A create whose reply was lost may have been executed, too. */
  ck_assert_uint_ge(created_count, 2);
  ck_assert_int_eq(delete_node(here, "/t/x", -1), 0);
  ck_assert_int_eq(delete_node(here, "/t", -1), 0);
}
END_TEST

int main(void)
{
  char digest[64], property[128];
  Suite *suite = suite_create("client_ensemble");
  TCase *t = tcase_create("ensemble");
  SRunner *runner;
  int failed;

  lk_acl_digest(digest, sizeof digest, "super:secret");
  snprintf(property, sizeof property,
           "zookeeper.DigestAuthenticationProvider.superDigest=%s", digest);
  const char *const options[] = {
      "-n",         "3",
      "--config",   "reconfigEnabled=true",
      "--property", "zookeeper.extendedTypesEnabled=false",
      "--property", property,
      NULL};

  world_begin(options);
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, world_set_up, world_tear_down);
  add_test_without_and_with_chroot(t, ttl_is_refused_without_extended_types);
  if (server_has(SERVER_PERSISTENT_WATCHES))
    add_test_without_and_with_chroot(
        t, recursive_watch_continues_at_another_server);
  add_test_without_and_with_chroot(t,
                                   configuration_is_read_watched_and_changed);
  suite_add_tcase(suite, t);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  server_end(&zk);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
