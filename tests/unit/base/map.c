/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/map.h"
#include "support/failing_mem.h"
#include "support/suite.h"

#include <stdio.h>

enum { COUNT = 1000 };

typedef struct entry {
  lk_map_node node;
  char key[16];
} entry;

static entry entries[COUNT];
static failing_mem mem;
static lk_map map;

static void set_keys(void)
{
  for (int i = 0; i < COUNT; i++)
    snprintf(entries[i].key, sizeof entries[i].key, "/n/%d", i);
}

static bool add(entry *e)
{
  return lk__map_add(&map, &e->node, e->key, strlen(e->key));
}

static lk_map_node *find(const char *key)
{
  return lk__map_find(&map, key, strlen(key));
}

static void begin(void)
{
  set_keys();
  failing_mem_init(&mem);
  ck_assert(lk__map_init(&map, &mem.mem));
}

START_TEST(added_key_is_found_until_it_is_removed)
{
  begin();
  for (size_t i = 0; i < COUNT; i++)
    ck_assert(add(&entries[i]));
  ck_assert_uint_eq(lk__map_count(&map), COUNT);
  for (size_t i = 0; i < COUNT; i += 2)
    lk__map_remove(&map, &entries[i].node);
  ck_assert_uint_eq(lk__map_count(&map), COUNT / 2);
  for (size_t i = 0; i < COUNT; i++)
    ck_assert_ptr_eq(find(entries[i].key),
                     i % 2 == 0 ? NULL : &entries[i].node);
  ck_assert_ptr_null(find("/n"));
  ck_assert_ptr_null(find("/n/1000"));
  lk__map_free(&map);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(a_key_is_its_bytes_and_its_length)
{
  begin();
  ck_assert(lk__map_add(&map, &entries[0].node, "/a/b", 2));
  ck_assert_ptr_eq(find("/a"), &entries[0].node);
  ck_assert_ptr_null(find("/a/b"));
  ck_assert_ptr_null(find("/"));
  ck_assert_ptr_null(find(""));
  ck_assert(!lk__map_add(&map, &entries[1].node, "", 0));
  lk__map_free(&map);
}
END_TEST

START_TEST(map_iteration_is_in_order_and_allows_removal)
{
  size_t i = 0;

  begin();
  ck_assert_ptr_null(lk__map_first(&map));
  for (i = 0; i < 100; i++)
    ck_assert(add(&entries[i]));
  i = 0;
  for (lk_map_node *n = lk__map_first(&map), *after; n != NULL; n = after) {
    after = lk__map_next(n);
    ck_assert_ptr_eq(n, &entries[i++].node);
    lk__map_remove(&map, n);
  }
  ck_assert_uint_eq(i, 100);
  ck_assert_uint_eq(lk__map_count(&map), 0);
  lk__map_free(&map);
}
END_TEST

START_TEST(adding_and_removing_a_key_allocates_nothing)
{
  size_t count;

  begin();
  count = mem.count;
  for (int i = 0; i < 1000; i++) {
    ck_assert(add(&entries[0]));
    lk__map_remove(&map, &entries[0].node);
  }
  ck_assert_uint_eq(mem.count, count);
  lk__map_free(&map);
}
END_TEST

START_TEST(empty_map_frees_the_memory_of_many_keys)
{
  begin();
  size_t least = mem.held;

  for (size_t i = 0; i < COUNT; i++)
    ck_assert(add(&entries[i]));
  size_t most = mem.held;

  lk__map_trim(&map, 16); /* has no effect while the map has entries */
  ck_assert_ptr_eq(find("/n/7"), &entries[7].node);
  for (size_t i = 0; i < COUNT; i++)
    lk__map_remove(&map, &entries[i].node);
  lk__map_trim(&map, COUNT * 10); /* has no effect on a smaller map */
  ck_assert_uint_eq(mem.held, most);
  /* Either allocation, of a smaller table and of its buckets, may fail. */
  for (size_t i = 1; i <= 2; i++) {
    mem.fail_at = mem.count + i;
    lk__map_trim(&map, 16);
    ck_assert_uint_eq(mem.held, most);
  }
  lk__map_trim(&map, 16);
  ck_assert_uint_eq(mem.held, least);
  for (size_t i = 0; i < COUNT; i++)
    ck_assert(add(&entries[i]));
  ck_assert_ptr_eq(lk__map_first(&map), &entries[0].node);
  lk__map_free(&map);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(map_without_memory_is_refused)
{
  for (size_t n = 1; n <= 2; n++) {
    failing_mem_init(&mem);
    mem.fail_at = n;
    ck_assert(!lk__map_init(&map, &mem.mem));
    ck_assert_uint_eq(mem.count, n);
    ck_assert_ptr_null(find("/a"));
    ck_assert_uint_eq(lk__map_count(&map), 0);
    ck_assert_ptr_null(lk__map_first(&map));
    lk__map_free(&map);
    ck_assert_uint_eq(mem.live, 0);
  }
}
END_TEST

/* Add all entries. Returns how many could be added; the others must be absent.
 */
static size_t add_all(void)
{
  size_t added = 0;

  for (size_t i = 0; i < COUNT; i++) {
    bool was_added = add(&entries[i]);

    if (was_added)
      added++;
    ck_assert_ptr_eq(find(entries[i].key), was_added ? &entries[i].node : NULL);
    ck_assert_uint_eq(lk__map_count(&map), added);
  }
  return added;
}

START_TEST(failed_addition_leaves_the_map_unchanged)
{
  size_t n = 0;

  do {
    set_keys();
    failing_mem_init(&mem);
    mem.for_good = true;
    ck_assert(lk__map_init(&map, &mem.mem));
    mem.fail_at = mem.count + ++n;
    size_t added = add_all();

    ck_assert_int_eq(added < COUNT, failing_mem_failed(&mem));
    lk__map_free(&map);
    ck_assert_uint_eq(mem.live, 0);
  } while (failing_mem_failed(&mem));
  ck_assert_uint_gt(n, 2); /* the additions need a few allocations */
}
END_TEST

START_TEST(map_may_begin_in_memory_with_any_bytes)
{
  memset(&map, 0xff, sizeof map);
  begin();
  ck_assert_uint_eq(lk__map_count(&map), 0);
  ck_assert(add(&entries[0]));
  ck_assert_ptr_eq(find(entries[0].key), &entries[0].node);
  lk__map_free(&map);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

SUITE("map", added_key_is_found_until_it_is_removed,
      a_key_is_its_bytes_and_its_length,
      map_iteration_is_in_order_and_allows_removal,
      adding_and_removing_a_key_allocates_nothing,
      empty_map_frees_the_memory_of_many_keys, map_without_memory_is_refused,
      failed_addition_leaves_the_map_unchanged,
      map_may_begin_in_memory_with_any_bytes)
