/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/support/test_driver.h"

#include <latchkey/poll.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_WATCHES = 64, MAX_FDS = 8192 };

static lk_poll *driver;
static test_watch *first_watch; /* a list */

void test_driver_open(void)
{
  if (lk_poll_new(&driver, NULL) != 0) {
    fputs("cannot make an lk_poll\n", stderr);
    exit(EXIT_FAILURE);
  }
}

void test_driver_close(void)
{
  lk_poll_free(driver);
}

int test_driver_client_new(lk_client **out, const lk_client_config *config)
{
  return lk_poll_client_new(out, driver, config);
}

void test_watch_start(test_watch *w)
{
  w->room.next = first_watch;
  first_watch = w;
  w->started = true;
}

void test_watch_stop(test_watch *w)
{
  test_watch **at = &first_watch;

  if (!w->started)
    return;
  while (*at != w)
    at = &(*at)->room.next;
  *at = w->room.next;
  w->started = false;
}

/* Store the descriptors of the watches in `fds`, and these in `watches`. */
static size_t list_watches(test_watch **watches, struct pollfd *fds)
{
  size_t count = 0;

  for (test_watch *w = first_watch; w != NULL; w = w->room.next) {
    if (count == MAX_WATCHES)
      abort();
    watches[count] = w;
    fds[count++] = (struct pollfd){.fd = w->fd, .events = POLLIN};
  }
  return count;
}

/* Whether `w` is still started: a callback may stop any watch, and free it. */
static bool is_started(const test_watch *w)
{
  for (const test_watch *x = first_watch; x != NULL; x = x->room.next)
    if (x == w)
      return true;
  return false;
}

/* The loop of a program that watches descriptors of its own. They follow those
   of the library, since callbacks of lk_poll_prepare() may change them. */
void test_driver_turn(int timeout_ms)
{
  static struct pollfd fds[MAX_FDS + MAX_WATCHES];
  test_watch *watches[MAX_WATCHES];
  size_t count = lk_poll_prepare(driver, fds, MAX_FDS, &timeout_ms);

  if (count > MAX_FDS)
    abort();

  struct pollfd *own_fds = fds + count;
  size_t own = list_watches(watches, own_fds);

  if (poll(fds, (nfds_t)(count + own), timeout_ms) < 0) {
    lk_poll_dispatch(driver, fds, 0);
    return;
  }
  for (size_t i = 0; i < own; i++)
    if (own_fds[i].revents != 0 && is_started(watches[i]) &&
        watches[i]->fd == own_fds[i].fd)
      watches[i]->on_readable(watches[i]);
  lk_poll_dispatch(driver, fds, count);
}
