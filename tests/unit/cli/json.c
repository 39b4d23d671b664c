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
      json_data_that_are_not_text_are_base64)
