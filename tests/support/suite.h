/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SUITE_H
#define LK_SUPPORT_SUITE_H

#include <check.h>
#include <stdlib.h>

/** Run tests as one suite; for the end of main(). */
static inline int suite_run(const char *name, const TTest *const *tests,
                            size_t count)
{
  Suite *suite = suite_create(name);
  TCase *tcase = tcase_create(name);
  SRunner *runner;
  int failed;

  tcase_set_timeout(tcase, 0); /* tests/run has the only clock */
  for (size_t i = 0; i < count; i++)
    tcase_add_test(tcase, tests[i]);
  suite_add_tcase(suite, tcase);
  runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/** main() of a program with these tests. */
#define SUITE(name, ...)                                           \
  int main(void)                                                   \
  {                                                                \
    const TTest *const tests[] = {__VA_ARGS__};                    \
                                                                   \
    return suite_run(name, tests, sizeof tests / sizeof tests[0]); \
  }

#endif
