/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/child_names.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

START_TEST(names_are_ordered_by_their_bytes)
{
  const lk_bytes names[] = {BYTES("b"), BYTES("a\n"), BYTES("\xc3\xa9"),
                            BYTES("a"), BYTES("B")};
  cli_text lines = {0};
  cli_text array = {0};
  cli_json j = {.out = &array};

  cli_child_names_text(&lines, names, 5);
  expect_text(&lines, "B\na\na\\x0a\nb\n\xc3\xa9\n");
  cli_json_open(&j, NULL, '{');
  cli_child_names_json(&j, "children", names, 5);
  cli_json_close(&j, '}');
  expect_text(&array,
              "{\"children\":[\"B\",\"a\",\"a\\u000a\",\"b\",\"\xc3\xa9\"]}");
}
END_TEST

START_TEST(no_names_are_an_empty_list)
{
  cli_text lines = {0};
  cli_text array = {0};
  cli_json j = {.out = &array};

  cli_child_names_text(&lines, NULL, 0);
  ck_assert_uint_eq(lines.len, 0);
  ck_assert(!lines.failed);
  cli_child_names_json(&j, NULL, NULL, 0);
  expect_text(&array, "[]");
}
END_TEST

SUITE("child_names", names_are_ordered_by_their_bytes,
      no_names_are_an_empty_list)
