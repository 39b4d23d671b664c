/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/text.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

#include <time.h>

START_TEST(utf8_is_checked_as_the_standard_specifies)
{
  static const char *const good[] = {"",
                                     "a",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xe0\xbf\xbf",
                                     "\xed\x80\x80",
                                     "\xed\x9f\xbf",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf0\xbf\xbf\xbf",
                                     "\xf4\x80\x80\x80",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {"\x80",
                                    "\xbf",
                                    "\xc0\x80",
                                    "\xc1\xbf",
                                    "\xc2",
                                    "\xe0\x9f\xbf",
                                    "\xe0\xc0\x80",
                                    "\xed\x7f\x80",
                                    "\xed\xa0\x80",
                                    "\xe2\x82",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf0\xc0\x80\x80",
                                    "\xf4\x7f\x80\x80",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80\x80",
                                    "\xff",
                                    "\xe2\x28\xa1",
                                    "\xf0\x9f\x98\x2e"};

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert(cli_utf8_ok(lk_text(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert(!cli_utf8_ok(lk_text(bad[i])));
}
END_TEST

START_TEST(foreign_text_is_escaped_for_the_terminal)
{
  cli_text t = {0};

  cli_text_add_printable(&t,
                         BYTES("h\xc3\xb6st\x1b[2J\n\x00 \x7f\xc2\x9b\xff"));
  expect_text(&t, "h\xc3\xb6st\\x1b[2J\\x0a\\x00 \\x7f\\xc2\\x9b\\xff");
  /* U+202E shows the rest of the line from right to left, U+2028 ends it. */
  cli_text_add_printable(&t, lk_text("\xe2\x80\xae \xe2\x80\xa8 \xe2\x82\xac"));
  expect_text(&t, "\\xe2\\x80\\xae \\xe2\\x80\\xa8 \xe2\x82\xac");
}
END_TEST

START_TEST(control_characters_of_a_message_are_masked)
{
  char text[] = "a\x1b[1m\xc3\xb6\xff\xc2\x9b\n\xe2\x80\xae.";

  cli_text_mask_controls(text);
  ck_assert_str_eq(text, "a?[1m\xc3\xb6?\?\?\?\?\?\?.");
}
END_TEST

START_TEST(base64_is_padded)
{
  cli_text t = {0};

  cli_text_base64(&t, BYTES("\xff"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, BYTES("\xff\xfe"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, BYTES("\xff\xfe\xfd\0"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, lk_bytes_of("\0\xff\xff", 1));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, lk_bytes_of("\0\0\xff", 2));
  expect_text(&t, "/w== //4= //79AA== AA== AAA=");
}
END_TEST

START_TEST(times_are_rfc_3339_in_utc)
{
  cli_text t = {0};

  cli_text_time(&t, 1700000000123);
  cli_text_puts(&t, " ");
  cli_text_time(&t, -1);
  expect_text(&t, "2023-11-14T22:13:20.123Z 1969-12-31T23:59:59.999Z");
}
END_TEST

START_TEST(time_beyond_time_t_is_unknown)
{
  cli_text t = {0};
  bool fits = sizeof(time_t) > 4; /* 32 bits end in 2038 */

  cli_text_time(&t, 4102444800000);
  expect_text(&t, fits ? "2100-01-01T00:00:00.000Z" : "unknown");
}
END_TEST

START_TEST(text_grows_and_counts_what_was_printed)
{
  cli_text t = {0};

  for (int i = 0; i < 1000; i++)
    cli_text_printf(&t, "%d,", i);
  /* 10 numbers of one digit, 90 of two, 900 of three, and commas. */
  const size_t len = 10 * 2 + 90 * 3 + 900 * 4;

  ck_assert_uint_eq(t.len, len);
  ck_assert_str_eq(cli_text_end(&t) + len - strlen("998,999,"), "998,999,");
  cli_text_free(&t);
}
END_TEST

SUITE("text", utf8_is_checked_as_the_standard_specifies,
      foreign_text_is_escaped_for_the_terminal,
      control_characters_of_a_message_are_masked, base64_is_padded,
      times_are_rfc_3339_in_utc, time_beyond_time_t_is_unknown,
      text_grows_and_counts_what_was_printed)
