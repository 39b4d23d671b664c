/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/exceptions.h"
#include "conformance/scenarios.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Properties that all kinds of locks share: each scenario runs with each kind.
 * A test case is a kind, so that CK_RUN_CASE=semaphore runs those of one kind,
 * and a failure names both. --cells lists the cells, for
 * tests/conformance/table.py.
 */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const scenario *const scenarios[] = {
    request_scenarios,  waiting_scenarios,  fault_scenarios,     loss_scenarios,
    lifetime_scenarios, callback_scenarios, read_only_scenarios,
};

static const exception *find_exception(const TTest *test, const kind *k)
{
  for (size_t i = 0; i < COUNT(exceptions); i++) {
    if (strcmp(exceptions[i].scenario, test->name) == 0 &&
        strcmp(exceptions[i].kind, k->name) == 0)
      return &exceptions[i];
  }
  return NULL;
}

/* ---- the cells ----------------------------------------------------------- */

/* Print a line for each cell: scenario, kind, and the reason if the cell is not
   tested, with tabs between them. */
static void print_cells(void)
{
  for (size_t i = 0; i < COUNT(scenarios); i++) {
    for (const scenario *s = scenarios[i]; *s != NULL; s++) {
      for (size_t k = 0; k < kind_count; k++) {
        const exception *e = find_exception(**s, &kinds[k]);

        printf("%s\t%s\t%s\n", (**s)->name, kinds[k].name,
               e == NULL ? "" : e->reason);
      }
    }
  }
}

/* ---- the tests ----------------------------------------------------------- */

START_TEST(exceptions_name_a_scenario_and_a_kind)
{
  for (size_t e = 0; e < COUNT(exceptions); e++) {
    unsigned found = 0;

    for (size_t i = 0; i < COUNT(scenarios); i++) {
      for (const scenario *s = scenarios[i]; *s != NULL; s++) {
        for (size_t k = 0; k < kind_count; k++) {
          if (find_exception(**s, &kinds[k]) == &exceptions[e])
            found++;
        }
      }
    }
    ck_assert_msg(found == 1, "%s, %s: %u cells", exceptions[e].scenario,
                  exceptions[e].kind, found);
  }
}
END_TEST

/* ---- one process for all cells ------------------------------------------- */

/* A fork for each cell would take three times as long as the cells themselves.
   So all cells run in one process, unless CK_FORK says otherwise. If a cell
   ends the process, the functions here name that cell, in Check's format. */

/* Called in a signal handler, so only write() is used. */
static void name_cell(void)
{
  const char *const words[] = {"tests/conformance/check_conformance.c:1:E:",
                               fx.kind == NULL ? "" : fx.kind->name, ":",
                               fx.scenario == NULL ? "" : fx.scenario,
                               ":0: it ended the program\n"};

  for (size_t i = 0; i < COUNT(words); i++)
    (void)!write(STDOUT_FILENO, words[i], strlen(words[i]));
}

static void on_signal(int signal)
{
  name_cell();
  _exit(128 + signal);
}

/* Defined by the sanitizers, in a build with them. */
void __sanitizer_set_death_callback(void (*callback)(void))
    __attribute__((weak));

static void stay_in_one_process(SRunner *runner)
{
  if (getenv("CK_FORK") != NULL)
    return;
  srunner_set_fork_status(runner, CK_NOFORK);
  signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback != NULL)
    __sanitizer_set_death_callback(name_cell);
  else
    signal(SIGSEGV, on_signal);
}

enum { NO_TIMEOUT = 0 };

/* The test case of a kind. */
static TCase *cells_of(size_t k)
{
  TCase *tcase = tcase_create(kinds[k].name);

  tcase_set_timeout(tcase, NO_TIMEOUT); /* tests/run limits the time */
  for (size_t i = 0; i < COUNT(scenarios); i++) {
    for (const scenario *s = scenarios[i]; *s != NULL; s++) {
      if (find_exception(**s, &kinds[k]) == NULL)
        tcase_add_loop_test(tcase, **s, (int)k, (int)k + 1);
    }
  }
  return tcase;
}

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "--cells") == 0) {
    print_cells();
    return EXIT_SUCCESS;
  }
  Suite *suite = suite_create("conformance");
  TCase *table = tcase_create("exceptions");

  tcase_add_test(table, exceptions_name_a_scenario_and_a_kind);
  suite_add_tcase(suite, table);
  for (size_t k = 0; k < kind_count; k++)
    suite_add_tcase(suite, cells_of(k));
  SRunner *runner = srunner_create(suite);

  stay_in_one_process(runner);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);

  srunner_free(runner);
  if (failed > 0) {
    fflush(stdout);
    _exit(EXIT_FAILURE); /* without a report of the memory that failed cells
                            have not freed */
  }
  return EXIT_SUCCESS;
}
