/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * main() of the programs of unit tests:
 *
 *     check_engine                     all suites
 *     check_engine hosts timing        two of them
 *     check_engine timing.some_test    one test
 *     check_engine --list              the names of all tests
 */

#include "support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SUITES = 64, MAX_TESTS = 256 };

typedef struct registered_suite {
  const char *name;
  void (*setup)(void);
  const TTest *tests[MAX_TESTS];
  size_t count;
} registered_suite;

static registered_suite suites[MAX_SUITES];
static size_t suite_count;

void suite_add(const char *name, void (*setup)(void), const TTest *const *tests,
               size_t count)
{
  if (suite_count == MAX_SUITES || count > MAX_TESTS) {
    fprintf(stderr, "suite %s: raise MAX_SUITES or MAX_TESTS\n", name);
    exit(EXIT_FAILURE);
  }
  registered_suite *s = &suites[suite_count++];

  *s = (registered_suite){.name = name, .setup = setup, .count = count};
  memcpy(s->tests, tests, count * sizeof tests[0]);
}

/* Check appends "_fn" to the name of a test. */
void suite_skip(const char *function, const char *why)
{
  printf("not tested: %.*s: %s\n", (int)(strlen(function) - strlen("_fn")),
         function, why);
  fflush(stdout);
}

/* Whether `word` is the name of the test's suite, or "suite.test". */
static bool word_selects(const char *word, const registered_suite *s,
                         const TTest *test)
{
  size_t len = strlen(s->name);

  return strncmp(word, s->name, len) == 0 &&
         (word[len] == '\0' ||
          (word[len] == '.' && strcmp(word + len + 1, test->name) == 0));
}

/* No words select all tests. */
static bool is_selected(char *const *words, const registered_suite *s,
                        const TTest *test)
{
  bool select_all = words[0] == NULL;

  for (size_t i = 0; words[i] != NULL; i++)
    if (word_selects(words[i], s, test))
      return true;
  return select_all;
}

/* Make a suite of the selected tests; NULL: none of its tests is selected. */
static Suite *make_suite(const registered_suite *s, char *const *words)
{
  Suite *suite = NULL;
  TCase *tcase = NULL;

  for (size_t i = 0; i < s->count; i++) {
    if (!is_selected(words, s, s->tests[i]))
      continue;
    if (suite == NULL) {
      suite = suite_create(s->name);
      tcase = tcase_create(s->name);
      tcase_set_timeout(tcase, 0); /* tests/run limits the time instead */
      if (s->setup != NULL)
        tcase_add_checked_fixture(tcase, s->setup, NULL);
      suite_add_tcase(suite, tcase);
    }
    tcase_add_test(tcase, s->tests[i]);
  }
  return suite;
}

static int list_tests(void)
{
  for (size_t i = 0; i < suite_count; i++)
    for (size_t j = 0; j < suites[i].count; j++)
      printf("%s.%s\n", suites[i].name, suites[i].tests[j]->name);
  return EXIT_SUCCESS;
}

/* Whether the word selects any test. */
static bool word_is_known(char *word)
{
  char *const words[] = {word, NULL};

  for (size_t i = 0; i < suite_count; i++)
    for (size_t j = 0; j < suites[i].count; j++)
      if (is_selected(words, &suites[i], suites[i].tests[j]))
        return true;
  return false;
}

int main(int argc, char **argv)
{
  char **words = argc > 0 ? argv + 1 : argv;

  if (words[0] != NULL && strcmp(words[0], "--list") == 0)
    return list_tests();
  for (size_t i = 0; words[i] != NULL; i++) {
    if (!word_is_known(words[i])) {
      fprintf(stderr, "%s: no suite or test %s; --list lists them\n", argv[0],
              words[i]);
      return 2;
    }
  }
  SRunner *runner = srunner_create(NULL);

  for (size_t i = 0; i < suite_count; i++) {
    Suite *suite = make_suite(&suites[i], words);

    if (suite != NULL)
      srunner_add_suite(runner, suite);
  }
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);

  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
