/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "support/failing_mem.h"
#include "support/suite.h"

START_TEST(new_memory_is_zero_and_failures_are_reported)
{
  failing_mem f;
  static const char zeros[100];

  failing_mem_init(&f);
  char *p = lk__mem_new(&f.mem, sizeof zeros);
  ck_assert_ptr_nonnull(p);
  ck_assert_mem_eq(p, zeros, sizeof zeros);
  char *text = lk__mem_text(&f.mem, "text");
  ck_assert_str_eq(text, "text");
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_resize(&f.mem, text, 1000));
  ck_assert_str_eq(text, "text");
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_new(&f.mem, 1));
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_text(&f.mem, "text"));
  lk__mem_free(&f.mem, p);
  lk__mem_free(&f.mem, text);
  lk__mem_free(&f.mem, NULL);
  ck_assert_uint_eq(f.live, 0);
}
END_TEST

START_TEST(default_memory_is_the_c_library)
{
  char *p = lk__mem_new(&lk__mem_libc, 10);

  ck_assert_ptr_nonnull(p);
  p = lk__mem_resize(&lk__mem_libc, p, 100000);
  ck_assert_ptr_nonnull(p);
  ck_assert_int_eq(p[9], 0);
  p[99999] = 1;
  ck_assert_ptr_null(lk__mem_resize(&lk__mem_libc, p, 0));
}
END_TEST

SUITE("mem", new_memory_is_zero_and_failures_are_reported,
      default_memory_is_the_c_library)
