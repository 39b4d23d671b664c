/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_SUPPORT_TEST_DRIVER_H
#define LK_LIVE_SUPPORT_TEST_DRIVER_H

/**
 * @file
 * The driver of the library that live tests use: lk_ev, or lk_poll in a build
 * without libev. Descriptors of the test are watched on the same loop. A
 * program has one. Failures end the program.
 */

#include <latchkey/client.h>

void test_driver_open(void);
/** Frees the clients that are left, too. */
void test_driver_close(void);
/** As lk_ev_client_new() and lk_poll_client_new(). */
int test_driver_client_new(lk_client **out, const lk_client_config *config);

/** Calls `on_readable` for as long as `fd` is readable. */
typedef struct test_watch {
  int fd;
  void (*on_readable)(struct test_watch *w);
  void *arg;
  bool started; /**< set by test_watch_start() and test_watch_stop() */
  union {
    struct test_watch *next;
    long long bytes[8];
  } room; /**< belongs to the implementation */
} test_watch;

/** `w` must not be moved until it is stopped. */
void test_watch_start(test_watch *w);
/** Does nothing if `w` is not started. */
void test_watch_stop(test_watch *w);

/** Wait for events for at most `timeout_ms`, and handle them. -1: no limit. */
void test_driver_turn(int timeout_ms);

#endif
