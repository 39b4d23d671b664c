/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/number.h"
#include "support/suite.h"

START_TEST(seconds_are_decimal_and_exact)
{
  static const struct {
    const char *text;
    int64_t ms;
  } good[] = {{"0", 0},         {"1", 1000},
              {".007", 7},      {"0.5", 500},
              {"5.", 5000},     {"30.25", 30250},
              {"0.0001", 1},    {"1.0000", 1000},
              {"1.0009", 1001}, {"2147483", 2147483000}};
  static const char *const bad[] = {
      "",    ".",   "-1",    "+1",      "1e3",
      " 1",  "1 ",  "1s",    "1,5",     "0x1",
      "nan", "..1", "1.2.3", "2147484", "99999999999999999999"};
  int64_t ms;

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    ck_assert_ptr_null(cli_number_seconds(good[i].text, &ms));
    ck_assert_int_eq(ms, good[i].ms);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_ptr_nonnull(cli_number_seconds(bad[i], &ms));
}
END_TEST

START_TEST(whole_numbers_keep_their_range)
{
  int64_t n;

  ck_assert_ptr_null(cli_number_whole("0", 0, 255, &n));
  ck_assert_int_eq(n, 0);
  ck_assert_ptr_null(cli_number_whole("255", 0, 255, &n));
  ck_assert_int_eq(n, 255);
  ck_assert_ptr_null(cli_number_whole("-1", -1, 9, &n));
  ck_assert_int_eq(n, -1);
  ck_assert_ptr_nonnull(cli_number_whole("256", 0, 255, &n));
  ck_assert_ptr_nonnull(cli_number_whole("-2", -1, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("", 0, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("-", -9, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("1.0", 0, 9, &n));
  ck_assert_ptr_nonnull(
      cli_number_whole("99999999999999999999999", 0, INT64_MAX, &n));
}
END_TEST

SUITE("numbers", seconds_are_decimal_and_exact, whole_numbers_keep_their_range)
