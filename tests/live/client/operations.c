/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Every request, to a standalone server and to an ensemble, with a chroot and
 * without: its results, its effect on the tree, and its error if the connection
 * breaks before the server has the request or before the reply arrives.
 */

#include "live/client/operations.h"
#include "support/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

wire *wire_of_here;
bool is_ensemble;

/* ---- fixture ------------------------------------------------------------ */

/* The session timeout is short, so that the client pauses for a short time
 * between connection attempts. */
enum { SESSION_TIMEOUT_MS = 3000 };

static char test_directory[sizeof last_reply.path]; /* as `there` names it */

/* The three parts of a path joined, in one of eight buffers, which are used in
 * turn. */
static const char *path_in(const char *start, const char *node,
                           const char *name)
{
  static char text[8][sizeof test_directory + 256];
  static unsigned ncalls;
  char *out = text[ncalls++ % 8];

  snprintf(out, sizeof text[0], "%s%s%s", start, node, name);
  return out;
}

const char *path_here(const char *node, const char *name)
{
  return path_in(chroot_path[0] == '\0' ? test_directory : "", node, name);
}

const char *path_there(const char *node, const char *name)
{
  return path_in(test_directory, node, name);
}

/* The address of the n-th server, from 1 on. */
const char *server_address(int n)
{
  static char text[64];
  const char *address = zk.connect;

  for (; n > 1; n--)
    address += strcspn(address, ",") + 1;
  snprintf(text, sizeof text, "%.*s", (int)strcspn(address, ","), address);
  return text;
}

static lk_client *client_to_address(const char *address, const char *chroot)
{
  char hosts[256];
  lk_client_config config = {.size = sizeof config,
                             .hosts = hosts,
                             .session_timeout_ms = SESSION_TIMEOUT_MS};

  snprintf(hosts, sizeof hosts, "%s%s", address, chroot);
  return client_of(&config);
}

lk_client *client_to(int n)
{
  return client_to_address(server_address(n), "");
}

const char *all_members(void)
{
  static char text[512];

  text[0] = '\0';
  for (int n = 1; n <= 3; n++) {
    size_t len = strlen(text);
    char host[64];

    snprintf(host, sizeof host, "%s", server_address(n));
    host[strcspn(host, ":")] = '\0';
    snprintf(text + len, sizeof text - len,
             "%sserver.%d=%s:2888:3888:participant;%s:2181", n == 1 ? "" : ",",
             n, host, host);
  }
  return text;
}

/* The numbers of the servers of `here` and of `there`. */
static int server_of_here, server_of_there;

/* The next server of the three; the first one comes after the last one. */
static int server_after(int n)
{
  return n % 3 + 1;
}

/* In an ensemble, choose two different followers, so that the changes of `here`
 * must be replicated before `there` sees them. */
static void choose_servers(void)
{
  server_of_here = 1;
  server_of_there = 1;
  if (is_ensemble) {
    server_of_here = server_after(server_in_mode(&zk, "leader"));
    server_of_there = server_after(server_of_here);
  }
}

const char *hosts_of_here(void)
{
  static char text[256];

  snprintf(text, sizeof text, "%s%s", server_address(server_of_here),
           chroot_path);
  return text;
}

void fixture_set_up(bool use_chroot)
{
  test_driver_open();
  there = client_to(server_of_there);
  ck_assert_int_eq(create(there, "/p-", "", LK_SEQUENTIAL), 0);
  snprintf(test_directory, sizeof test_directory, "%s", last_reply.path);
  chroot_path = use_chroot ? test_directory : "";
  shown_directory = use_chroot ? "" : test_directory;
  wire_of_here = wire_new(server_address(server_of_here));
  here = client_to_address(wire_address(wire_of_here), chroot_path);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

void fixture_tear_down(void)
{
  if (lk_client_state(here) == LK_STATE_CONNECTED)
    close_client(here);
  lk_client_free(here);
  close_client(there);
  lk_client_free(there);
  wire_free(wire_of_here);
  test_driver_close();
}

/* ---- the tree ----------------------------------------------------------- */

const char test_node_tree[] = ".=one /kid=x /mine*=";

/* last_reconfig() when the test node was made. */
static int64_t first_reconfig;

/* The zxid of the last reconfig. */
static int64_t last_reconfig(void)
{
  ck_assert_int_eq(get(there, "/zookeeper/config"), 0);
  return last_reply.stat.mzxid;
}

void make_node_and_kid(const char *node)
{
  ck_assert_int_eq(create(there, path_there(node, ""), "one", LK_PERSISTENT),
                   0);
  ck_assert_int_eq(create(there, path_there(node, "/kid"), "x", LK_PERSISTENT),
                   0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  first_reconfig = last_reconfig();
}

void make_test_node(const char *node)
{
  make_node_and_kid(node);
  ck_assert_int_eq(create(here, path_here(node, "/mine"), "", LK_EPHEMERAL), 0);
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(a, b);
}

/* Append the text of tree_of() for the node `path` below `node` and for its
 * descendants, sorted by name. */
static void append_tree(const char *node, const char *path, char *out,
                        size_t size)
{
  size_t len = strlen(out), count;
  char names[8][64], child[640];

  if (get(there, path_there(node, path)) != 0)
    return;
  snprintf(out + len, size - len, "%s%s%s", len == 0 ? "" : " ",
           path[0] == '\0' ? "." : path,
           last_reply.stat.ephemeral_owner == 0 ? "" : "*");
  len = strlen(out);
  if (last_reply.stat.version != 0)
    len += (size_t)snprintf(out + len, size - len, "@%d",
                            (int)last_reply.stat.version);
  if (last_reply.stat.aversion != 0)
    len += (size_t)snprintf(out + len, size - len, "#%d",
                            (int)last_reply.stat.aversion);
  snprintf(out + len, size - len, "=%s", last_reply.data);
  ck_assert_int_eq(children(there, path_there(node, path)), 0);
  count = last_reply.count;
  ck_assert_uint_le(count, 8);
  memcpy(names, last_reply.names, sizeof names);
  qsort(names, count, sizeof names[0], compare_names);
  for (size_t i = 0; i < count; i++) {
    snprintf(child, sizeof child, "%s/%s", path, names[i]);
    append_tree(node, child, out, size);
  }
}

const char *tree_of(const char *node)
{
  static char text[512];

  ck_assert_int_eq(sync_with(there, "/"), 0);
  text[0] = '\0';
  append_tree(node, "", text, sizeof text);
  if (last_reconfig() != first_reconfig)
    strcat(text, " reconfigured");
  return text;
}

/* ---- requests ----------------------------------------------------------- */

int send_and_wait(const operation *o, const char *node, const lk_call *call)
{
  reset_last_reply();
  return wait_for_completion(o->send(here, node, call));
}

/* Returns the n-th operation that is implemented, or that is not; NULL: there
 * are fewer. */
static const operation *nth_operation(int n, bool implemented)
{
  for (size_t i = 0; i < noperations; i++) {
    if (server_has_opcode(operations[i].op) == implemented && n-- == 0)
      return &operations[i];
  }
  return NULL;
}

/* The operations with ENSEMBLE_ONLY are the last ones of the table. */
static int turns_of(bool ensemble, bool implemented)
{
  int count = 0;
  const operation *o;

  while ((o = nth_operation(count, implemented)) != NULL &&
         (ensemble || (o->flags & ENSEMBLE_ONLY) == 0))
    count++;
  return 2 * count;
}

int turns_of_operations(bool ensemble)
{
  return turns_of(ensemble, true);
}

const operation *operation_of(int i)
{
  return nth_operation(i / 2, true);
}

int turns_of_missing_operations(void)
{
  return turns_of(true, false);
}

const operation *missing_operation_of(int i)
{
  return nth_operation(i / 2, false);
}

/* ---- running ------------------------------------------------------------ */

enum { STANDALONE = false, ENSEMBLE = true };

/* Returns the number of tests that have failed. */
static int run_suite(bool ensemble)
{
  char digest[64], super[128];
  Suite *suite = suite_create(ensemble ? "in an ensemble" : "standalone");
  SRunner *runner;
  int failed;

  lk_acl_digest(digest, sizeof digest, "super:secret");
  snprintf(super, sizeof super,
           "zookeeper.DigestAuthenticationProvider.superDigest=%s", digest);
  const bool quotas = server_has(SERVER_QUOTAS_ENFORCED);
  const char *const options[] = {"-n",
                                 ensemble ? "3" : "1",
                                 "--config",
                                 "reconfigEnabled=true",
                                 "--property",
                                 super,
                                 quotas ? "--property" : NULL,
                                 "zookeeper.enforceQuota=true",
                                 NULL};

  is_ensemble = ensemble;
  world_begin(options);
  choose_servers();
  suite_add_tcase(suite, error_tests(ensemble));
  suite_add_tcase(suite, effect_tests(ensemble));
  suite_add_tcase(suite, operation_watch_tests(ensemble));
  runner = srunner_create(suite);
  srunner_set_fork_status(runner, CK_NOFORK); /* many short tests */
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  server_end(&zk);
  return failed;
}

/* The tests of a standalone server and those of an ensemble run at the same
 * time, since they mostly wait. */
int main(void)
{
  int failed, child_status = 0;
  pid_t child = fork();

  if (child < 0)
    return EXIT_FAILURE;
  const bool is_child = child == 0;

  failed = run_suite(is_child ? ENSEMBLE : STANDALONE);
  if (!is_child && waitpid(child, &child_status, 0) != child)
    return EXIT_FAILURE;
  return failed == 0 && child_status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
