/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Constructors when few descriptors or thread keys are free, or none. */

#include <latchkey/poll.h>
#include <latchkey/sync.h>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/failing_mem.h"
#include "support/suite.h"
#include "support/waiters.h"

enum {
  MAX_DESCRIPTORS = 64, /* of the test program */
  MOST_FREE = 12        /* more than a client or a driver needs */
};

static int taken[MAX_DESCRIPTORS];
static size_t taken_count;

static void take_all(void)
{
  for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
    taken[taken_count++] = fd;
}

static void give_back(size_t free)
{
  while (free-- > 0 && taken_count > 0)
    close(taken[--taken_count]);
}

static void limit_descriptors(void)
{
  struct rlimit limit = {MAX_DESCRIPTORS, MAX_DESCRIPTORS};

  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Takes all free descriptors; returns their number. */
static size_t take_and_count(void)
{
  size_t before = taken_count;

  take_all();
  return taken_count - before;
}

/* ---- the blocking interface ---------------------------------------------- */

static char logged[256];

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  (void)arg;
  (void)level;
  if (err == LK_ERR_SYSTEM)
    snprintf(logged, sizeof logged, "%s", text);
}

static int make_and_use_client(shared_mem *mem)
{
  lk_client_config client_config = {.size = sizeof client_config,
                                    .hosts = "127.0.0.1:1",
                                    .mem = &mem->mem,
                                    .log = on_log};
  lk_sync_config config = {.size = sizeof config, .client = &client_config};
  lk_sync_call brief = {.size = sizeof brief, .timeout_ms = 5};
  /* Not NULL: lk_sync_client_new() has to set it to NULL after an error. */
  lk_sync_client *c = (lk_sync_client *)(void *)&client_config;
  int err = lk_sync_client_new(&c, &config);

  if (err != 0) {
    ck_assert_ptr_null(c);
    return err;
  }
  ck_assert_int_eq(lk_sync_get(c, NULL, "/x", &brief), LK_ERR_DEADLINE);
  lk_sync_client_free(c);
  return 0;
}

START_TEST(client_without_descriptors_is_refused)
{
  char expected[sizeof logged];
  bool made = false;
  shared_mem mem;

  limit_descriptors();
  for (size_t free = 0; free <= MOST_FREE; free++) {
    take_all();
    give_back(free);
    shared_mem_init(&mem);
    logged[0] = '\0';
    int err = make_and_use_client(&mem);

    /* As soon as there were enough descriptors, there always are. */
    ck_assert(err == 0 || (err == LK_ERR_SYSTEM && !made));
    made = err == 0;
    snprintf(expected, sizeof expected,
             "cannot start: no descriptors left (3 needed, %zu free)", free);
    ck_assert_str_eq(logged, made ? "" : expected);
    ck_assert_uint_eq(mem.live, 0);
    ck_assert_uint_eq(take_and_count(), free);
  }
  give_back(MAX_DESCRIPTORS);
  ck_assert(made);
}
END_TEST

/* ---- a driver ------------------------------------------------------------ */

START_TEST(driver_without_descriptors_is_refused)
{
  bool made = false;
  failing_mem mem;

  limit_descriptors();
  for (size_t free = 0; free <= MOST_FREE; free++) {
    lk_poll *p = (lk_poll *)(void *)&mem; /* not NULL */

    take_all();
    give_back(free);
    failing_mem_init(&mem);
    int err = lk_poll_new(&p, &mem.mem);

    /* As soon as there were enough descriptors, there always are. */
    ck_assert(err == 0 || (err == LK_ERR_SYSTEM && !made));
    ck_assert_int_eq(p != NULL, err == 0);
    made = err == 0;
    if (made)
      lk_poll_run_once(p, 0);
    lk_poll_free(p);
    ck_assert_uint_eq(mem.live, 0);
    ck_assert_uint_eq(take_and_count(), free);
  }
  give_back(MAX_DESCRIPTORS);
  ck_assert(made);
}
END_TEST

SUITE("descriptors", client_without_descriptors_is_refused,
      driver_without_descriptors_is_refused)
