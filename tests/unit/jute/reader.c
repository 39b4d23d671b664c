/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"
#include "support/suite.h"
#include "vectors/vectors.h"

static lk_reader in;
static unsigned char *block;

/* Let `in` read a block of exactly these bytes. */
static void set_input(const char *bytes, size_t len)
{
  free(block);
  block = exactly(bytes, len);
  lk__reader_init(&in, block, len);
}

/* Let `in` read the bytes of a string literal, without the NUL that C adds. */
#define SET_INPUT(bytes) set_input(bytes, sizeof(bytes) - 1)

/* Check that the reader has failed, and now yields zeros. */
static void expect_failed_reader(void)
{
  bool null = false;

  ck_assert_int_eq(in.err, LK_ERR_MARSHALLING);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  ck_assert_int_eq(lk__reader_int(&in), 0);
  ck_assert_int_eq(lk__reader_long(&in), 0);
  ck_assert(!lk__reader_bool(&in));
  ck_assert_ptr_null(lk__reader_bytes(&in).at);
  ck_assert_uint_eq(lk__reader_count(&in, 1, &null), 0);
  ck_assert(null);
  ck_assert_int_eq(in.err, LK_ERR_MARSHALLING);
}

START_TEST(numbers_are_big_endian_twos_complement)
{
  SET_INPUT("\x01\x02\x03\x04\xff\xff\xff\xff\x80\x00\x00\x00\x7f\xff\xff\xff");
  ck_assert_int_eq(lk__reader_int(&in), 0x01020304);
  ck_assert_int_eq(lk__reader_int(&in), -1);
  ck_assert_int_eq(lk__reader_int(&in), INT32_MIN);
  ck_assert_int_eq(lk__reader_int(&in), INT32_MAX);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  SET_INPUT("\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xfe"
            "\x80\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff");
  ck_assert_int_eq(lk__reader_long(&in), 0x0102030405060708);
  ck_assert_int_eq(lk__reader_long(&in), -2);
  ck_assert_int_eq(lk__reader_long(&in), INT64_MIN);
  ck_assert_int_eq(lk__reader_long(&in), INT64_MAX);
  ck_assert_int_eq(in.err, 0);
}
END_TEST

START_TEST(any_byte_but_zero_is_true)
{
  SET_INPUT("\x00\x01\x02\xff");
  ck_assert(!lk__reader_bool(&in));
  ck_assert(lk__reader_bool(&in));
  ck_assert(lk__reader_bool(&in));
  ck_assert(lk__reader_bool(&in));
  ck_assert_int_eq(in.err, 0);
}
END_TEST

START_TEST(truncated_number_is_refused)
{
  for (size_t len = 0; len < 4; len++) {
    set_input("\x01\x01\x01", len);
    ck_assert_int_eq(lk__reader_int(&in), 0);
    expect_failed_reader();
  }
  for (size_t len = 0; len < 8; len++) {
    set_input("\x01\x01\x01\x01\x01\x01\x01", len);
    ck_assert_int_eq(lk__reader_long(&in), 0);
    expect_failed_reader();
  }
  set_input("", 0);
  ck_assert(!lk__reader_bool(&in));
  expect_failed_reader();
}
END_TEST

START_TEST(bytes_are_views_and_null_is_not_empty)
{
  lk_bytes b;

  SET_INPUT(
      "\x00\x00\x00\x02hi\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00");
  b = lk__reader_bytes(&in);
  ck_assert_ptr_eq(b.at, block + 4);
  ck_assert_uint_eq(b.len, 2);
  b = lk__reader_bytes(&in);
  ck_assert_ptr_nonnull(b.at);
  ck_assert_uint_eq(b.len, 0);
  b = lk__reader_bytes(&in);
  ck_assert_ptr_null(b.at);
  ck_assert_uint_eq(b.len, 0);
  b = lk__reader_bytes(&in); /* an empty buffer at the end of the block */
  ck_assert_ptr_nonnull(b.at);
  ck_assert_int_eq(in.err, 0);
}
END_TEST

START_TEST(a_length_that_does_not_fit_is_refused)
{
  static const char lengths[][5] = {"\x00\x00\x00\x04", "\xff\xff\xff\xfe",
                                    "\x80\x00\x00\x00", "\x7f\xff\xff\xff",
                                    "\x00\x00\x01\x00", "\xff\xff\xff\xfc"};

  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    char bytes[7] = "....abc"; /* a length and three bytes */

    memcpy(bytes, lengths[i], 4);
    set_input(bytes, sizeof bytes);
    ck_assert_ptr_null(lk__reader_bytes(&in).at);
    expect_failed_reader();
  }
  for (size_t len = 0; len < 4; len++) {
    set_input("\x00\x00\x00", len);
    ck_assert_ptr_null(lk__reader_bytes(&in).at);
    expect_failed_reader();
  }
}
END_TEST

START_TEST(a_count_needs_enough_bytes_for_its_smallest_elements)
{
  enum { LEAST = 4, NOTHING = 0 }; /* bytes of the smallest element */
  bool null = true;

  SET_INPUT("\x00\x00\x00\x02________");
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 2);
  ck_assert(!null);
  ck_assert_uint_eq(lk__reader_left(&in), 8);
  SET_INPUT("\x00\x00\x00\x02_______");
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 0);
  expect_failed_reader();
  SET_INPUT("\x00\x00\x00\x00");
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 0);
  ck_assert(!null);
  SET_INPUT("\xff\xff\xff\xff");
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 0);
  ck_assert(null);
  ck_assert_int_eq(in.err, 0);
  SET_INPUT("\xff\xff\xff\xfe________");
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 0);
  expect_failed_reader();
  SET_INPUT("\x40\x00\x00\x01____"); /* this count times 4 overflows to 4 */
  ck_assert_uint_eq(lk__reader_count(&in, LEAST, &null), 0);
  expect_failed_reader();
  SET_INPUT(
      "\x7f\xff\xff\xff____"); /* a count of elements that need no bytes */
  ck_assert_uint_eq(lk__reader_count(&in, NOTHING, &null), 0);
  expect_failed_reader();
}
END_TEST

START_TEST(a_stat_has_68_bytes)
{
  static const char bytes[] =
      "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02"
      "\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04"
      "\x00\x00\x00\x05\xff\xff\xff\xff\x80\x00\x00\x00"
      "\x81\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x0a"
      "\xff\xff\xff\xff\xff\xff\xff\xfe";
  lk_stat s;

  SET_INPUT(bytes);
  lk__reader_stat(&in, &s);
  ck_assert_int_eq(in.err, 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  ck_assert_int_eq(s.czxid, 1);
  ck_assert_int_eq(s.mzxid, 2);
  ck_assert_int_eq(s.ctime, 3);
  ck_assert_int_eq(s.mtime, 4);
  ck_assert_int_eq(s.version, 5);
  ck_assert_int_eq(s.cversion, -1);
  ck_assert_int_eq(s.aversion, INT32_MIN);
  ck_assert_uint_eq((uint64_t)s.ephemeral_owner, 0x8100000000000000);
  ck_assert_int_eq(s.data_length, 9);
  ck_assert_int_eq(s.num_children, 10);
  ck_assert_int_eq(s.pzxid, -2);
  for (size_t len = 0; len < 68; len++) {
    set_input(bytes, len);
    lk__reader_stat(&in, &s);
    ck_assert_int_eq(s.czxid, 0);
    ck_assert_int_eq(s.pzxid, 0);
    expect_failed_reader();
  }
}
END_TEST

START_TEST(the_first_failure_is_the_one_reported)
{
  SET_INPUT("\x00\x00\x00\x01");
  lk__reader_fail(&in, LK_ERR_NO_MEMORY);
  ck_assert_int_eq(lk__reader_int(&in), 0);
  lk__reader_fail(&in, LK_ERR_MARSHALLING);
  ck_assert_int_eq(in.err, LK_ERR_NO_MEMORY);
}
END_TEST

START_TEST(empty_input_can_be_read)
{
  lk__reader_init(&in, NULL, 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  ck_assert_int_eq(lk__reader_int(&in), 0);
  expect_failed_reader();
}
END_TEST

SUITE("reader", numbers_are_big_endian_twos_complement,
      any_byte_but_zero_is_true, truncated_number_is_refused,
      bytes_are_views_and_null_is_not_empty,
      a_length_that_does_not_fit_is_refused,
      a_count_needs_enough_bytes_for_its_smallest_elements, a_stat_has_68_bytes,
      the_first_failure_is_the_one_reported, empty_input_can_be_read)
