/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Clones of locks of all kinds. */

#include <string.h>

#include "recipes/locks/lock.h"
#include "recipes/locks/semaphore.h"
#include "support/locks.h"
#include "support/suite.h"

#include <latchkey/multilock.h>
#include <latchkey/single.h>

static model_server server;
static test_client client;

static void begin(void)
{
  model_init(&server);
  test_client_init(&client, &server, NULL);
  model_turn(&server);
}

static void end(void)
{
  model_run(&server, T);
  test_client_free(&client);
  model_done(&server);
}

static const lk_acl entries[] = {
    {LK_PERM_ALL, {"digest", 6}, {"u:h", 3}},
    {LK_PERM_READ | LK_PERM_CREATE | LK_PERM_DELETE,
     {"world", 5},
     {"anyone", 6}}};
static const lk_acls acl = {entries, 2};

/* No option is the default. */
static lk_lock_config full_config(lk_layout layout)
{
  bool has_prefix = layout == LK_LAYOUT_NATIVE;

  return (lk_lock_config){.size = sizeof(lk_lock_config),
                          .data = lk_text("who"),
                          .acl = &acl,
                          .parent_acl = lk_acl_open(),
                          .persistent_parents = true,
                          .unsure_when_suspended = true,
                          .fail_on_expiry = true,
                          .revocable = true,
                          .max_queue = 3,
                          .peek = true,
                          .layout = layout,
                          .prefix = has_prefix ? "p-" : NULL};
}

typedef enum kind { MUTEX, SEMAPHORE, MULTILOCK, SINGLE, KINDS } kind;

static const lk_multilock_part members[] = {{"/m/z", LK_MULTILOCK_READ},
                                            {"/m/a", LK_MULTILOCK_WRITE},
                                            {"/m/b", LK_MULTILOCK_MUTEX}};

static int make(lk_lock **out, kind k, lk_layout layout)
{
  lk_client *c = client.link->client;
  lk_lock_config config = full_config(layout);
  const lk_semaphore_config permits = {
      .size = sizeof permits,
      .permits = 5,
      .take = 2,
      .limit_path = layout == LK_LAYOUT_CURATOR ? "/limit" : NULL};
  const lk_single_config single = {
      .size = sizeof single, .poll_ms = 7, .spread_ms = -1};
  const lk_multilock_config order = {.size = sizeof order, .keep_order = true};

  switch (k) {
  case MUTEX: return lk_lock_new(out, c, "/l", &config);
  case SEMAPHORE: return lk_semaphore_new(out, c, "/s", &config, &permits);
  case MULTILOCK: return lk_multilock_new(out, c, members, 3, &config, &order);
  case SINGLE: return lk_single_new(out, c, "/d/n", &config, &single);
  case KINDS: break;
  }
  return LK_ERR_BAD_ARGUMENT;
}

static unsigned clone_events;

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  (void)event;
  ++*(unsigned *)arg;
}

static lk_lock *clone_of(const lk_lock *l)
{
  lk_lock *clone;

  ck_assert_int_eq(lk_lock_clone(&clone, l, on_event, &clone_events), 0);
  return clone;
}

static void compare_options(const lk_lock *a, const lk_lock *b)
{
  lk_lock_config x = lk__lock_config_of(a);
  lk_lock_config y = lk__lock_config_of(b);

  ck_assert_str_eq(lk_lock_path(a), lk_lock_path(b));
  ck_assert(y.data.len == 3 && memcmp(y.data.at, "who", 3) == 0);
  ck_assert_uint_eq(x.acl->count, y.acl->count);
  ck_assert_uint_eq(x.parent_acl->count, y.parent_acl->count);
  ck_assert(x.acl != y.acl);
  ck_assert(y.persistent_parents && y.unsure_when_suspended);
  ck_assert(y.fail_on_expiry && y.revocable && y.peek);
  ck_assert_uint_eq(y.max_queue, 3);
  ck_assert_int_eq(x.layout, y.layout);
  ck_assert_pstr_eq(x.prefix, y.prefix);
}

static void compare_semaphores(const lk_lock *a, const lk_lock *b)
{
  const lk_semaphore_plan *x = a->source.plan;
  const lk_semaphore_plan *y = b->source.plan;

  ck_assert_int_eq(y->permits, 5);
  ck_assert_uint_eq(y->take, 2);
  ck_assert_str_eq(x->limit_path, y->limit_path);
}

START_TEST(clone_has_the_options_of_its_original)
{
  const lk_layout layouts[] = {LK_LAYOUT_CURATOR, LK_LAYOUT_KAZOO,
                               LK_LAYOUT_NATIVE};
  unsigned compared = 0;

  begin();
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    for (kind k = MUTEX; k < KINDS; k++) {
      lk_lock *original, *clone;

      if (make(&original, k, layouts[i]) != 0)
        continue; /* this kind does not have the layout */
      clone = clone_of(original);
      compare_options(original, clone);
      if (k == SEMAPHORE)
        compare_semaphores(original, clone);
      lk_lock_free(original);
      lk_lock_free(clone);
      compared++;
    }
  }
  ck_assert_uint_eq(compared, 9);
  end();
}
END_TEST

static bool has_child_with(const char *path, const char *part)
{
  const char *child = model_child(&server, path, 0);

  return child != NULL && strstr(child, part) != NULL;
}

START_TEST(members_of_a_cloned_multilock_have_their_sides)
{
  lk_lock *original, *clone;

  begin();
  model_create(&server, "/m");
  ck_assert_int_eq(make(&original, MULTILOCK, LK_LAYOUT_CURATOR), 0);
  clone = clone_of(original);
  lk_lock_free(original);
  ck_assert_int_eq(lk_lock_acquire(clone, LK_NO_LIMIT, NULL, NULL), 0);
  model_run(&server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(clone), LK_LOCK_HELD);
  ck_assert(has_child_with("/m/z", "__READ__"));
  ck_assert(has_child_with("/m/a", "__WRIT__"));
  ck_assert(has_child_with("/m/b", "-lock-"));
  lk_lock_free(clone);
  end();
}
END_TEST

START_TEST(clones_are_owners_of_their_own)
{
  lk_lock *original, *clone;

  begin();
  clone_events = 0;
  ck_assert_int_eq(make(&original, SINGLE, LK_LAYOUT_CURATOR), 0);
  clone = clone_of(original);
  ck_assert_int_eq(lk_lock_acquire(original, LK_NO_LIMIT, NULL, NULL), 0);
  model_turn(&server);
  ck_assert_int_eq(lk_lock_acquire(clone, LK_NO_LIMIT, NULL, NULL), 0);
  model_run(&server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(original), LK_LOCK_HELD);
  ck_assert_int_eq(lk_lock_get_state(clone), LK_LOCK_ACQUIRING);
  ck_assert_uint_ge(clone_events, 1); /* WAITING */
  lk_lock_free(original);
  model_run(&server, T / 4);
  ck_assert_int_eq(lk_lock_get_state(clone), LK_LOCK_HELD);
  lk_lock_free(clone);
  end();
}
END_TEST

START_TEST(sides_are_cloned_with_their_lock)
{
  lk_lock_config config = full_config(LK_LAYOUT_CURATOR);
  lk_rwlock *original, *clone;
  lk_lock *side;

  begin();
  ck_assert_int_eq(
      lk_rwlock_new(&original, client.link->client, "/rw", &config), 0);
  ck_assert_int_eq(
      lk_lock_clone(&side, lk_rwlock_read_side(original), NULL, NULL),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_ptr_null(side);
  ck_assert_int_eq(lk_rwlock_clone(&clone, original, NULL, NULL), 0);
  compare_options(lk_rwlock_write_side(original), lk_rwlock_write_side(clone));
  ck_assert_int_eq(
      lk_lock_acquire(lk_rwlock_read_side(clone), LK_NO_LIMIT, NULL, NULL), 0);
  model_run(&server, T / 4);
  ck_assert(has_child_with("/rw", "__READ__"));
  lk_rwlock_free(original);
  lk_rwlock_free(clone);
  end();
}
END_TEST

START_TEST(clone_without_memory_is_refused)
{
  begin();
  for (kind k = MUTEX; k < KINDS; k++) {
    lk_lock *original, *clone;
    int err = LK_ERR_NO_MEMORY;

    ck_assert_int_eq(make(&original, k, LK_LAYOUT_CURATOR), 0);
    for (size_t n = 1; err != 0; n++) {
      client.mem.fail_at = client.mem.count + n;
      err = lk_lock_clone(&clone, original, NULL, NULL);
      client.mem.fail_at = 0;
      ck_assert(err == 0 || (err == LK_ERR_NO_MEMORY && clone == NULL));
    }
    lk_lock_free(clone);
    lk_lock_free(original);
  }
  end();
}
END_TEST

SUITE("clones", clone_has_the_options_of_its_original,
      members_of_a_cloned_multilock_have_their_sides,
      clones_are_owners_of_their_own, sides_are_cloned_with_their_lock,
      clone_without_memory_is_refused)
