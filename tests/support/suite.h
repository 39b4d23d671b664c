/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SUITE_H
#define LK_SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>
#include <stdlib.h>

/**
 * Register tests under a suite's name. `setup`, which may be NULL, is called
 * before each of them. The program's main(), in suite.c, runs all suites.
 */
void suite_add(const char *name, void (*setup)(void), const TTest *const *tests,
               size_t count);

/**
 * Print that the test is skipped, and why. tests/driver counts it so.
 * `function`: __func__ of the test. SKIP_TEST() also ends the test.
 */
void suite_skip(const char *function, const char *why);

#define SKIP_TEST(why)         \
  do {                         \
    suite_skip(__func__, why); \
    return;                    \
  } while (0)

/**
 * Register the tests of this file as a suite: SUITE("name", test, test...).
 * A constructor does it, so that no suite of a linked file can be forgotten.
 */
#define SUITE(name, ...) SUITE_WITH(name, NULL, __VA_ARGS__)

/** Like SUITE(), with a function that is called before each test. The two
    macros below it make __LINE__ a part of a name. */
#define SUITE_WITH(name, setup, ...) \
  SUITE_WITH_LINE(__LINE__, name, setup, __VA_ARGS__)
#define SUITE_WITH_LINE(line, ...) DEFINE_SUITE(line, __VA_ARGS__)
#define DEFINE_SUITE(line, name, setup, ...)                           \
  __attribute__((constructor)) static void add_suite_##line(void)  \
  {                                                                \
    const TTest *const tests[] = {__VA_ARGS__};                    \
                                                                   \
    suite_add(name, setup, tests, sizeof tests / sizeof tests[0]); \
  }

#endif
