/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/buf.h"
#include "support/failing_mem.h"
#include "support/suite.h"

START_TEST(bytes_leave_a_buffer_in_order)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};
  unsigned char in = 0, out = 0;

  failing_mem_init(&f);
  /* Some bytes always stay in the buffer, so that it must move them and grow.
   */
  for (size_t round = 0; round < 2000; round++) {
    for (size_t i = 0; i < round % 97 + 5; i++, in++)
      ck_assert(lk__buf_append(&b, &in, 1));
    while (lk__buf_len(&b) > round % 89) {
      const unsigned char *oldest = lk__buf_bytes(&b);

      ck_assert_ptr_nonnull(oldest);
      ck_assert_uint_eq(*oldest, out++);
      lk__buf_consume(&b, 1);
    }
  }
  ck_assert_uint_le(b.cap, 1024);
  lk__buf_free(&b);
  ck_assert_uint_eq(f.live, 0);
}
END_TEST

START_TEST(buffer_in_use_allocates_no_more_memory)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};
  char bytes[100] = "";
  size_t count = 0; /* allocations of the first eleven rounds */

  failing_mem_init(&f);
  ck_assert(lk__buf_append(&b, bytes, 100));
  for (int i = 0; i < 1000; i++) {
    ck_assert(lk__buf_append(&b, bytes, 100));
    lk__buf_consume(&b, 100);
    if (i == 10)
      count = f.count;
  }
  ck_assert_uint_eq(f.count, count);
  ck_assert_uint_eq(lk__buf_len(&b), 100);
  lk__buf_free(&b);
}
END_TEST

START_TEST(a_buffer_that_cannot_grow_keeps_its_bytes)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};
  char more[4096] = "";
  const unsigned char *before;

  failing_mem_init(&f);
  ck_assert(lk__buf_append(&b, "_hello", 6));
  lk__buf_consume(&b, 1);
  before = lk__buf_bytes(&b);
  f.fail_at = f.count + 1;
  ck_assert(!lk__buf_append(&b, more, sizeof more));
  ck_assert_ptr_eq(lk__buf_bytes(&b), before);
  ck_assert_mem_eq(lk__buf_bytes(&b), "hello", 5);
  ck_assert_uint_eq(lk__buf_len(&b), 5);
  ck_assert(lk__buf_append(&b, more, sizeof more));
  ck_assert_mem_eq(lk__buf_bytes(&b), "hello", 5);
  ck_assert_uint_eq(lk__buf_len(&b), 5 + sizeof more);
  lk__buf_free(&b);
}
END_TEST

START_TEST(impossible_size_of_a_buffer_is_refused)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};

  failing_mem_init(&f);
  ck_assert(lk__buf_append(&b, "x", 1));
  ck_assert(!lk__buf_reserve(&b, SIZE_MAX));
  ck_assert(!lk__buf_reserve(&b, SIZE_MAX - 1));
  ck_assert_uint_eq(lk__buf_len(&b), 1);
  lk__buf_free(&b);
}
END_TEST

START_TEST(only_an_empty_buffer_frees_memory)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};
  char bytes[2000] = "";

  failing_mem_init(&f);
  lk__buf_trim(&b, 0);
  ck_assert(lk__buf_append(&b, bytes, sizeof bytes));
  lk__buf_trim(&b, 0);
  ck_assert_uint_eq(lk__buf_len(&b), sizeof bytes);
  lk__buf_consume(&b, sizeof bytes);
  lk__buf_trim(&b, b.cap);
  ck_assert_uint_eq(f.live, 1);
  lk__buf_trim(&b, b.cap - 1);
  ck_assert_uint_eq(f.live, 0);
  ck_assert(lk__buf_append(&b, "x", 1));
  lk__buf_free(&b);
}
END_TEST

START_TEST(empty_additions_need_no_memory)
{
  failing_mem f;
  lk_buf b = {.mem = &f.mem};

  failing_mem_init(&f);
  ck_assert(lk__buf_append(&b, NULL, 0));
  lk__buf_consume(&b, 0);
  ck_assert_ptr_null(lk__buf_bytes(&b));
  ck_assert_uint_eq(f.count, 0);
  lk__buf_free(&b);
}
END_TEST

SUITE("buf", bytes_leave_a_buffer_in_order,
      buffer_in_use_allocates_no_more_memory,
      a_buffer_that_cannot_grow_keeps_its_bytes,
      impossible_size_of_a_buffer_is_refused, only_an_empty_buffer_frees_memory,
      empty_additions_need_no_memory)
