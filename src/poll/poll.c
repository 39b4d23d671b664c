/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/poll.h>

#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "net/driver.h"
#include "poll/loop.h"

struct lk_poll {
  lk_mem mem;
  lk_poll_loop loop;
  lk_driver driver;
  void (*on_wake)(lk_poll *p, void *arg); /* NULL: nothing is called */
  void *on_wake_arg;
  bool running; /* callbacks may be running: the memory is still needed */
  bool ended;   /* the driver is freed */
  bool more;    /* what lk_poll_dispatch() has returned last, or that a client
                   was made since then */
};

static lk_poll *poll_of(lk_driver *d)
{
  return LK_OWNER(d, lk_poll, driver);
}

static void poll_destroy(lk_poll *p)
{
  lk_mem mem = p->mem;

  lk__poll_loop_reset(&p->loop);
  lk__mem_free(&mem, p);
}

static void on_driver_free(lk_driver *d)
{
  lk_poll *p = poll_of(d);

  p->ended = true;
  if (!p->running)
    poll_destroy(p);
}

static void on_driver_wake(lk_driver *d)
{
  lk_poll *p = poll_of(d);

  if (p->on_wake != NULL)
    p->on_wake(p, p->on_wake_arg);
}

int lk_poll_new(lk_poll **out, const lk_mem *mem)
{
  if (mem == NULL)
    mem = &lk__mem_libc;

  lk_poll *p = lk__mem_new(mem, sizeof *p);

  *out = NULL;
  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  p->mem = *mem;
  p->driver.on_free = on_driver_free;
  p->driver.on_wake = on_driver_wake;

  int err = lk__poll_loop_init(&p->loop, mem);

  if (err == 0)
    err = lk__driver_init(&p->driver, &p->loop.base, mem);
  if (err == 0)
    *out = p;
  else
    poll_destroy(p);
  return err;
}

int lk_poll_client_new(lk_client **out, lk_poll *p,
                       const lk_client_config *config)
{
  p->more = true; /* it may end before the first turn */
  return lk__driver_client_new(out, &p->driver, config);
}

/* ---- running ------------------------------------------------------------- */

/* Callbacks may be invoked from now on. The driver is kept until poll_leave(),
   even if one of them frees it. */
static void poll_enter(lk_poll *p)
{
  p->running = true;
  lk__poll_loop_begin_turn(&p->loop);
  p->driver.shared.refs++;
}

/* Returns whether `p` still exists. */
static bool poll_leave(lk_poll *p)
{
  lk__driver_shared_unref(&p->driver.shared);
  p->running = false;
  if (p->ended) {
    poll_destroy(p);
    return false;
  }
  lk__poll_loop_end_turn(&p->loop);
  return true;
}

void lk_poll_free(lk_poll *p)
{
  if (p == NULL)
    return;

  bool outermost = !p->running;

  if (outermost)
    poll_enter(p); /* callbacks of requests that end here must not run `p` */
  lk__driver_free(&p->driver);
  if (outermost)
    poll_leave(p);
}

/* The shorter of two times to wait; -1 is the longest. */
static int shorter_ms(int a, int b)
{
  if (a < 0)
    return b;
  return b < 0 || a < b ? a : b;
}

/* Without a client there is nothing to wait for. */
static int wait_ms(const lk_poll *p, int first_timer_ms, int timeout_ms)
{
  if (p->driver.freeing || p->loop.refs == 0)
    return 0;
  return shorter_ms(first_timer_ms, timeout_ms);
}

bool lk_poll_run_once(lk_poll *p, int timeout_ms)
{
  if (p->running)
    return false;
  poll_enter(p);

  int first_timer_ms = lk__poll_loop_prepare(&p->loop);

  lk__poll_loop_wait(&p->loop, wait_ms(p, first_timer_ms, timeout_ms));

  bool more = p->loop.refs > 0;

  return poll_leave(p) && more;
}

void lk_poll_run(lk_poll *p)
{
  while (lk_poll_run_once(p, -1))
    ;
}

size_t lk_poll_prepare(lk_poll *p, struct pollfd *fds, size_t room,
                       int *timeout_ms)
{
  if (p->running)
    return 0;
  poll_enter(p);
  *timeout_ms = shorter_ms(lk__poll_loop_prepare(&p->loop), *timeout_ms);
  /* The last client has ended, and the program does not know yet. */
  if (p->more && p->loop.refs == 0)
    *timeout_ms = 0;
  if (!poll_leave(p))
    return 0;

  size_t count = p->loop.count < room ? p->loop.count : room;

  if (count > 0)
    memcpy(fds, p->loop.fds, count * sizeof *fds);
  for (size_t i = 0; i < count; i++)
    fds[i].revents = 0;
  return p->loop.count;
}

/* Handle all that is due, and send what that has queued. */
static void turn_without_waiting(lk_poll *p)
{
  const int no_wait_ms = 0;

  lk__poll_loop_wait(&p->loop, no_wait_ms);
  (void)lk__poll_loop_prepare(&p->loop);
}

bool lk_poll_dispatch(lk_poll *p, const struct pollfd *fds, size_t count)
{
  if (p->running)
    return false;
  poll_enter(p);
  if (lk__epoll_is_open(&p->loop.epoll))
    turn_without_waiting(p);
  else
    lk__poll_loop_dispatch(&p->loop, fds, count);

  bool more = p->loop.refs > 0;

  p->more = more;
  return poll_leave(p) && more;
}

int lk_poll_fd(lk_poll *p)
{
  if (lk_poll_forked(p))
    return LK_ERR_FORKED;
  int err = lk__poll_loop_open_epoll(&p->loop);

  return err == 0 ? p->loop.epoll.fd : err;
}

/* ---- wakeups, clock and fork --------------------------------------------- */

void lk_poll_on_wake(lk_poll *p, void (*woken)(lk_poll *p, void *arg),
                     void *arg)
{
  p->on_wake = woken;
  p->on_wake_arg = arg;
}

void lk_poll_wake(lk_poll *p)
{
  lk__driver_wake(&p->driver);
}

int64_t lk_poll_clock(const lk_poll *p)
{
  return lk__driver_clock(&p->driver);
}

bool lk_poll_forked(const lk_poll *p)
{
  return lk__driver_in_child(&p->driver);
}
