/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/client/world.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

server zk;
lk_client *here;
lk_client *there;
completion last_reply;
const char *chroot_path;

/* ---- server and clients -------------------------------------------------- */

void world_begin(const char *const *options)
{
  server_start(&zk, options);
}

lk_client_config config_of(const char *chroot)
{
  static char hosts[2][1024];
  static unsigned ncalls;
  char *text = hosts[ncalls++ % 2];

  snprintf(text, sizeof hosts[0], "%s%s", zk.hosts, chroot);
  return (lk_client_config){
      .size = sizeof(lk_client_config),
      .hosts = text,
      .session_timeout_ms = 10000,
  };
}

lk_client *client_of(const lk_client_config *config)
{
  lk_client *c = NULL;

  ck_assert_int_eq(test_driver_client_new(&c, config), 0);
  return c;
}

void world_set_up(void)
{
  lk_client_config config = config_of("");

  test_driver_open();
  there = client_of(&config);
  here = NULL;
}

/* Each test creates a node. If `here` has a chroot, it is this node. */
void connect_here(bool use_chroot)
{
  static char path[sizeof last_reply.path];
  lk_client_config config;

  ck_assert_int_eq(create(there, "/c-", "", LK_SEQUENTIAL), 0);
  snprintf(path, sizeof path, "%s", last_reply.path);
  chroot_path = use_chroot ? path : "";
  config = config_of(chroot_path);
  here = client_of(&config);
}

void add_test_without_and_with_chroot(TCase *t, const TTest *test)
{
  tcase_add_loop_test(t, test, 0, 2);
}

void add_tests_without_and_with_chroot(TCase *t, const TTest *const *tests,
                                       size_t count)
{
  for (size_t i = 0; i < count; i++)
    add_test_without_and_with_chroot(t, tests[i]);
}

bool with_chroot(int i)
{
  return i % 2 == 1;
}

/* It also frees `there`: test_driver_close() frees the clients that are left.
 */
void world_tear_down(void)
{
  if (here != NULL && lk_client_state(here) == LK_STATE_CONNECTED)
    close_client(here);
  lk_client_free(here);
  test_driver_close();
}

static int64_t now_ms(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void wait_until(const bool *flag)
{
  const int64_t limit_ms = 30 * 1000;
  int64_t end_ms = now_ms() + limit_ms;

  for (int64_t left_ms; !*flag && (left_ms = end_ms - now_ms()) > 0;)
    test_driver_turn((int)left_ms);
  ck_assert_msg(*flag, "nothing happened for 30 s");
}

typedef struct awaited_state {
  lk_state state;
  bool reached;
} awaited_state;

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  awaited_state *awaited = arg;

  (void)c;
  (void)err;
  awaited->reached = awaited->reached || state == awaited->state;
}

void wait_for_state(lk_client *c, lk_state state)
{
  awaited_state awaited = {state, lk_client_state(c) == state};
  lk_listener listener = {
      .size = sizeof listener, .state = on_state, .arg = &awaited};

  lk_client_attach(c, &listener);
  wait_until(&awaited.reached);
  lk_client_detach(c, &listener);
}

/* ---- callbacks --------------------------------------------------- */

/* Fill the completion `arg` with what the replies to all requests have. The
 * caller adds the results of its request, and then sets `done`. */
static completion *completion_begin(void *arg, lk_client *c, int err)
{
  static uint64_t order;
  const lk_reply *reply = lk_client_reply(c);
  completion *a = arg;

  ck_assert_msg(!a->done, "a request completed twice");
  memset(a, 0, sizeof *a);
  a->err = err;
  a->order = ++order;
  if (reply != NULL) {
    a->evidence = reply->evidence;
    a->zxid = reply->zxid;
  }
  return a;
}

static void note_stat(completion *a, const lk_stat *stat)
{
  a->has_stat = stat != NULL;
  if (stat != NULL)
    a->stat = *stat;
}

void on_done(lk_client *c, int err, void *arg)
{
  completion_begin(arg, c, err)->done = true;
}

void on_created(lk_client *c, int err, const char *path, const lk_stat *stat,
                void *arg)
{
  completion *a = completion_begin(arg, c, err);

  ck_assert((path != NULL) == (err == 0));
  snprintf(a->path, sizeof a->path, "%s", path == NULL ? "" : path);
  note_stat(a, stat);
  a->done = true;
}

void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  completion *a = completion_begin(arg, c, err);

  ck_assert((stat != NULL) == (err == 0));
  note_stat(a, stat);
  a->done = true;
}

void on_get(lk_client *c, int err, const lk_bytes *data, const lk_stat *stat,
            void *arg)
{
  completion *a = completion_begin(arg, c, err);

  ck_assert((data != NULL) == (err == 0));
  note_stat(a, stat);
  if (data != NULL) {
    a->is_null = data->at == NULL;
    a->len = data->len;
    if (data->at != NULL)
      memcpy(a->data, data->at,
             data->len < sizeof a->data ? data->len : sizeof a->data);
  }
  a->done = true;
}

void on_children(lk_client *c, int err, const lk_bytes *names, size_t count,
                 const lk_stat *stat, void *arg)
{
  completion *a = completion_begin(arg, c, err);

  ck_assert(err == 0 || (stat == NULL && count == 0));
  note_stat(a, stat);
  a->count = count;
  for (size_t i = 0; i < count && i < 8; i++)
    snprintf(a->names[i], sizeof a->names[i], "%.*s", (int)names[i].len,
             (const char *)names[i].at);
  a->done = true;
}

void on_multi(lk_client *c, int err, const lk_op_result *results, size_t count,
              void *arg)
{
  completion *a = completion_begin(arg, c, err);

  a->count = count;
  for (size_t i = 0; i < count && i < 8; i++) {
    a->results[i] = results[i];
    a->results[i].path = NULL;
    a->results[i].stat = NULL;
  }
  a->done = true;
}

static void on_closed(lk_client *c, int err, void *arg)
{
  completion_begin(arg, c, err)->done = true;
}

/* ---- requests that wait ------------------------------------------------- */

completion *reset_last_reply(void)
{
  memset(&last_reply, 0, sizeof last_reply);
  return &last_reply;
}

int wait_for_completion(int call_err)
{
  if (call_err != 0)
    return call_err;
  ck_assert_msg(!last_reply.done,
                "a request completed before its call returned");
  wait_until(&last_reply.done);
  return last_reply.err;
}

int create(lk_client *c, const char *path, const char *data, int flags)
{
  return wait_for_completion(lk_create2(c, path, lk_text(data), NULL, flags,
                                        NULL, on_created, reset_last_reply()));
}

int create_as(lk_client *c, const char *path, const lk_acls *acl, int flags)
{
  return wait_for_completion(lk_create2(c, path, lk_text("x"), acl, flags, NULL,
                                        on_created, reset_last_reply()));
}

int delete_node(lk_client *c, const char *path, int32_t version)
{
  return wait_for_completion(
      lk_delete(c, path, version, NULL, on_done, reset_last_reply()));
}

int exists(lk_client *c, const char *path)
{
  return exists_and_watch(c, path, NULL);
}

int get(lk_client *c, const char *path)
{
  return get_and_watch(c, path, NULL);
}

int children(lk_client *c, const char *path)
{
  return children_and_watch(c, path, NULL);
}

int exists_and_watch(lk_client *c, const char *path, const lk_call *call)
{
  return wait_for_completion(
      lk_exists(c, path, call, on_stat, reset_last_reply()));
}

int get_and_watch(lk_client *c, const char *path, const lk_call *call)
{
  return wait_for_completion(lk_get(c, path, call, on_get, reset_last_reply()));
}

int set(lk_client *c, const char *path, lk_bytes data, int32_t version)
{
  return wait_for_completion(
      lk_set(c, path, data, version, NULL, on_stat, reset_last_reply()));
}

int children_and_watch(lk_client *c, const char *path, const lk_call *call)
{
  return wait_for_completion(
      lk_get_children(c, path, call, on_children, reset_last_reply()));
}

int sync_with(lk_client *c, const char *path)
{
  return wait_for_completion(
      lk_server_sync(c, path, NULL, on_done, reset_last_reply()));
}

int multi(lk_client *c, const lk_op *ops, size_t count)
{
  return wait_for_completion(
      lk_multi(c, ops, count, NULL, on_multi, reset_last_reply()));
}

int add_auth(lk_client *c, const char *scheme, const char *auth)
{
  return wait_for_completion(
      lk_add_auth(c, scheme, lk_text(auth), on_done, reset_last_reply()));
}

int close_client(lk_client *c)
{
  return wait_for_completion(lk_client_close(c, on_closed, reset_last_reply()));
}

const char *absolute(const char *path)
{
  static char text[4][256];
  static unsigned ncalls;
  char *out = text[ncalls++ % 4];

  snprintf(out, sizeof text[0], "%s%s", chroot_path, path);
  return out;
}

/* ---- four-letter word -------------------------------------------------- */

long server_number(const char *hosts, const char *key)
{
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(2181)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  char host[64] = "", text[32768];
  const char *line;
  size_t len = 0;
  ssize_t got;

  snprintf(host, sizeof host, "%.*s", (int)strcspn(hosts, ":"), hosts);
  ck_assert_int_eq(inet_pton(AF_INET, host, &to.sin_addr), 1);
  ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&to, sizeof to), 0);
  /* The word is mntr, not wchs, which counts data watches only. */
  ck_assert_int_eq(write(fd, "mntr", 4), 4);
  while ((got = read(fd, text + len, sizeof text - 1 - len)) > 0)
    len += (size_t)got;
  close(fd);
  text[len] = '\0';
  line = strstr(text, key);
  ck_assert_ptr_nonnull(line);
  return strtol(line + strlen(key), NULL, 10);
}

long watches_on_server(void)
{
  return server_number(zk.connect, "zk_watch_count");
}
