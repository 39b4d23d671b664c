/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/every_call.h"

#include "support/shown.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const lk_semaphore_config three_permits = {.size = sizeof three_permits,
                                                  .permits = 3};
static const lk_reconfiguration change = {.size = sizeof change,
                                          .joining =
                                              "server.4=host:2888:3888;2181",
                                          .leaving = "1,3",
                                          .version = 7};
static const lk_parents_config *container_parents(void)
{
  static _Thread_local lk_parents_config config = {.size = sizeof config,
                                                   .containers = true};

  config.acl = lk_acl_read();
  return &config;
}

static void do_nothing(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

static void on_event(lk_sync_client *c, const lk_event *event, void *arg)
{
  (void)c;
  (void)event;
  (void)arg;
}

/* The place for the result of a call; NULL if the test passes none. */
#define OUT(at) (o->no_out ? NULL : (at))

/* A result from an earlier call, which the call must replace. */
static lk_sync_result *result_before(const every_object *o)
{
  static lk_sync_result junk;

  return o->no_out ? NULL : &junk;
}

/* A function without an error. `is_null_value`: whether it returns what it
 * returns for a NULL object. */
#define VALUE(name, is_null_value)              \
  static int call_##name(const every_object *o) \
  {                                             \
    return (is_null_value) ? 0 : 1;             \
  }

/* A function that returns nothing. */
#define VOID(name, ...)                         \
  static int call_##name(const every_object *o) \
  {                                             \
    lk_sync_##name(__VA_ARGS__);                \
    return 0;                                   \
  }

/* A function that returns an error and nothing else. */
#define ERROR(name, ...)                        \
  static int call_##name(const every_object *o) \
  {                                             \
    return lk_sync_##name(__VA_ARGS__);         \
  }

/* A request that fills in a stat. */
#define FILLS_STAT(name, ...)                                     \
  static int call_##name(const every_object *o)                   \
  {                                                               \
    lk_stat stat = {.czxid = -1};                                 \
    int err = lk_sync_##name(o->client, OUT(&stat), __VA_ARGS__); \
                                                                  \
    if (stat.czxid != -1)                                         \
      shown_add_stat(&stat);                                      \
    return err;                                                   \
  }

/* A request that fills in a number of type `type`. */
#define FILLS_NUMBER(type, name, ...)                               \
  static int call_##name(const every_object *o)                     \
  {                                                                 \
    type number = 99;                                               \
    int err = lk_sync_##name(o->client, OUT(&number), __VA_ARGS__); \
                                                                    \
    if (err == 0)                                                   \
      shown_add(" %lld", (long long)number);                        \
    return err;                                                     \
  }

/* A function of `object` that gives an lk_sync_result, with operations or reads
 * that `declare` declares. */
#define GIVES_FROM(object, name, declare, ...)              \
  static int call_##name(const every_object *o)             \
  {                                                         \
    declare;                                                \
    lk_sync_result *r = result_before(o);                   \
    int err = lk_sync_##name(object, OUT(&r), __VA_ARGS__); \
                                                            \
    shown_add_result(r);                                    \
    return err;                                             \
  }
#define GIVES(name, ...) GIVES_FROM(o->client, name, (void)0, __VA_ARGS__)

/* A function that makes an object, which `free` frees. */
#define MAKES(type, name, free, ...)                   \
  static int call_##name(const every_object *o)        \
  {                                                    \
    type *made;                                        \
    int err = lk_sync_##name(OUT(&made), __VA_ARGS__); \
                                                       \
    if (err == 0)                                      \
      free(made);                                      \
    return err;                                        \
  }

/* A function that frees an object, which `make` has made in `made`. The
 * function gets NULL if the test has no objects. */
#define FREES(type, name, make)                 \
  static int call_##name(const every_object *o) \
  {                                             \
    type *made = NULL;                          \
                                                \
    if (o->client != NULL && make != 0)         \
      return 1;                                 \
    lk_sync_##name(made);                       \
    return 0;                                   \
  }

/* ---- clients ------------------------------------------------------------- */

static int make_client(lk_sync_client **out, const char *hosts)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = hosts};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};

  return lk_sync_client_new(out, &config);
}

static int call_client_new(const every_object *o)
{
  lk_sync_client *made;
  int err = make_client(OUT(&made), o->hosts);

  if (err == 0)
    lk_sync_client_free(made);
  return err;
}

static int call_client_last_error(const every_object *o)
{
  char text[80];

  return lk_sync_client_last_error(o->client, OUT(text), sizeof text);
}

static int call_client_server(const every_object *o)
{
  char text[80];

  return lk_sync_client_server(o->client, OUT(text), sizeof text);
}

static int call_client_peer(const every_object *o)
{
  char text[80];

  return lk_sync_client_peer(o->client, OUT(text), sizeof text);
}

ERROR(client_wait_state, o->client, lk_sync_client_state(o->client), o->call)
VALUE(client_session, lk_sync_client_session(o->client).id == 0)
VALUE(client_timeout_ms, lk_sync_client_timeout_ms(o->client) == 0)
VALUE(client_zxid, lk_sync_client_zxid(o->client) == 0)
VALUE(client_tls_cause, lk_sync_client_tls_cause(o->client) == LK_TLS_OTHER)
FREES(lk_sync_client, client_free, make_client(&made, o->hosts))
ERROR(client_close, o->client)
VALUE(client_state, lk_sync_client_state(o->client) == LK_STATE_CLOSED)
VALUE(client_clock, lk_sync_client_clock(o->client) == 0)
ERROR(client_set_hosts, o->client, o->hosts)
ERROR(client_leave_server, o->client)
ERROR(client_run_on_thread, o->client, OUT(do_nothing), NULL)
MAKES(lk_sync_cancel, cancel_new, lk_sync_cancel_free, o->client)
FREES(lk_sync_cancel, cancel_free, lk_sync_cancel_new(&made, o->client))
VOID(cancel_set, o->cancel)
VOID(cancel_clear, o->cancel)

/* ---- requests ------------------------------------------------------------ */

const char *every_path(const char *path, const char *name)
{
  static _Thread_local char text[8][300];
  static _Thread_local unsigned ncalls;
  char *out = text[ncalls++ % 8];

  if (path == NULL)
    return NULL;
  snprintf(out, sizeof text[0], "%s%s", path, name);
  return out;
}

size_t every_ops(lk_op *ops, const char *path, int32_t version,
                 const lk_acls *acl)
{
  const lk_op all[EVERY_OPS] = {
      lk_op_check(path, version),
      lk_op_create(every_path(path, "/new"), lk_text("x"), acl, LK_PERSISTENT),
      lk_op_create2(every_path(path, "/new/e"), lk_text("x"), acl,
                    LK_EPHEMERAL),
      lk_op_create(every_path(path, "/box"), lk_text("x"), acl, LK_CONTAINER),
      lk_op_create_ttl(every_path(path, "/n-"), lk_text("x"), acl,
                       LK_SEQUENTIAL, LK_TTL_MAX_MS),
      lk_op_set(path, lk_text("two"), version),
      lk_op_check(path, version + 1),
      lk_op_delete(every_path(path, "/kid"), version),
  };

  memcpy(ops, all, sizeof all);
  return EVERY_OPS;
}

size_t every_reads(lk_read *reads, const char *path)
{
  reads[0] = lk_read_get(path);
  reads[1] = lk_read_get_children(path);
  reads[2] = lk_read_get(every_path(path, "/none"));
  return EVERY_READS;
}

static int add_watch(const every_object *o, lk_sync_watch **watch)
{
  lk_sync_call call = {.size = sizeof call};

  if (o->call != NULL)
    call = *o->call;
  call.on_event = on_event;
  call.watch = watch;
  return lk_sync_add_watch(o->client, o->path, LK_WATCH_PERSISTENT, &call);
}

static int call_add_watch(const every_object *o)
{
  lk_sync_watch *w = NULL;
  int err = add_watch(o, &w);

  lk_sync_watch_free(w);
  return err;
}

static int make_watch(lk_sync_watch **out, const every_object *o)
{
  (void)add_watch(o, out);
  return 0;
}

static int make_result(lk_sync_result **out, const every_object *o)
{
  (void)lk_sync_get(o->client, out, o->path, o->call);
  return 0;
}

FREES(lk_sync_watch, watch_free, make_watch(&made, o))
FREES(lk_sync_result, result_free, make_result(&made, o))
GIVES(create, every_path(o->path, "/new"), lk_text("x"), o->acl, LK_EPHEMERAL,
      o->call)
ERROR(delete, o->client, every_path(o->path, "/kid"), o->version, o->call)
FILLS_STAT(exists, o->path, o->call)
GIVES(get, o->path, o->call)
FILLS_STAT(set, o->path, lk_text("two"), o->version, o->call)
GIVES(get_children, o->path, o->call)
ERROR(server_sync, o->client, o->path, o->call)
GIVES_FROM(o->client, multi, lk_op ops[EVERY_OPS], ops,
           every_ops(ops, o->path, o->version, o->acl), o->call)
GIVES(create_ttl, every_path(o->path, "/n-"), lk_text("x"), o->acl,
      LK_SEQUENTIAL, LK_TTL_MAX_MS, o->call)
FILLS_NUMBER(int32_t, count_descendants, o->path, o->call)
GIVES(ephemerals, every_path(o->path, "/"), o->call)
GIVES(get_acl, o->path, o->call)
FILLS_STAT(set_acl, o->path, o->acl == NULL ? lk_acl_open() : o->acl,
           o->version, o->call)
GIVES_FROM(o->client, multi_read, lk_read reads[EVERY_READS], reads,
           every_reads(reads, o->path), o->call)
GIVES(who_am_i, o->call)
GIVES(get_config, o->call)
GIVES(reconfig, &change, o->call)
ERROR(add_auth, o->client, o->path == NULL ? NULL : "digest",
      lk_text("bob:secret"), o->call)
GIVES(create_with_parents, every_path(o->path, "/new"), lk_text("x"), o->acl,
      LK_EPHEMERAL, container_parents(), o->call)
FILLS_NUMBER(size_t, delete_recursive, o->path, o->call)
GIVES(create_reliable, o->path, lk_text("x"), o->acl, LK_CONTAINER,
      !o->is_shared, o->call)
FILLS_STAT(set_reliable, o->path, lk_text("x"), o->version, !o->is_shared,
           o->call)
ERROR(delete_reliable, o->client, o->path, o->version, !o->is_shared, o->call)

/* ---- subscriptions ------------------------------------------------------- */

GIVES_FROM(o->subscription, subscription_next, (void)0, o->call)
MAKES(lk_sync_subscription, subscribe_children, lk_sync_subscription_free,
      o->client, o->path, NULL)
MAKES(lk_sync_subscription, subscribe_data, lk_sync_subscription_free,
      o->client, o->path, NULL)
FREES(lk_sync_subscription, subscription_free,
      lk_sync_subscribe_data(&made, o->client, o->path, NULL))

/* ---- locks --------------------------------------------------------------- */

static int call_multilock_new(const every_object *o)
{
  lk_multilock_part member = {.path = o->path};
  lk_sync_lock *l;
  int err = lk_sync_multilock_new(OUT(&l), o->client, &member, 1, NULL, NULL,
                                  NULL, NULL);

  if (err == 0)
    lk_sync_lock_free(l);
  return err;
}

GIVES_FROM(o->lock, lock_guarded_multi, lk_op op = lk_op_check(o->path, -1),
           &op, 1, o->call)

static int call_lock_fd(const every_object *o)
{
  int fd = lk_sync_lock_fd(o->lock);

  return fd >= 0 ? 0 : fd;
}

MAKES(lk_sync_lock, lock_new, lk_sync_lock_free, o->client, o->path, NULL, NULL,
      NULL)
MAKES(lk_sync_lock, semaphore_new, lk_sync_lock_free, o->client, o->path, NULL,
      &three_permits, NULL, NULL)
MAKES(lk_sync_lock, single_new, lk_sync_lock_free, o->client, o->path, NULL,
      NULL, NULL, NULL)
MAKES(lk_sync_rwlock, rwlock_new, lk_sync_rwlock_free, o->client, o->path, NULL,
      NULL, NULL)
MAKES(lk_sync_lock, lock_clone, lk_sync_lock_free, o->lock, NULL)
MAKES(lk_sync_rwlock, rwlock_clone, lk_sync_rwlock_free, o->rwlock, NULL)
FREES(lk_sync_lock, lock_free,
      lk_sync_lock_new(&made, o->client, o->path, NULL, NULL, NULL))
FREES(lk_sync_rwlock, rwlock_free,
      lk_sync_rwlock_new(&made, o->client, o->path, NULL, NULL, NULL))
VALUE(rwlock_read_side, lk_sync_rwlock_read_side(o->rwlock) == NULL)
VALUE(rwlock_write_side, lk_sync_rwlock_write_side(o->rwlock) == NULL)
ERROR(rwlock_downgrade, o->rwlock, o->call)
VALUE(multilock_token, lk_sync_multilock_token(o->lock, o->path) == 0)
ERROR(lock_acquire, o->lock, o->call)
ERROR(lock_try, o->other_lock, o->call)
ERROR(lock_release, o->lock)
ERROR(lock_release_wait, o->lock, o->call)
ERROR(lock_verify, o->lock, o->call)
ERROR(lock_wait_certain, o->lock, o->call)
VALUE(lock_ok, !lk_sync_lock_ok(o->lock))
VALUE(lock_deadline, lk_sync_lock_deadline(o->lock) == INT64_MIN)
VALUE(lock_token, lk_sync_lock_token(o->lock) == 0)
VALUE(lock_get_state, lk_sync_lock_get_state(o->lock) == LK_LOCK_IDLE)
VALUE(lock_count, lk_sync_lock_count(o->lock) == 0)
VALUE(lock_path, lk_sync_lock_path(o->lock) == NULL)

/* ---- candidates ---------------------------------------------------------- */

GIVES_FROM(o->candidate, candidate_guarded_multi,
           lk_op op = lk_op_check(o->path, -1), 1, &op, 1, o->call)
MAKES(lk_sync_candidate, election_new, lk_sync_candidate_free, o->client,
      o->path, LK_LAYOUT_LATCH, NULL, NULL)
MAKES(lk_sync_candidate, candidate_new, lk_sync_candidate_free, o->lock, NULL)
FREES(lk_sync_candidate, candidate_free,
      lk_sync_election_new(&made, o->client, o->path, LK_LAYOUT_LATCH, NULL,
                           NULL))
ERROR(candidate_start, o->candidate)
ERROR(candidate_resign, o->candidate)
ERROR(candidate_wait_elected, o->candidate, o->call)
ERROR(candidate_wait_unsure, o->candidate, o->call)
VALUE(candidate_ok, !lk_sync_candidate_ok(o->candidate))
VALUE(candidate_deadline, lk_sync_candidate_deadline(o->candidate) == INT64_MIN)
VALUE(candidate_term, lk_sync_candidate_term(o->candidate) == 0)
VALUE(candidate_get_state,
      lk_sync_candidate_get_state(o->candidate) == LK_CANDIDATE_STOPPED)

/* ---- members and rosters ------------------------------------------------- */

GIVES(roster_get, o->path, NULL, o->call)
MAKES(lk_sync_subscription, subscribe_roster, lk_sync_subscription_free,
      o->client, o->path, NULL)
MAKES(lk_sync_membership, membership_new, lk_sync_membership_free, o->client,
      o->path, NULL, NULL)
FREES(lk_sync_membership, membership_free,
      lk_sync_membership_new(&made, o->client, o->path, NULL, NULL))
ERROR(membership_join, o->membership, o->call)
ERROR(membership_leave, o->membership)
ERROR(membership_set_data, o->membership, lk_text("data"))
VALUE(membership_has_joined, !lk_sync_membership_has_joined(o->membership))
VALUE(membership_path, lk_sync_membership_path(o->membership) == NULL)

/* ---- all of them --------------------------------------------------------- */

#define ROW(name, no_object, no_path, no_out)      \
  {                                                \
#    name, call_##name, no_object, no_path, no_out \
  }
/* PATH: a request for a node; OTHER: another function; MAKER: a function that
 * makes an object for a path; SILENT: a function without an error. */
#define PATH(name)  ROW(name, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH, NOT_EXPECTED)
#define OTHER(name) ROW(name, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, NOT_EXPECTED)
#define MAKER(name) \
  ROW(name, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH, LK_ERR_BAD_ARGUMENT)
#define SILENT(name) ROW(name, 0, NOT_EXPECTED, NOT_EXPECTED)

const every_call every_calls[] = {
    ROW(client_new, 0, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    SILENT(client_free),
    OTHER(client_close),
    SILENT(client_state),
    SILENT(client_clock),
    ROW(client_last_error, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED,
        LK_ERR_BAD_ARGUMENT),
    SILENT(client_tls_cause),
    OTHER(client_wait_state),
    SILENT(client_session),
    SILENT(client_timeout_ms),
    SILENT(client_zxid),
    ROW(client_server, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    ROW(client_peer, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    OTHER(client_set_hosts),
    OTHER(client_leave_server),
    ROW(client_run_on_thread, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED,
        LK_ERR_BAD_ARGUMENT),
    ROW(cancel_new, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    SILENT(cancel_free),
    SILENT(cancel_set),
    SILENT(cancel_clear),
    SILENT(watch_free),
    SILENT(result_free),
    PATH(create),
    PATH(delete),
    PATH(exists),
    PATH(get),
    PATH(set),
    PATH(get_children),
    PATH(server_sync),
    PATH(multi),
    PATH(create_ttl),
    PATH(count_descendants),
    OTHER(ephemerals),
    PATH(get_acl),
    PATH(set_acl),
    PATH(multi_read),
    OTHER(who_am_i),
    OTHER(get_config),
    OTHER(reconfig),
    PATH(add_watch),
    ROW(add_auth, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED),
    MAKER(subscribe_children),
    MAKER(subscribe_data),
    OTHER(subscription_next),
    SILENT(subscription_free),
    PATH(create_with_parents),
    PATH(delete_recursive),
    PATH(create_reliable),
    PATH(set_reliable),
    PATH(delete_reliable),
    MAKER(lock_new),
    ROW(lock_clone, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    MAKER(semaphore_new),
    MAKER(multilock_new),
    MAKER(single_new),
    MAKER(rwlock_new),
    ROW(rwlock_clone, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    SILENT(lock_free),
    SILENT(rwlock_free),
    SILENT(rwlock_read_side),
    SILENT(rwlock_write_side),
    OTHER(rwlock_downgrade),
    ROW(multilock_token, 0, 0, NOT_EXPECTED),
    OTHER(lock_acquire),
    OTHER(lock_try),
    OTHER(lock_release),
    OTHER(lock_release_wait),
    OTHER(lock_verify),
    OTHER(lock_wait_certain),
    ROW(lock_guarded_multi, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH, NOT_EXPECTED),
    SILENT(lock_ok),
    SILENT(lock_deadline),
    SILENT(lock_token),
    SILENT(lock_get_state),
    SILENT(lock_count),
    OTHER(lock_fd),
    SILENT(lock_path),
    MAKER(election_new),
    ROW(candidate_new, LK_ERR_BAD_ARGUMENT, NOT_EXPECTED, LK_ERR_BAD_ARGUMENT),
    SILENT(candidate_free),
    OTHER(candidate_start),
    OTHER(candidate_resign),
    OTHER(candidate_wait_elected),
    OTHER(candidate_wait_unsure),
    ROW(candidate_guarded_multi, LK_ERR_BAD_ARGUMENT, LK_ERR_LOST, LK_ERR_LOST),
    SILENT(candidate_ok),
    SILENT(candidate_deadline),
    SILENT(candidate_term),
    SILENT(candidate_get_state),
    ROW(roster_get, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH, NOT_EXPECTED),
    MAKER(subscribe_roster),
    MAKER(membership_new),
    SILENT(membership_free),
    OTHER(membership_join),
    OTHER(membership_leave),
    OTHER(membership_set_data),
    SILENT(membership_has_joined),
    SILENT(membership_path),
};

const size_t every_call_count = sizeof every_calls / sizeof every_calls[0];

const every_call *every_call_named(const char *name)
{
  for (size_t i = 0; i < every_call_count; i++) {
    if (strcmp(every_calls[i].name, name) == 0)
      return &every_calls[i];
  }
  ck_abort_msg("no function %s", name);
  return NULL;
}

/* ---- objects ------------------------------------------------------------- */

void every_object_make(every_object *o, const char *hosts,
                       const lk_sync_call *call)
{
  *o = (every_object){.path = "/every", .hosts = hosts, .call = call};
  ck_assert_int_eq(make_client(&o->client, hosts), 0);
  ck_assert_int_eq(
      lk_sync_lock_new(&o->lock, o->client, "/lock", NULL, NULL, NULL), 0);
  ck_assert_int_eq(lk_sync_lock_clone(&o->other_lock, o->lock, NULL), 0);
  ck_assert_int_eq(
      lk_sync_rwlock_new(&o->rwlock, o->client, "/rwlock", NULL, NULL, NULL),
      0);
  ck_assert_int_eq(
      lk_sync_subscribe_data(&o->subscription, o->client, "/data", NULL), 0);
  ck_assert_int_eq(lk_sync_election_new(&o->candidate, o->client, "/election",
                                        LK_LAYOUT_LATCH, NULL, NULL),
                   0);
  ck_assert_int_eq(
      lk_sync_membership_new(&o->membership, o->client, "/group", "a", NULL),
      0);
  ck_assert_int_eq(lk_sync_cancel_new(&o->cancel, o->client), 0);
}

void every_object_free(every_object *o)
{
  lk_sync_lock_free(o->lock);
  lk_sync_lock_free(o->other_lock);
  lk_sync_rwlock_free(o->rwlock);
  lk_sync_subscription_free(o->subscription);
  lk_sync_candidate_free(o->candidate);
  lk_sync_membership_free(o->membership);
  lk_sync_cancel_free(o->cancel);
  lk_sync_client_free(o->client);
}
