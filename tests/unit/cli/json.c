/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/json.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

START_TEST(json_has_commas_between_and_nowhere_else)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_open(&j, NULL, '{');
  cli_json_open(&j, "a", '[');
  cli_json_number(&j, NULL, -1);
  cli_json_number(&j, NULL, 2);
  cli_json_close(&j, ']');
  cli_json_open(&j, "b", '{');
  cli_json_close(&j, '}');
  cli_json_uint64(&j, "c", UINT64_MAX);
  cli_json_hex(&j, "d", UINT64_MAX);
  cli_json_text(&j, "e", lk_text(NULL));
  cli_json_time(&j, "f", 0);
  cli_json_close(&j, '}');
  expect_text(&t, "{\"a\":[-1,2],\"b\":{},\"c\":\"18446744073709551615\","
                  "\"d\":\"0xffffffffffffffff\",\"e\":null,"
                  "\"f\":\"1970-01-01T00:00:00.000Z\"}");
}
END_TEST

START_TEST(json_text_is_quoted)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_text(&j, NULL, BYTES("\"\\\n\0 /\xe2\x82\xac\x7f\xff."));
  expect_text(&t, "\"\\\"\\\\\\u000a\\u0000 /\xe2\x82\xac\\u007f\\ufffd.\"");
}
END_TEST

/* Some terminals execute the C1 controls, U+0080 to U+009F. */
START_TEST(json_text_has_no_controls)
{
  cli_text out = {0};
  cli_json j = {.out = &out};

  cli_json_text(&j, "k",
                lk_text("a\x1b\x7f\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0\xc3\x9b"));
  ck_assert_str_eq(
      cli_text_end(&out),
      "\"k\":\"a\\u001b\\u007f\\u0080\\u009b\\u009f\xc2\xa0\xc3\x9b\"");
  cli_text_free(&out);
}
END_TEST

START_TEST(json_data_that_are_not_text_are_base64)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_open(&j, NULL, '{');
  cli_json_data(&j, "label", BYTES("text"));
  cli_json_data(&j, "label", BYTES("\xff\xff\xff"));
  cli_json_close(&j, '}');
  expect_text(&t, "{\"label\":\"text\",\"data_base64\":\"////\"}");
}
END_TEST

SUITE("json", json_has_commas_between_and_nowhere_else, json_text_is_quoted,
      json_text_has_no_controls, json_data_that_are_not_text_are_base64)
