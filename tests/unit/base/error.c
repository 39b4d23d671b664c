/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/suite.h"

#include <latchkey/error.h>

#include <stdint.h>
#include <string.h>

static const int numbers[] = {
#define NUMBER(name, number, text) LK_ERR_##name,
    LK_ERRORS(NUMBER)
#undef NUMBER
};
enum { NERRORS = sizeof numbers / sizeof numbers[0] };

START_TEST(every_error_has_a_name_and_a_text_of_its_own)
{
  for (size_t i = 0; i < NERRORS; i++) {
    const char *text = lk_error_text(numbers[i]);

    ck_assert_int_lt(numbers[i], 0);
    ck_assert_uint_gt(strlen(text), 5);
    ck_assert_ptr_nonnull(lk_error_name(numbers[i]));
    for (size_t j = 0; j < i; j++) {
      ck_assert_str_ne(text, lk_error_text(numbers[j]));
      ck_assert_str_ne(lk_error_name(numbers[i]), lk_error_name(numbers[j]));
    }
  }
  ck_assert_str_eq(lk_error_name(-101), "NO_NODE");
  ck_assert_str_eq(lk_error_text(-101), "no such node");
  ck_assert_str_eq(lk_error_name(0), "OK");
  ck_assert_str_eq(lk_error_text(0), "success");
}
END_TEST

START_TEST(an_unknown_number_has_a_text_and_no_name)
{
  static const int unknown[] = {1, -9, -126, -999, -1000, INT32_MIN};

  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    ck_assert_str_eq(lk_error_text(unknown[i]), "unknown error");
    ck_assert_ptr_null(lk_error_name(unknown[i]));
  }
}
END_TEST

SUITE("error", every_error_has_a_name_and_a_text_of_its_own,
      an_unknown_number_has_a_text_and_no_name)
