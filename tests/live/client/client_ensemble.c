/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Tests with an ensemble: its configuration, and persistent watches when a
 * server dies. Each test runs without a chroot (_i is 0) and with one. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- configuration ------------------------------------------------------ */

static lk_watch *watch;
static bool changed;
static char changed_path[64];

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)arg;
  ck_assert_ptr_eq(w, watch);
  ck_assert_int_eq(event->type, LK_EVENT_CHANGED);
  snprintf(changed_path, sizeof changed_path, "%s",
           (const char *)event->path.at);
  changed = true;
}

/* The result of the last request for the configuration. */
static size_t members; /* their number */
static int64_t version;
static bool config_done;
static int config_err;

static void on_config(lk_client *c, int err, const lk_bytes *data,
                      const lk_stat *stat, void *arg)
{
  lk_member m;

  (void)c;
  (void)stat;
  (void)arg;
  members = 0;
  config_err = err;
  if (err == 0) {
    lk_bytes text = *data;

    ck_assert_int_eq(lk_config_version(text, &version), 0);
    while (lk_config_next(&text, &m) == 1)
      members++;
  }
  config_done = true;
}

static int wait_for_config(int refused)
{
  if (refused == 0)
    wait_until(&config_done);
  return refused != 0 ? refused : config_err;
}

static int read_config(const lk_call *call)
{
  config_done = false;
  return wait_for_config(lk_get_config(here, call, on_config, NULL));
}

static int remove_member(const char *id, int64_t expected)
{
  lk_reconfiguration change = {
      .size = sizeof change, .leaving = id, .version = expected};

  config_done = false;
  return wait_for_config(lk_reconfig(here, &change, NULL, on_config, NULL));
}

/* The number of a follower to which `here` is not connected. */
static const char *another_follower(void)
{
  static char id[12];
  int leader = server_in_mode(&zk, "leader"), n = 1;

  for (char *at = zk.connect; at != NULL; at = strchr(at, ','), n++) {
    at += *at == ',';
    if (n != leader &&
        strncmp(at, lk_client_server(here), strcspn(at, ",")) != 0) {
      snprintf(id, sizeof id, "%d", n);
      return id;
    }
  }
  ck_abort_msg("no such follower");
  return NULL;
}

START_TEST(configuration_is_read_watched_and_changed)
{
  lk_call call = {.size = sizeof call, .on_event = on_event, .watch = &watch};

  world_enter(_i);
  ck_assert_int_eq(read_config(_i == 0 ? &call : NULL), 0);
  ck_assert_uint_eq(members, _i == 0 ? 3 : 2);
  if (_i == 1)
    return; /* the turn without chroot has removed a member already */
  ck_assert_int_eq(remove_member("1", -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "super:secret"), 0);
  ck_assert_int_eq(remove_member("1", version + 1), LK_ERR_BAD_VERSION);
  ck_assert(!changed);
  ck_assert_int_eq(remove_member(another_follower(), version), 0);
  ck_assert_uint_eq(members, 2);
  wait_until(&changed);
  ck_assert_str_eq(changed_path, "/zookeeper/config");
}
END_TEST

/* ---- nodes with a TTL ---------------------------------------------------- */

/* The servers know the request, but refuse it, as extendedTypesEnabled is false
 * by default. */
START_TEST(without_extended_types_there_is_no_ttl)
{
  completion a = {0};

  world_enter(_i);
  for (int i = 0; i < 2; i++) {
    a.done = false;
    ck_assert_int_eq(lk_create_ttl(here, "/t", lk_text(""), NULL, 0, 1000, NULL,
                                   on_created, &a),
                     0);
    wait_until(&a.done);
    ck_assert_int_eq(a.err, LK_ERR_UNIMPLEMENTED);
  }
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

/* ---- persistent watches -------------------------------------------------- */

static bool reregistered;
static unsigned created;

static void on_tree(lk_client *c, lk_watch *w, const lk_event *event, void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  reregistered = reregistered || event->type == LK_EVENT_REREGISTERED;
  created += event->type == LK_EVENT_CREATED;
}

/* The number of the server to which `here` is connected. */
static int own_server(void)
{
  int n = 1;

  for (char *at = zk.connect; at != NULL; at = strchr(at, ','), n++) {
    at += *at == ',';
    if (strncmp(at, lk_client_server(here), strcspn(at, ",")) == 0)
      return n;
  }
  return 0;
}

START_TEST(recursive_watch_continues_at_another_server)
{
  lk_call call = {.size = sizeof call, .on_event = on_tree};
  completion a = {0};

  world_enter(_i);
  reregistered = false;
  created = 0;
  ck_assert_int_eq(
      lk_add_watch(here, "/t", LK_WATCH_RECURSIVE, &call, on_done, &a), 0);
  wait_until(&a.done);
  ck_assert_int_eq(a.err, 0);
  ck_assert_int_eq(create(here, "/t", "", 0), 0);
  ck_assert_uint_eq(created, 1);
  int n = own_server();

  server_ask(&zk, "kill %d", n);
  wait_until(&reregistered);
  ck_assert_int_ne(own_server(), n);
  server_ask(&zk, "start %d", n);
  server_ask(&zk, "wait");
  wait_for_state(here, LK_STATE_CONNECTED);
  while (create(here, "/t/x", "", LK_EPHEMERAL) != 0)
    wait_for_state(here, LK_STATE_CONNECTED);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  ck_assert_uint_ge(created, 2);
  ck_assert_int_eq(erase(here, "/t/x", -1), 0);
  ck_assert_int_eq(erase(here, "/t", -1), 0);
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
  tcase_add_loop_test(t, without_extended_types_there_is_no_ttl, 0, 2);
  tcase_add_loop_test(t, recursive_watch_continues_at_another_server, 0, 2);
  tcase_add_loop_test(t, configuration_is_read_watched_and_changed, 0, 2);
  suite_add_tcase(suite, t);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  server_end(&zk);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
