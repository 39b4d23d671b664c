/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/arena.h"
#include "support/failing_mem.h"
#include "support/suite.h"

#include <stdalign.h>

static failing_mem mem;
static lk_arena arena;

static void begin(void)
{
  failing_mem_init(&mem);
  memset(&arena, 0, sizeof arena);
  arena.mem = &mem.mem;
}

/* Whether all bytes have this value. An assertion for each byte would take
   long, since Check writes each assertion to a pipe. */
static bool all_bytes_are(const unsigned char *bytes, size_t len, size_t value)
{
  for (size_t i = 0; i < len; i++)
    if (bytes[i] != value)
      return false;
  return true;
}

/* Take `count` blocks of different sizes, fill them, and check that none
   overlaps another. */
static void take_blocks(size_t count)
{
  unsigned char *taken[100];

  for (size_t i = 0; i < count; i++) {
    taken[i] = lk__arena_take(&arena, i + 1, 7);
    ck_assert_ptr_nonnull(taken[i]);
    ck_assert_uint_eq((uintptr_t)taken[i] % alignof(max_align_t), 0);
    ck_assert(all_bytes_are(taken[i], (i + 1) * 7, 0));
    memset(taken[i], (int)(i + 1), (i + 1) * 7);
  }
  for (size_t i = 0; i < count; i++)
    ck_assert(all_bytes_are(taken[i], (i + 1) * 7, i + 1));
}

START_TEST(allocations_are_zeroed_aligned_and_disjoint)
{
  begin();
  take_blocks(100);
  lk__arena_reset(&arena, SIZE_MAX);
  take_blocks(100);
  lk__arena_free(&arena);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(after_the_first_reply_nothing_is_allocated)
{
  size_t count;

  begin();
  take_blocks(100);
  ck_assert_uint_gt(mem.live, 1);
  lk__arena_reset(&arena, SIZE_MAX);
  ck_assert_uint_eq(mem.live, 1);
  count = mem.count;
  for (size_t i = 0; i < 100; i++) {
    take_blocks(100 - i);
    lk__arena_reset(&arena, SIZE_MAX);
  }
  ck_assert_uint_eq(mem.count, count);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(arena_keeps_no_more_than_its_limit)
{
  begin();
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 50000));
  lk__arena_reset(&arena, 50000);
  ck_assert_uint_eq(mem.live, 1);
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 50000));
  lk__arena_reset(&arena, 49999);
  ck_assert_uint_eq(mem.live, 0);
  take_blocks(100);
  lk__arena_reset(&arena, 1000);
  ck_assert_uint_eq(mem.live, 0);
  lk__arena_reset(&arena, 0);
  take_blocks(10);
  lk__arena_free(&arena);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(a_product_that_is_too_large_is_refused)
{
  begin();
  ck_assert_ptr_null(lk__arena_take(&arena, SIZE_MAX / 2, 3));
  ck_assert_ptr_null(lk__arena_take(&arena, SIZE_MAX, 1));
  ck_assert_ptr_null(lk__arena_take(&arena, SIZE_MAX - 16, 1));
  ck_assert_ptr_null(lk__arena_take(&arena, SIZE_MAX / 16 + 2, 16));
  ck_assert_uint_eq(mem.live, 0);
  take_blocks(5);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(allocation_of_zero_bytes_succeeds)
{
  begin();
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 0, 8));
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 8, 0));
  lk__arena_free(&arena);
}
END_TEST

START_TEST(allocations_stay_valid_without_memory)
{
  char *first;

  begin();
  mem.fail_at = 1;
  ck_assert_ptr_null(lk__arena_take(&arena, 1, 1));
  first = lk__arena_take(&arena, 1, 6);
  ck_assert_ptr_nonnull(first);
  memcpy(first, "first", 6);
  mem.fail_at = mem.count + 1;
  ck_assert_ptr_null(lk__arena_take(&arena, 1, 100000));
  ck_assert_str_eq(first, "first");
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 100000));
  ck_assert_str_eq(first, "first");
  mem.fail_at = mem.count + 1;
  /* There is no memory for the one block to be kept, so nothing is kept. */
  lk__arena_reset(&arena, SIZE_MAX);
  ck_assert_uint_eq(mem.live, 0);
  take_blocks(10);
  lk__arena_free(&arena);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

START_TEST(blocks_double)
{
  begin();
  /* A million bytes take few allocations. */
  for (size_t i = 0; i < 1000; i++)
    ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 1000));
  ck_assert_uint_le(mem.count, 10);
  lk__arena_free(&arena);
}
END_TEST

/* Take 3008 bytes; the first block of the arena has no room for all. */
static void take_3008_bytes(void)
{
  begin();
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 1008));
  ck_assert_ptr_nonnull(lk__arena_take(&arena, 1, 2000));
  ck_assert_uint_eq(mem.live, 2);
}

START_TEST(used_memory_is_kept_in_one_block_up_to_the_limit)
{
  take_3008_bytes();
  lk__arena_reset(&arena, 3007);
  ck_assert_uint_eq(mem.live, 0);
  take_3008_bytes();
  lk__arena_reset(&arena, 3008);
  ck_assert_uint_eq(mem.live, 1);
  lk__arena_free(&arena);
}
END_TEST

SUITE("arena", allocations_are_zeroed_aligned_and_disjoint,
      after_the_first_reply_nothing_is_allocated,
      arena_keeps_no_more_than_its_limit,
      a_product_that_is_too_large_is_refused, allocation_of_zero_bytes_succeeds,
      allocations_stay_valid_without_memory, blocks_double,
      used_memory_is_kept_in_one_block_up_to_the_limit)
