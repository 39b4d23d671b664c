/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "support/suite.h"
#include "vectors/vectors.h"

static const lk_stat stat = {1,         2,         3, 4,  5, -1,
                             INT32_MIN, INT64_MIN, 9, 10, -2};

/* What write_all() writes. */
static const char expected[] =
    "\x01\x02\x03\x04\xff\xff\xff\xff\x80\x00\x00\x00"   /* ints */
    "\x01\x02\x03\x04\x05\x06\x07\x08"                   /* a long */
    "\x80\x00\x00\x00\x00\x00\x00\x01"                   /* a long */
    "\x00\x01"                                           /* bools */
    "\x00\x00\x00\x02hi\x00\x00\x00\x00\xff\xff\xff\xff" /* buffers */
    "\x00\x00\x00\x07raw" /* a count, bytes without a length, the Stat */
    "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02"
    "\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04"
    "\x00\x00\x00\x05\xff\xff\xff\xff\x80\x00\x00\x00"
    "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x0a"
    "\xff\xff\xff\xff\xff\xff\xff\xfe";
enum { LEN = sizeof expected - 1 };

static void write_all(lk_writer *w)
{
  lk__writer_int(w, 0x01020304);
  lk__writer_int(w, -1);
  lk__writer_int(w, INT32_MIN);
  lk__writer_long(w, 0x0102030405060708);
  lk__writer_long(w, INT64_MIN + 1);
  lk__writer_bool(w, false);
  lk__writer_bool(w, true);
  lk__writer_bytes(w, lk_text("hi"));
  lk__writer_bytes(w, lk_text(""));
  lk__writer_bytes(w, lk_text(NULL));
  lk__writer_count(w, 7);
  lk__writer_raw(w, "raw", 3);
  lk__writer_raw(w, NULL, 0);
  lk__writer_stat(w, &stat);
}

START_TEST(values_are_written_as_jute_specifies)
{
  unsigned char buf[LEN];
  lk_writer w;

  lk__writer_init(&w, buf, sizeof buf);
  write_all(&w);
  ck_assert_int_eq(w.err, 0);
  ck_assert_uint_eq(w.len, LEN);
  ck_assert_mem_eq(buf, expected, LEN);
}
END_TEST

START_TEST(a_full_writer_counts_on_and_writes_nothing_past_its_end)
{
  for (size_t cap = 0; cap < LEN; cap++) {
    unsigned char *buf = exactly(expected, cap);
    lk_writer w;

    lk__writer_init(&w, buf, cap);
    write_all(&w);
    ck_assert_int_eq(w.err, 0);
    ck_assert_uint_eq(w.len, LEN);
    /* The writer writes each value completely or not at all. The other bytes
       keep their values, the expected ones. */
    if (cap > 0)
      ck_assert_mem_eq(buf, expected, cap);
    free(buf);
  }
}
END_TEST

START_TEST(nothing_is_written_after_a_value_without_room)
{
  unsigned char buf[6] = "......";
  lk_writer w;

  lk__writer_init(&w, buf, 6);
  lk__writer_long(&w, 0);
  lk__writer_bool(&w, true);
  ck_assert_uint_eq(w.len, 9);
  ck_assert_mem_eq(buf, "......", 6);
}
END_TEST

START_TEST(a_patch_that_does_not_fit_changes_nothing)
{
  unsigned char *buf = exactly("abcdefgh", 8);
  lk_writer w;

  lk__writer_init(&w, buf, 8);
  lk__writer_patch(&w, 4, 0x41424344);
  ck_assert_mem_eq(buf, "abcdABCD", 8);
  lk__writer_patch(&w, 5, 0);
  lk__writer_patch(&w, 8, 0);
  lk__writer_patch(&w, 9, 0);
  lk__writer_patch(&w, SIZE_MAX, 0);
  ck_assert_mem_eq(buf, "abcdABCD", 8);
  lk__writer_patch(&w, 0, -1);
  ck_assert_mem_eq(buf, "\xff\xff\xff\xff", 4);
  free(buf);
}
END_TEST

START_TEST(length_beyond_an_int_of_jute_is_refused)
{
  lk_writer w;

  lk__writer_init(&w, NULL, 0);
  lk__writer_bytes(&w, lk_bytes_of("", (size_t)INT32_MAX + 1));
  ck_assert_int_eq(w.err, LK_ERR_TOO_BIG);
  lk__writer_init(&w, NULL, 0);
  lk__writer_count(&w, (size_t)INT32_MAX + 1);
  ck_assert_int_eq(w.err, LK_ERR_TOO_BIG);
  lk__writer_init(&w, NULL, 0);
  lk__writer_bytes(&w, lk_bytes_of("", INT32_MAX));
  ck_assert_int_eq(w.err, 0);
  ck_assert_uint_eq(w.len, (size_t)INT32_MAX + 4);
}
END_TEST

START_TEST(a_sum_of_lengths_does_not_wrap_around)
{
  lk_writer w;

  lk__writer_init(&w, NULL, 0);
  lk__writer_raw(&w, "", SIZE_MAX - 2);
  ck_assert_int_eq(w.err, 0);
  lk__writer_int(&w, 1);
  ck_assert_int_eq(w.err, LK_ERR_TOO_BIG);
  ck_assert_uint_ge(w.len, SIZE_MAX - 2);
}
END_TEST

SUITE("writer", values_are_written_as_jute_specifies,
      a_full_writer_counts_on_and_writes_nothing_past_its_end,
      nothing_is_written_after_a_value_without_room,
      a_patch_that_does_not_fit_changes_nothing,
      length_beyond_an_int_of_jute_is_refused,
      a_sum_of_lengths_does_not_wrap_around)
