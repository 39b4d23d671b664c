/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "recipes/queue/contender.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <stdio.h>

/* Mutexes and read-write locks in the layouts of other libraries. */

static lock_pair lp;

static const lk_lock_config kazoo = {.size = sizeof kazoo,
                                     .layout = LK_LAYOUT_KAZOO};
static const lk_lock_config native = {.size = sizeof native,
                                      .layout = LK_LAYOUT_NATIVE};

/* Mutexes whose names depend on the layout and the prefix. */
static const lk_lock_config mutex_configs[] = {
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_KAZOO},
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_NATIVE},
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_NATIVE, .prefix = ""},
    {.size = sizeof(lk_lock_config),
     .layout = LK_LAYOUT_NATIVE,
     .prefix = "lock"},
    {.size = sizeof(lk_lock_config),
     .layout = LK_LAYOUT_NATIVE_UUID,
     .prefix = "seq-"}};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

enum {
  FOREIGN_SESSION = 0x5555, /* of nodes of another client */
  UNKNOWN_LAYOUT = LK_LAYOUT_LATCH + 1
};

static void begin(const lk_lock_config *config)
{
  lock_pair_begin(&lp, NULL, config);
}

static const char *name_of(const locker *l)
{
  return strrchr(lk_lock_node(l->lock), '/') + 1;
}

static const sim_node *node_of(const locker *l)
{
  return model_node(&lp.server, lk_lock_node(l->lock));
}

/* In the form, 'x' stands for a hexadecimal digit, and each other character for
 * itself. */
static bool has_form(const char *text, size_t len, const char *form)
{
  if (len != strlen(form))
    return false;
  for (size_t i = 0; i < len; i++) {
    if (form[i] == 'x' ? strchr("0123456789abcdef", text[i]) == NULL
                       : text[i] != form[i])
      return false;
  }
  return true;
}

/* UUIDs of version 4 */
#define UUID_FORM "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx"
#define HEX_FORM  "xxxxxxxxxxxx4xxxxxxxxxxxxxxxxxxx"

/* A node of another client and its session. */
static const sim_node *create_foreign(const char *name, const char *data)
{
  char path[256];

  snprintf(path, sizeof path, LOCKS "/%s", name);
  model_create_ephemeral(&lp.server, path, data, FOREIGN_SESSION);
  return model_node(&lp.server, path);
}

static void delete_foreign(const char *name)
{
  char path[256];

  snprintf(path, sizeof path, LOCKS "/%s", name);
  model_delete(&lp.server, path);
}

/* ---- names --------------------------------------------------------------- */

START_TEST(nodes_are_named_as_the_layout_says_and_have_the_given_data)
{
  static const struct {
    lk_layout layout;
    const char *prefix;
    const char *form;
    bool data_has_uuid; /* since the name has none */
  } cases[] = {
      {LK_LAYOUT_CURATOR, NULL, "_c_" UUID_FORM "-lock-0000000000", false},
      {LK_LAYOUT_LATCH, NULL, "_c_" UUID_FORM "-latch-0000000000", false},
      {LK_LAYOUT_KAZOO, NULL, HEX_FORM "__lock__0000000000", false},
      {LK_LAYOUT_NATIVE, NULL, "seq-0000000000", true},
      {LK_LAYOUT_NATIVE, "", "0000000000", true},
      {LK_LAYOUT_NATIVE, "lock", "lock0000000000", true},
      {LK_LAYOUT_NATIVE_UUID, "seq-", UUID_FORM "-seq-0000000000", false}};

  for (size_t i = 0; i < 2 * COUNT(cases); i++) {
    const bool has_data = i % 2 == 0;
    lk_lock_config c = {.size = sizeof c,
                        .layout = cases[i / 2].layout,
                        .prefix = cases[i / 2].prefix,
                        .data = lk_text(has_data ? "me" : "")};

    begin(&c);
    lock_pair_hold(&lp);
    const char *name = name_of(&lp.a);
    const sim_node *n = node_of(&lp.a);
    size_t len = (size_t)n->stat.data_length;

    ck_assert_msg(has_form(name, strlen(name), cases[i / 2].form), "%s", name);
    if (cases[i / 2].data_has_uuid)
      ck_assert(has_form((const char *)n->data, len,
                         has_data ? "me " UUID_FORM : UUID_FORM));
    else
      ck_assert(len == c.data.len && memcmp(n->data, "me", len) == 0);
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(only_names_of_exactly_this_form_are_contenders)
{
  static const char *const others[] = {
      "x-seq-0000000000",
      "seq-seq-0000000000",
      "seq-000000000",
      "seq-00000000000",
      "seq--0000000001",
      "Seq-0000000000",
      "_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000000",
      "0000000000",
      "lock-0000000000",
      "config",
      "seq-",
      "6f1c1d2e-3a4b-4c5d-8e9f-00112233445-seq-0000000000"};

  begin(&native);
  for (size_t i = 0; i < COUNT(others); i++)
    create_foreign(others[i], "");
  lock_pair_hold(&lp);
  /* the number follows those of the twelve other nodes */
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000012");
  ck_assert_ptr_null(strstr(lp.a.events, "waiting"));
  ck_assert_ptr_nonnull(strstr(lp.a.events, "mixed " LOCKS));
  locker_release(&lp.a);
  model_turn(&lp.server);
  for (size_t i = 0; i < COUNT(others); i++)
    delete_foreign(others[i]);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(contenders_with_and_without_a_uuid_share_a_queue)
{
  const lk_lock_config native_uuid = {.size = sizeof native_uuid,
                                      .layout = LK_LAYOUT_NATIVE_UUID};
  locker other;

  begin(&native);
  locker_init(&other, &lp.two, &native_uuid);
  lock_pair_hold(&lp);
  locker_request(&other);
  ck_assert_int_eq(other.acquired, NOT_YET);
  ck_assert_int_eq(locker_acquire(&lp.b, LK_NO_LIMIT), 0);
  locker_release(&lp.a);
  model_turn(&lp.server);
  ck_assert_int_eq(other.acquired, 0);
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  locker_free(&other);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(negative_number_fails_the_acquire_in_native_layouts)
{
  for (size_t i = 0; i < COUNT(mutex_configs); i++) {
    char name[64];

    if (mutex_configs[i].layout == LK_LAYOUT_KAZOO)
      continue;
    begin(&mutex_configs[i]);
    snprintf(name, sizeof name, "%s-000000001",
             mutex_configs[i].prefix == NULL ? "seq-"
                                             : mutex_configs[i].prefix);
    create_foreign(name, "");
    locker_request(&lp.a);
    ck_assert_int_eq(lp.a.acquired, LK_ERR_SEQ_UNSAFE);
    delete_foreign(name);
    lock_pair_end(&lp);
  }
}
END_TEST

#define KAZOO_READER "0123456789abcdef0123456789abcdef__rlock__0000000000"
#define KAZOO_WRITER "0123456789abcdef0123456789abcdef__lock__0000000009"

START_TEST(kazoo_readers_are_predecessors_and_curator_locks_are_foreign)
{
  begin(&kazoo);
  create_foreign(KAZOO_READER, "");
  create_foreign(KAZOO_WRITER, "");
  locker_request(&lp.a);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  ck_assert(locker_check_events(&lp.a, "waiting 1 0000000000\n"));
  create_foreign("x-lock-0000000001", "");
  delete_foreign(KAZOO_READER);
  model_turn(&lp.server);
  ck_assert_int_eq(lp.a.acquired, 0);
  /* Rule H has granted a without another list. Only the list of b reports the
   * foreign node. */
  ck_assert_int_eq(locker_try(&lp.b), 0);
  model_turn(&lp.server);
  ck_assert(locker_check_events(&lp.b, "mixed " LOCKS "/x-lock-0000000001\n"));
  delete_foreign("x-lock-0000000001");
  delete_foreign(KAZOO_WRITER);
  lock_pair_end(&lp);
}
END_TEST

/* Either library's layout recognizes the contenders of both libraries. */
START_TEST(curator_and_kazoo_contenders_are_distinguished_from_other_children)
{
  enum { WRITER = false, READER = true };
  static const lk_layout both[] = {LK_LAYOUT_CURATOR, LK_LAYOUT_KAZOO};
  static const struct {
    const char *name;
    int64_t number;
    bool shared;
  } contenders[] = {
      {"_c_58ddc2d1-9a3f-4e6e-8f4f-1b8f2a6fb0a1-lock-0000000007", 7, WRITER},
      {"_c_u-__READ__0000000010", 10, READER},
      {"_c_u-__WRIT__2147483647", 2147483647, WRITER},
      {"0123456789abcdef__lock__0000000003", 3, WRITER},
      {"0123456789abcdef__rlock__0000000004", 4, READER},
      {"lock--000000001", -1, WRITER},
      {"lock-lock-0000000002", 2, WRITER}};
  static const char *const others[] = {"",
                                       "lock-",
                                       "lock-x",
                                       "lock-1x",
                                       "lock-00000000001",
                                       "lock--",
                                       "latch-0000000001",
                                       "lease-0000000001",
                                       "Lock-1",
                                       "lock-+1"};
  int64_t number;
  bool shared;

  for (size_t layout = 0; layout < COUNT(both); layout++) {
    for (size_t i = 0; i < COUNT(contenders); i++) {
      ck_assert(lk_layout_contends(
          both[layout], NULL, lk_text(contenders[i].name), &number, &shared));
      ck_assert_int_eq(number, contenders[i].number);
      ck_assert_int_eq(shared, contenders[i].shared);
    }
    for (size_t i = 0; i < COUNT(others); i++)
      ck_assert_msg(!lk_layout_contends(both[layout], NULL, lk_text(others[i]),
                                        &number, &shared),
                    "%s", others[i]);
  }
}
END_TEST

/* How the layout parses the name of a child: "NUMBER", with "r" or "w" for a
 * reader or writer; "" if it is no contender. */
static const char *parsed(lk_layout layout, const char *prefix,
                          const char *name)
{
  static char text[32];
  int64_t number;
  bool shared;

  text[0] = '\0';
  if (lk_layout_contends(layout, prefix, lk_text(name), &number, &shared))
    snprintf(text, sizeof text, "%d%s", (int)number, shared ? "r" : "w");
  return text;
}

START_TEST(names_of_contenders_depend_on_the_layout_and_the_prefix)
{
  lk_layout native_uuid = LK_LAYOUT_NATIVE_UUID;

  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, NULL, "seq-0000000004"), "4w");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, NULL, "r-0000000004"), "4r");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, NULL, "w-0000000004"), "4w");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, "lock", "lock0000000004"), "4w");
  ck_assert_str_eq(parsed(native_uuid, "", "0000000004"), "4w");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, "lock", "seq-0000000004"), "");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, NULL, "x-lock-0000000004"), "");
  ck_assert_str_eq(parsed(LK_LAYOUT_NATIVE, "r-", "r-0000000004"), "");
  ck_assert_str_eq(parsed(LK_LAYOUT_KAZOO, NULL, "x-lock-0000000004"), "4w");
  ck_assert_str_eq(parsed((lk_layout)UNKNOWN_LAYOUT, NULL, "x-lock-0000000004"),
                   "");
}
END_TEST

enum { NO_PERMIT = -100 }; /* Curator's numbers can be negative */

static int permit_number(lk_layout layout, lk_bytes name)
{
  int64_t number;

  return lk_layout_is_permit(layout, name, &number) ? (int)number : NO_PERMIT;
}

START_TEST(permits_of_curator_end_with_lease_and_a_number)
{
  static const char *const not_permits[] = {"",
                                            "lease-",
                                            "x-lock-0000000004",
                                            "x-lease-",
                                            "x-lease-12345678901",
                                            "x-lease-00x",
                                            "0123456789abcdef0123456789abcdef"};

  ck_assert_int_eq(
      permit_number(LK_LAYOUT_CURATOR, lk_text("x-lease-0000000004")), 4);
  ck_assert_int_eq(
      permit_number(LK_LAYOUT_CURATOR, lk_text("lease--000000001")), -1);
  for (size_t i = 0; i < COUNT(not_permits); i++)
    ck_assert_msg(permit_number(LK_LAYOUT_CURATOR, lk_text(not_permits[i])) ==
                      NO_PERMIT,
                  "%s", not_permits[i]);
  ck_assert_int_eq(
      permit_number(LK_LAYOUT_NATIVE, lk_text("x-lease-0000000004")),
      NO_PERMIT);
  ck_assert_int_eq(
      permit_number((lk_layout)UNKNOWN_LAYOUT, lk_text("x-lease-0000000004")),
      NO_PERMIT);
}
END_TEST

START_TEST(permit_of_kazoo_is_32_hexadecimal_digits)
{
  static const char digits[] = "0123456789abcdef0123456789abcdef0"; /* 33 */
  static const char with_nul[] = "0123456789abcdef\0"
                                 "123456789abcdef0";

  ck_assert_int_eq(permit_number(LK_LAYOUT_KAZOO, lk_bytes_of(digits, 32)), 0);
  ck_assert_int_eq(permit_number(LK_LAYOUT_KAZOO, lk_bytes_of(digits, 31)),
                   NO_PERMIT);
  ck_assert_int_eq(permit_number(LK_LAYOUT_KAZOO, lk_bytes_of(digits, 33)),
                   NO_PERMIT);
  ck_assert_int_eq(permit_number(LK_LAYOUT_KAZOO,
                                 lk_text("0123456789ABCDEF0123456789abcdef")),
                   NO_PERMIT);
  ck_assert_int_eq(
      permit_number(LK_LAYOUT_KAZOO,
                    lk_text("0123456789abcdef0123456789abcdef__lock__"
                            "0000000000")),
      NO_PERMIT);
  ck_assert_int_eq(permit_number(LK_LAYOUT_KAZOO, lk_bytes_of(with_nul, 32)),
                   NO_PERMIT);
}
END_TEST

/* ---- options that are refused -------------------------------------------- */

static int create_and_free_lock(const lk_lock_config *c)
{
  lk_lock *l = NULL;
  int err = lk_lock_new(&l, lp.one.link->client, LOCKS, c);

  ck_assert_int_eq(l == NULL, err != 0);
  lk_lock_free(l);
  return err;
}

/* Make the locks of both clients anew, in the root. */
static void put_locks_into_root(const lk_lock_config *c)
{
  locker *const both[] = {&lp.a, &lp.b};

  for (size_t i = 0; i < COUNT(both); i++) {
    lk_lock_config config = *c;

    locker_free(both[i]);
    locker_clear(both[i], i == 0 ? &lp.one : &lp.two);
    config.on_event = locker_on_event;
    config.arg = both[i];
    ck_assert_int_eq(
        lk_lock_new(&both[i]->lock, both[i]->p->link->client, "/", &config), 0);
  }
}

/* The connection breaks at one request of the acquire, and the own node is
 * recovered. */
START_TEST(prefix_makes_locks_possible_in_the_root)
{
  static const lk_lock_config in_root[] = {
      {.size = sizeof in_root[0], .layout = LK_LAYOUT_NATIVE, .prefix = "job-"},
      {.size = sizeof in_root[0], .layout = LK_LAYOUT_NATIVE},
      {.size = sizeof in_root[0], .layout = LK_LAYOUT_NATIVE_UUID}};
  enum { CREATE = 1, LIST };

  for (size_t i = 0; i < COUNT(in_root); i++) {
    for (unsigned request = 0; request <= LIST; request++) {
      begin(NULL);
      put_locks_into_root(&in_root[i]);
      lp.one.link->requests = 0;
      lp.one.link->cut_at = request;
      lp.one.link->cut_after = true;
      ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
      model_run(&lp.server, T / 4);
      ck_assert_int_eq(lp.a.acquired, 0);
      ck_assert_str_eq(lk_lock_path(lp.a.lock), "/");
      locker_request(&lp.b);
      ck_assert_int_eq(lp.b.acquired, NOT_YET);
      ck_assert_int_eq(locker_verify(&lp.a), 0);
      locker_release(&lp.a);
      model_turn(&lp.server);
      ck_assert_int_eq(lp.b.acquired, 0);
      ck_assert_uint_eq(model_children(&lp.server, "/"), 3); /* with
                                     "zookeeper" and "locks" */
      lock_pair_end(&lp);
    }
  }
}
END_TEST

START_TEST(root_is_refused_without_a_prefix)
{
  static const lk_lock_config refused[] = {
      {.size = sizeof refused[0], .layout = LK_LAYOUT_CURATOR},
      {.size = sizeof refused[0], .layout = LK_LAYOUT_KAZOO},
      {.size = sizeof refused[0], .layout = LK_LAYOUT_LATCH},
      {.size = sizeof refused[0], .layout = LK_LAYOUT_NATIVE, .prefix = ""}};
  lk_rwlock *rw;
  lk_lock *l;

  begin(NULL);
  for (size_t i = 0; i < COUNT(refused); i++)
    ck_assert_int_eq(lk_lock_new(&l, lp.one.link->client, "/", &refused[i]),
                     LK_ERR_BAD_PATH);
  ck_assert_int_eq(lk_rwlock_new(&rw, lp.one.link->client, "/", &native), 0);
  lk_rwlock_free(rw);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(latch_is_a_layout_of_mutexes_only)
{
  const lk_lock_config c = {.size = sizeof c, .layout = LK_LAYOUT_LATCH};
  const lk_semaphore_config permits = {.size = sizeof permits, .permits = 1};
  const lk_multilock_part members[] = {{LOCKS, LK_MULTILOCK_MUTEX},
                                       {LOCKS "2", LK_MULTILOCK_READ}};
  lk_client *client;
  lk_rwlock *rw;
  lk_lock *l;

  begin(NULL);
  client = lp.one.link->client;
  ck_assert_int_eq(create_and_free_lock(&c), 0);
  ck_assert_int_eq(lk_rwlock_new(&rw, client, LOCKS, &c), LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(rw);
  ck_assert_int_eq(lk_semaphore_new(&l, client, LOCKS, &c, &permits),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_multilock_new(&l, client, members, 2, &c, NULL),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_multilock_new(&l, client, members, 1, &c, NULL), 0);
  lk_lock_free(l);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(options_that_contradict_the_layout_are_refused)
{
  static const char *const bad_prefixes[] = {"a/b", "/", "r-", "w-"};
  static const lk_layout without_prefix[] = {LK_LAYOUT_CURATOR, LK_LAYOUT_KAZOO,
                                             LK_LAYOUT_LATCH};
  lk_lock_config c = native;
  lk_semaphore_config permits = {.size = sizeof permits, .permits = 1};
  lk_multilock_part member = {LOCKS, LK_MULTILOCK_MUTEX};
  lk_lock *l;

  begin(NULL);
  for (size_t i = 0; i < COUNT(bad_prefixes); i++) {
    c.prefix = bad_prefixes[i];
    ck_assert_int_eq(create_and_free_lock(&c), LK_ERR_BAD_ARGUMENT);
  }
  c = native;
  c.layout = (lk_layout)UNKNOWN_LAYOUT;
  ck_assert_int_eq(create_and_free_lock(&c), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_multilock_new(&l, lp.one.link->client, &member, 1, &c, NULL),
      LK_ERR_BAD_ARGUMENT);
  for (size_t i = 0; i < COUNT(without_prefix); i++) {
    c = (lk_lock_config){
        .size = sizeof c, .layout = without_prefix[i], .prefix = "seq-"};
    ck_assert_int_eq(create_and_free_lock(&c), LK_ERR_BAD_ARGUMENT);
  }
  for (size_t i = 0; i < COUNT(mutex_configs); i++) {
    if (mutex_configs[i].layout != LK_LAYOUT_KAZOO) /* it has semaphores */
      ck_assert_int_eq(lk_semaphore_new(&l, lp.one.link->client, LOCKS,
                                        &mutex_configs[i], &permits),
                       LK_ERR_BAD_ARGUMENT);
  }
  lock_pair_end(&lp);
}
END_TEST

/* ---- read-write locks ---------------------------------------------------- */

/* A read-write lock of one client, and its read and write side. */
typedef struct sides {
  lk_rwlock *rw;
  locker r;
  locker w;
} sides;

static void sides_init(sides *s, test_client *p, const lk_lock_config *c)
{
  ck_assert_int_eq(lk_rwlock_new(&s->rw, p->link->client, LOCKS, c), 0);
  s->r = (locker){.p = p,
                  .lock = lk_rwlock_read_side(s->rw),
                  .acquired = NOT_YET,
                  .released = NOT_YET};
  s->w = (locker){.p = p,
                  .lock = lk_rwlock_write_side(s->rw),
                  .acquired = NOT_YET,
                  .released = NOT_YET};
}

static void release_lock(locker *l)
{
  locker_release(l);
  model_turn(&lp.server);
}

static const lk_lock_config rw_configs[] = {
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_KAZOO},
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_NATIVE},
    {.size = sizeof(lk_lock_config), .layout = LK_LAYOUT_NATIVE_UUID}};

static void assert_readers_share_and_writers_do_not(const lk_lock_config *c)
{
  sides one, two;

  begin(c);
  sides_init(&one, &lp.one, c);
  sides_init(&two, &lp.two, c);
  locker_request(&one.r);
  locker_request(&two.r);
  ck_assert(lk_lock_ok(one.r.lock) && lk_lock_ok(two.r.lock));
  release_lock(&two.r);
  locker_request(&two.w);
  ck_assert_int_eq(two.w.acquired, NOT_YET);
  release_lock(&one.r);
  ck_assert_int_eq(two.w.acquired, 0);
  /* In these layouts a downgrade is impossible: the read node would queue
   * behind the write node. */
  ck_assert_int_eq(locker_acquire(&two.r, LK_NO_LIMIT), LK_ERR_DEADLOCK);
  locker_request(&one.w);
  ck_assert_int_eq(one.w.acquired, NOT_YET);
  lp.one.link->log[0] = '\0';
  release_lock(&two.w);
  ck_assert_int_eq(one.w.acquired, 0);
  /* no list is needed, since rule H proves the lock */
  ck_assert(model_check_log(lp.one.link, ""));
  locker_request(&two.r);
  ck_assert_int_eq(two.r.acquired, NOT_YET);
  release_lock(&one.w);
  ck_assert_int_eq(two.r.acquired, 0);
  ck_assert_int_eq(locker_acquire(&two.w, LK_NO_LIMIT), LK_ERR_DEADLOCK);
  lk_rwlock_free(one.rw);
  lk_rwlock_free(two.rw);
  model_turn(&lp.server);
  lock_pair_end(&lp);
}

START_TEST(readers_share_and_writers_do_not)
{
  for (size_t i = 0; i < COUNT(rw_configs); i++)
    assert_readers_share_and_writers_do_not(&rw_configs[i]);
}
END_TEST

START_TEST(sides_are_named_as_the_layout_says)
{
  static const char *const forms[][2] = {
      {HEX_FORM "__rlock__0000000000", HEX_FORM "__lock__0000000001"},
      {"r-0000000000", "w-0000000001"},
      {UUID_FORM "-r-0000000000", UUID_FORM "-w-0000000001"}};

  for (size_t i = 0; i < COUNT(rw_configs); i++) {
    sides s;

    begin(&rw_configs[i]);
    sides_init(&s, &lp.one, &rw_configs[i]);
    locker_request(&s.r);
    ck_assert(has_form(name_of(&s.r), strlen(name_of(&s.r)), forms[i][0]));
    release_lock(&s.r);
    locker_request(&s.w);
    ck_assert(has_form(name_of(&s.w), strlen(name_of(&s.w)), forms[i][1]));
    lk_rwlock_free(s.rw);
    model_turn(&lp.server);
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(plain_locks_can_be_members_of_a_multilock)
{
  lk_multilock_part members[] = {{LOCKS, LK_MULTILOCK_MUTEX},
                                 {"/locks/y", LK_MULTILOCK_READ},
                                 {"/locks/z", LK_MULTILOCK_WRITE}};
  locker m = {.p = &lp.two, .acquired = NOT_YET, .released = NOT_YET};

  begin(&native);
  ck_assert_int_eq(
      lk_multilock_new(&m.lock, lp.two.link->client, members, 3, &native, NULL),
      0);
  locker_request(&m); /* the missing directories are created as well */
  ck_assert_int_eq(m.acquired, 0);
  ck_assert(has_form(name_of(&m), strlen(name_of(&m)), "seq-xxxxxxxxxx"));
  ck_assert_ptr_nonnull(
      strstr(model_child(&lp.server, "/locks/y", 0), "/y/r-0000000000"));
  ck_assert_ptr_nonnull(
      strstr(model_child(&lp.server, "/locks/z", 0), "/z/w-0000000000"));
  locker_request(&lp.a);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  release_lock(&m);
  ck_assert_int_eq(lp.a.acquired, 0);
  locker_request(&m);
  ck_assert_int_eq(m.acquired, NOT_YET);
  release_lock(&lp.a);
  ck_assert_int_eq(m.acquired, 0);
  locker_free(&m);
  model_turn(&lp.server);
  lock_pair_end(&lp);
}
END_TEST

/* ---- a create whose reply was lost -------------------------------------- */

enum { NOT_EXECUTED = false, EXECUTED = true };

/* The connection breaks at the next request, before or after the server has
 * executed it. */
static void cut_next_request(bool executed)
{
  lp.one.link->requests = 0;
  lp.one.link->cut_at = 1;
  lp.one.link->cut_after = executed;
}

static void acquire_with_lost_create(bool executed)
{
  cut_next_request(executed);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 10);
}

START_TEST(lost_create_is_recovered_by_its_data_or_sent_again)
{
  /* The directory is empty, so no node is read to find the own one. */
  static const char *const next_requests[] = {
      [NOT_EXECUTED] = "create2 getChildren2",
      [EXECUTED] = "getData | getChildren2"};
  char log[128];

  for (int executed = NOT_EXECUTED; executed <= EXECUTED; executed++) {
    begin(&native);
    acquire_with_lost_create(executed);
    ck_assert_int_eq(lp.a.acquired, 0);
    snprintf(log, sizeof log, "create2 getChildren2 | multi getChildren2 | %s",
             next_requests[executed]);
    ck_assert(model_check_log(lp.one.link, log));
    ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
    ck_assert_uint_eq(lk_lock_token(lp.a.lock),
                      (uint64_t)node_of(&lp.a)->stat.czxid);
    lock_pair_end(&lp);
  }
}
END_TEST

/* `older` foreign nodes exist before the create. `newer` are created while the
 * connection is down. Recovery reads the newer nodes, the own node if the
 * create was executed, and one older node. The test allows `max_reads`, since
 * eight nodes are read at once, and a waiter reads two more. */
static void recover_in_queue(int older, int newer, bool executed,
                             unsigned max_reads)
{
  int first_newer = older + (executed ? 1 : 0); /* a sequence number */
  bool has_predecessors = older > 0 || (newer > 0 && !executed);
  char name[64];

  begin(&native);
  for (int i = 0; i < older; i++) {
    snprintf(name, sizeof name, "seq-%010d", i);
    create_foreign(name, "their data");
  }
  model_run(&lp.server, T); /* a reply to a ping shows the server's zxid */
  lp.server.down = true;
  acquire_with_lost_create(executed);
  for (int i = 0; i < newer; i++) {
    snprintf(name, sizeof name, "seq-%010d", first_newer + i);
    create_foreign(name, "their data");
  }
  lp.one.link->log[0] = '\0';
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS),
                    (size_t)(older + newer + 1));
  ck_assert_int_eq(lp.a.acquired, has_predecessors ? NOT_YET : 0);
  ck_assert_uint_le(model_count(lp.one.link, "getData"), max_reads);
  for (int i = 0; i < older; i++) {
    snprintf(name, sizeof name, "seq-%010d", i);
    delete_foreign(name);
  }
  for (int i = 0; i < newer; i++) {
    snprintf(name, sizeof name, "seq-%010d", first_newer + i);
    delete_foreign(name);
  }
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}

START_TEST(recovery_in_a_long_queue_reads_only_the_newest_nodes)
{
  recover_in_queue(0, 0, EXECUTED, 1 + 2);
  recover_in_queue(100, 0, EXECUTED, 8 + 2);
  recover_in_queue(0, 20, EXECUTED, 24 + 2);
  recover_in_queue(100, 20, EXECUTED, 24 + 2);
  recover_in_queue(100, 0, NOT_EXECUTED, 8 + 2);
  recover_in_queue(100, 20, NOT_EXECUTED, 24 + 2);
}
END_TEST

START_TEST(two_handles_of_a_session_recover_their_own_nodes)
{
  locker other;

  begin(&native);
  locker_init(&other, &lp.one, &native);
  lp.one.link->cut_at = 3; /* the third request: create, list, create */
  lp.one.link->cut_after = true;
  ck_assert_int_eq(locker_acquire(&other, LK_NO_LIMIT), 0);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(other.acquired, 0);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000001");
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  locker_free(&other);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(own_node_with_a_revocation_is_recovered)
{
  begin(&native);
  lp.server.down = true;
  acquire_with_lost_create(EXECUTED);
  model_set(&lp.server, LOCKS "/seq-0000000000", LK_REVOKE_MESSAGE);
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000000");
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(revoked_node_of_another_handle_is_not_recovered)
{
  locker other;

  begin(&native);
  locker_init(&other, &lp.one, &native);
  locker_request(&other);
  lp.server.down = true;
  acquire_with_lost_create(NOT_EXECUTED);
  model_set(&lp.server, LOCKS "/seq-0000000000", LK_REVOKE_MESSAGE);
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000001");
  locker_free(&other);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* The connection breaks while the creates of both handles are outstanding. The
 * first was executed, and if `both`, the second, too. Then this node is
 * revoked: "seq-0000000000" is of `other`, "seq-0000000001" of lp.a. */
static void lose_two_creates(locker *other, bool both, const char *revoked)
{
  locker_init(other, &lp.one, &native);
  lp.server.down = true;
  lp.one.link->requests = 0;
  lp.one.link->cut_at = 3; /* the third request: create, list, create */
  lp.one.link->cut_after = both;
  ck_assert_int_eq(locker_acquire(other, LK_NO_LIMIT), 0);
  ck_assert_int_eq(locker_acquire(&lp.a, LK_NO_LIMIT), 0);
  model_run(&lp.server, T / 10);
  model_set(&lp.server, revoked, LK_REVOKE_MESSAGE);
}

/* The zxid of the node does not show which handle created it. */
START_TEST(revoked_node_is_recovered_by_one_handle)
{
  locker other;

  begin(&native);
  lose_two_creates(&other, false, LOCKS "/seq-0000000000");
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert((lp.a.acquired == 0) != (other.acquired == 0));
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  locker_free(&other);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

static void expect_both_recovered(locker *other)
{
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 2);
  ck_assert_int_eq(other->acquired, 0);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000001");
  locker_free(other);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.acquired, 0);
}

START_TEST(revoked_node_is_not_recovered_before_the_own_data)
{
  locker other;

  begin(&native);
  lose_two_creates(&other, true, LOCKS "/seq-0000000001");
  expect_both_recovered(&other);
  lock_pair_end(&lp);
}
END_TEST

static unsigned reads;

/* Each handle reads the newer node, then the older one. The first handle cannot
 * read its own, the older, and the second one cannot read the newer. */
static void throttle_reads_of_own(model_server *s, model_link *l, int32_t op,
                                  const char *path)
{
  (void)s;
  (void)path;
  if (op != LK_OPCODE_GET_DATA)
    return;
  reads++;
  if (reads == 2 || reads == 3)
    l->throttle_at = l->requests;
}

START_TEST(revoked_node_is_not_recovered_while_the_own_cannot_be_read)
{
  locker other;

  begin(&native);
  lose_two_creates(&other, true, LOCKS "/seq-0000000000");
  reads = 0;
  lp.server.before = throttle_reads_of_own;
  expect_both_recovered(&other);
  lock_pair_end(&lp);
}
END_TEST

static void throttle_first_read(model_server *s, model_link *l, int32_t op,
                                const char *path)
{
  (void)s;
  (void)path;
  if (op == LK_OPCODE_GET_DATA && reads++ == 0)
    l->throttle_at = l->requests;
}

/* The directory was deleted and made anew, so the node has the name of another
 * handle's node, which that handle does not know to be gone. */
START_TEST(revoked_node_with_the_name_of_an_older_one_is_recovered)
{
  locker other;

  begin(&native);
  locker_init(&other, &lp.one, &native);
  locker_request(&other);
  ck_assert_int_eq(other.acquired, 0);
  lp.server.down = true;
  model_delete(&lp.server, LOCKS "/seq-0000000000");
  model_delete(&lp.server, LOCKS);
  model_create(&lp.server, LOCKS);
  acquire_with_lost_create(EXECUTED);
  model_set(&lp.server, LOCKS "/seq-0000000000", LK_REVOKE_MESSAGE);
  reads = 0;
  lp.server.before = throttle_first_read;
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert_int_eq(lp.a.acquired, 0);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000000");
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 1);
  locker_free(&other);
  lock_pair_end(&lp);
}
END_TEST

static void leave_read_unanswered(model_server *s, model_link *l, int32_t op,
                                  const char *path)
{
  (void)s;
  (void)path;
  if (op == LK_OPCODE_GET_DATA)
    l->allow = 0;
}

/* The client is freed while requests of the recovery are outstanding. */
START_TEST(recovery_that_ends_after_its_client_was_freed_is_ignored)
{
  begin(&native);
  lp.server.down = true;
  acquire_with_lost_create(EXECUTED);
  lk_lock_cancel(lp.a.lock);
  lp.one.link->log[0] = '\0';
  lp.server.before = leave_read_unanswered;
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert(model_check_log(lp.one.link, "multi getChildren2 | getData"));
  lk_client_free(lp.one.link->client);
  ck_assert_ptr_null(lp.one.link->client);
  /* no reply led to a step that the state machine lacks */
  ck_assert_uint_eq(lp.one.errors, 0);
  lp.server.before = NULL;
  model_expire(&lp.server, lp.one.link->last_session);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(node_that_cannot_be_read_ends_the_recovery)
{
  begin(&native);
  create_foreign("seq-0000000000", "");
  model_deny(&lp.server, LOCKS "/seq-0000000000", LK_PERM_READ);
  acquire_with_lost_create(NOT_EXECUTED);
  ck_assert_int_eq(lp.a.acquired, LK_ERR_NO_AUTH);
  delete_foreign("seq-0000000000");
  model_run(&lp.server, T);
  lock_pair_end(&lp);
}
END_TEST

/* ---- nodes of other clients with the own name ---------------------------- */

/* An operator deletes the directory and creates it again. Then another client
 * gets the first number in it, which the own node had before. */
static void recreate_directory_with_foreign_node(void)
{
  while (model_children(&lp.server, LOCKS) > 0)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  model_delete(&lp.server, LOCKS);
  model_create(&lp.server, LOCKS);
  create_foreign("seq-0000000000", "theirs");
  model_counter(&lp.server, LOCKS, 1); /* the next number */
}

static void assert_foreign_node_stays(void)
{
  const sim_node *n = model_node(&lp.server, LOCKS "/seq-0000000000");

  ck_assert_ptr_nonnull(n);
  ck_assert_int_eq(n->stat.ephemeral_owner, FOREIGN_SESSION);
}

START_TEST(delete_is_not_repeated_on_a_foreign_node)
{
  for (int executed = NOT_EXECUTED; executed <= EXECUTED; executed++) {
    begin(&native);
    lock_pair_hold(&lp);
    lp.server.down = true;
    cut_next_request(executed);
    locker_release(&lp.a);
    model_turn(&lp.server);
    recreate_directory_with_foreign_node();
    lp.server.down = false;
    model_run(&lp.server, T / 2);
    ck_assert_int_eq(lp.a.released, 0);
    assert_foreign_node_stays();
    delete_foreign("seq-0000000000");
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(delete_with_a_lost_reply_is_repeated_on_our_node)
{
  for (int executed = NOT_EXECUTED; executed <= EXECUTED; executed++) {
    begin(&native);
    lock_pair_queue(&lp);
    cut_next_request(executed);
    locker_release(&lp.a);
    model_run(&lp.server, T / 10);
    ck_assert_int_eq(lp.a.released, 0);
    ck_assert_int_eq(lp.b.acquired, 0);
    ck_assert(model_check_log(
        lp.one.link, executed ? "delete | multi getChildren2"
                              : "delete | multi getChildren2 | getData | "
                                "delete"));
    lock_pair_end(&lp);
  }
}
END_TEST

START_TEST(own_node_with_changed_data_is_deleted)
{
  begin(&native);
  lock_pair_queue(&lp);
  model_set(&lp.server, lk_lock_node(lp.a.lock), LK_REVOKE_MESSAGE);
  cut_next_request(NOT_EXECUTED);
  locker_release(&lp.a);
  model_run(&lp.server, T / 10);
  ck_assert_int_eq(lp.a.released, 0);
  ck_assert_int_eq(lp.b.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

START_TEST(holder_does_not_take_a_foreign_node_for_its_own)
{
  begin(&native);
  lock_pair_hold(&lp);
  lp.server.down = true;
  model_drop(lp.one.link);
  model_turn(&lp.server);
  recreate_directory_with_foreign_node();
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert(locker_check_events(&lp.a, "suspended\nlost NO_NODE\n"));
  assert_foreign_node_stays();
  delete_foreign("seq-0000000000");
  lock_pair_end(&lp);
}
END_TEST

START_TEST(waiter_does_not_take_a_foreign_node_for_its_own)
{
  begin(&native);
  lock_pair_queue(&lp);
  lp.server.down = true;
  model_drop(lp.two.link);
  model_turn(&lp.server);
  recreate_directory_with_foreign_node();
  /* instead of the name of the holder's node, that of the own node */
  delete_foreign("seq-0000000000");
  create_foreign("seq-0000000001", "theirs");
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  /* the new own node is queued behind the foreign one */
  ck_assert_int_eq(lp.b.acquired, NOT_YET);
  delete_foreign("seq-0000000001");
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.b.acquired, 0);
  ck_assert(lk_lock_ok(lp.b.lock));
  lock_pair_end(&lp);
}
END_TEST

/* ---- breaks and failed allocations --------------------------------------- */

/* The own node is newer than a node of another session, so recovery reads both.
 * The connection breaks when the reply for the own node has arrived. */
START_TEST(recovery_that_found_the_node_before_a_break_is_not_repeated)
{
  begin(&native);
  create_foreign("seq-0000000000", "their data");
  model_run(&lp.server, T); /* a reply to a ping shows the server's zxid */
  lp.server.down = true;
  acquire_with_lost_create(EXECUTED);
  lp.one.link->log[0] = '\0';
  lp.one.link->requests = 0;
  lp.one.link->cut_at = 4; /* the fourth request: multi, list, read of the own
                              node, read of the other */
  lp.one.link->cut_after = false;
  lp.one.link->cut_softly = true;
  lp.server.down = false;
  model_run(&lp.server, T / 4);
  ck_assert_uint_eq(lp.one.link->requests, 4 + 3);
  ck_assert(model_check_log(lp.one.link,
                            "multi getChildren2 | getData getData | "
                            "getChildren2 | getData getData"));
  ck_assert_int_eq(lp.a.acquired, NOT_YET);
  ck_assert_str_eq(name_of(&lp.a), "seq-0000000001");
  /* no reply led to a step that the state machine lacks */
  ck_assert_uint_eq(lp.one.errors, 0);
  delete_foreign("seq-0000000000");
  model_run(&lp.server, T / 4);
  ck_assert_int_eq(lp.a.acquired, 0);
  lock_pair_end(&lp);
}
END_TEST

/* The connection breaks at a create, and the acquire is cancelled before the
 * recovery. Seven nodes of other clients are newer. The n-th allocation of the
 * recovery fails. false: it has fewer allocations. */
static bool recovery_survives_failed_allocation(size_t n)
{
  begin(&native);
  lp.server.down = true;
  acquire_with_lost_create(EXECUTED);
  lk_lock_cancel(lp.a.lock);
  for (int i = 1; i <= 7; i++) {
    char name[32];

    snprintf(name, sizeof name, "seq-%010d", i);
    create_foreign(name, "");
  }
  lp.one.mem.fail_at = lp.one.mem.count + n;
  lp.server.down = false;
  model_run(&lp.server, T / 2);
  ck_assert_uint_eq(model_children(&lp.server, LOCKS), 7);
  bool failed = failing_mem_failed(&lp.one.mem);

  while (model_children(&lp.server, LOCKS) > 0)
    model_delete(&lp.server, model_child(&lp.server, LOCKS, 0));
  lock_pair_end(&lp);
  return failed;
}

START_TEST(recovery_without_memory_for_all_reads_begins_again)
{
  size_t n = 1;

  while (recovery_survives_failed_allocation(n))
    n++;
  ck_assert_uint_gt(n, 3);
}
END_TEST

SUITE("layouts", nodes_are_named_as_the_layout_says_and_have_the_given_data,

      only_names_of_exactly_this_form_are_contenders,
      contenders_with_and_without_a_uuid_share_a_queue,
      negative_number_fails_the_acquire_in_native_layouts,
      kazoo_readers_are_predecessors_and_curator_locks_are_foreign,
      curator_and_kazoo_contenders_are_distinguished_from_other_children,
      names_of_contenders_depend_on_the_layout_and_the_prefix,
      permits_of_curator_end_with_lease_and_a_number,
      permit_of_kazoo_is_32_hexadecimal_digits,
      prefix_makes_locks_possible_in_the_root, root_is_refused_without_a_prefix,
      latch_is_a_layout_of_mutexes_only,
      options_that_contradict_the_layout_are_refused,
      readers_share_and_writers_do_not, sides_are_named_as_the_layout_says,
      plain_locks_can_be_members_of_a_multilock,
      lost_create_is_recovered_by_its_data_or_sent_again,
      recovery_in_a_long_queue_reads_only_the_newest_nodes,
      two_handles_of_a_session_recover_their_own_nodes,
      own_node_with_a_revocation_is_recovered,
      revoked_node_of_another_handle_is_not_recovered,
      revoked_node_is_recovered_by_one_handle,
      revoked_node_is_not_recovered_before_the_own_data,
      revoked_node_is_not_recovered_while_the_own_cannot_be_read,
      revoked_node_with_the_name_of_an_older_one_is_recovered,
      recovery_that_ends_after_its_client_was_freed_is_ignored,
      node_that_cannot_be_read_ends_the_recovery,
      delete_is_not_repeated_on_a_foreign_node,
      delete_with_a_lost_reply_is_repeated_on_our_node,
      own_node_with_changed_data_is_deleted,
      holder_does_not_take_a_foreign_node_for_its_own,
      waiter_does_not_take_a_foreign_node_for_its_own,
      recovery_that_found_the_node_before_a_break_is_not_repeated,
      recovery_without_memory_for_all_reads_begins_again)
