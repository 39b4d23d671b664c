/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/cli/expected_text.h"

#include <check.h>

void expect_text(cli_text *t, const char *expected)
{
  ck_assert_str_eq(cli_text_end(t), expected);
  cli_text_free(t);
}
