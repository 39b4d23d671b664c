/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/ring.h"
#include "support/failing_mem.h"
#include "support/suite.h"

/* The items are ints. */
static void push(lk_ring *r, int v)
{
  ck_assert(lk__ring_reserve(r));
  *(int *)lk__ring_push(r) = v;
}

static int at(const lk_ring *r, size_t i)
{
  return *(int *)lk__ring_at(r, i);
}

START_TEST(items_come_out_in_order_round_the_end_of_the_array)
{
  failing_mem f;
  lk_ring r;
  int in = 1, out = 1;

  failing_mem_init(&f);
  lk__ring_init(&r, &f.mem, sizeof(int));
  for (int round = 0; round < 500; round++) {
    for (int i = 0; i < round % 13 + 1; i++)
      push(&r, in++);
    for (size_t i = 0; i < r.count; i++)
      ck_assert_int_eq(at(&r, i), out + (int)i);
    for (int i = 0; i < round % 11 + 1 && r.count > 0; i++) {
      ck_assert_int_eq(at(&r, 0), out++);
      lk__ring_pop(&r);
    }
  }
  ck_assert_int_eq(in - out, (int)r.count);
  lk__ring_free(&r);
  ck_assert_uint_eq(f.live, 0);
}
END_TEST

START_TEST(ring_in_use_allocates_no_more_memory)
{
  failing_mem f;
  lk_ring r;

  failing_mem_init(&f);
  lk__ring_init(&r, &f.mem, sizeof(int));
  for (int i = 0; i < 1000; i++) {
    push(&r, i);
    lk__ring_pop(&r);
  }
  ck_assert_uint_eq(f.count, 1);
  lk__ring_free(&r);
}
END_TEST

START_TEST(adding_to_reserved_room_cannot_fail)
{
  failing_mem f;
  lk_ring r;

  failing_mem_init(&f);
  lk__ring_init(&r, &f.mem, sizeof(int));
  for (int i = 0; i < 100; i++) {
    f.fail_at = 0;
    ck_assert(lk__ring_reserve(&r));
    f.fail_at = f.count + 1;
    *(int *)lk__ring_push(&r) = i;
    ck_assert_int_eq(at(&r, (size_t)i), i);
  }
  lk__ring_free(&r);
}
END_TEST

START_TEST(a_ring_that_cannot_grow_keeps_its_items)
{
  failing_mem f;
  lk_ring r;

  failing_mem_init(&f);
  lk__ring_init(&r, &f.mem, sizeof(int));
  /* The items then begin in the middle of the array and fill it. */
  for (int i = 0; i < 3; i++) {
    push(&r, 0);
    lk__ring_pop(&r);
  }
  for (int i = 0; i < 4; i++)
    push(&r, i);
  f.fail_at = f.count + 1;
  ck_assert(!lk__ring_reserve(&r));
  ck_assert_uint_eq(r.count, 4);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(at(&r, (size_t)i), i);
  lk__ring_free(&r);
}
END_TEST

START_TEST(impossible_size_of_a_ring_is_refused)
{
  failing_mem f;
  lk_ring r;

  failing_mem_init(&f);
  lk__ring_init(&r, &f.mem, SIZE_MAX / 2); /* the size of an item */
  ck_assert(!lk__ring_reserve(&r));
  /* Twice the number of items is 2. */
  lk__ring_init(&r, &f.mem, 1);
  r.cap = r.count = SIZE_MAX / 2 + 2;
  ck_assert(!lk__ring_reserve(&r));
  ck_assert_uint_eq(f.count, 0);
}
END_TEST

SUITE("ring", items_come_out_in_order_round_the_end_of_the_array,
      ring_in_use_allocates_no_more_memory, adding_to_reserved_room_cannot_fail,
      a_ring_that_cannot_grow_keeps_its_items,
      impossible_size_of_a_ring_is_refused)
