/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/ev.h>

#include "base/mem.h"
#include "ev/loop.h"
#include "net/driver.h"

struct lk_ev {
  lk_mem mem;
  lk_ev_loop loop;
  lk_driver driver;
  void (*on_wake)(lk_ev *ev, void *arg); /* NULL: nothing is called */
  void *on_wake_arg;
};

static lk_ev *ev_of(lk_driver *d)
{
  return LK_OWNER(d, lk_ev, driver);
}

static void on_driver_free(lk_driver *d)
{
  lk_ev *ev = ev_of(d);
  lk_mem mem = ev->mem;

  lk__mem_free(&mem, ev);
}

static void on_driver_wake(lk_driver *d)
{
  lk_ev *ev = ev_of(d);

  if (ev->on_wake != NULL)
    ev->on_wake(ev, ev->on_wake_arg);
}

int lk_ev_new(lk_ev **out, struct ev_loop *loop, const lk_mem *mem)
{
  if (mem == NULL)
    mem = &lk__mem_libc;

  lk_ev *ev = lk__mem_new(mem, sizeof *ev);

  *out = NULL;
  if (ev == NULL)
    return LK_ERR_NO_MEMORY;
  ev->mem = *mem;
  lk__ev_loop_attach(&ev->loop, loop);
  ev->driver.on_free = on_driver_free;
  ev->driver.on_wake = on_driver_wake;

  int err = lk__driver_init(&ev->driver, &ev->loop.base, mem);

  if (err == 0)
    *out = ev;
  else
    lk__mem_free(mem, ev);
  return err;
}

void lk_ev_free(lk_ev *ev)
{
  if (ev != NULL)
    lk__driver_free(&ev->driver);
}

int lk_ev_client_new(lk_client **out, lk_ev *ev, const lk_client_config *config)
{
  return lk__driver_client_new(out, &ev->driver, config);
}

void lk_ev_on_wake(lk_ev *ev, void (*woken)(lk_ev *ev, void *arg), void *arg)
{
  ev->on_wake = woken;
  ev->on_wake_arg = arg;
}

void lk_ev_wake(lk_ev *ev)
{
  lk__driver_wake(&ev->driver);
}

int64_t lk_ev_clock(const lk_ev *ev)
{
  return lk__driver_clock(&ev->driver);
}

bool lk_ev_forked(const lk_ev *ev)
{
  return lk__driver_in_child(&ev->driver);
}
