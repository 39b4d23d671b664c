/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_DRIVER_DRIVER_H
#define LK_UNIT_DRIVER_DRIVER_H

#include <latchkey/ev.h>

#include <ev.h>
#include <unistd.h>

#include "support/failing_mem.h"
#include "support/suite.h"
#include "unit/fake/calls.h"
#include "unit/fake/engine.h"
#include "unit/fake/names.h"
#include "unit/fake/sockets.h"

/* A loop with a driver, and fake clients that want what a test says. */

static struct ev_loop *loop;
static lk_ev *ev;
static failing_mem mem;

/* Have the loop return after the present callbacks. */
static inline void break_loop(void)
{
  if (loop != NULL)
    ev_break(loop, EVBREAK_ALL);
}

static inline void start(void)
{
  engine_after_line = break_loop;
  loop = ev_loop_new(EVFLAG_AUTO);
  ck_assert_ptr_nonnull(loop);
  fake_names_start();
  failing_mem_init(&mem);
  ck_assert_int_eq(lk_ev_new(&ev, loop, &mem.mem), 0);
}

static inline void stop(void)
{
  lk_ev_free(ev);
  ck_assert_uint_eq(mem.live, 0);
  fake_names_stop();
  ck_assert(!ev_run(loop, EVRUN_NOWAIT)); /* no watcher is left */
  ev_loop_destroy(loop);
}

static inline lk_client *new_client(void)
{
  const lk_client_config config = {.size = sizeof config};
  lk_client *c;

  ck_assert_int_eq(lk_ev_client_new(&c, ev, &config), 0);
  return c;
}

static inline void want_no_connection(lk_client *c)
{
  engine_want_connection(c, 0, "", 0, 0);
}

/* Run the loop once without waiting. */
static inline void turn(void)
{
  ev_run(loop, EVRUN_NOWAIT);
}

#define RUN_UNTIL(condition)    \
  do {                          \
    while (!(condition))        \
      ev_run(loop, EVRUN_ONCE); \
  } while (0)

/* Run the loop until the log of the client is as long as `text`. It must then
   be `text`, and is emptied. */
static inline void expect(lk_client *c, const char *text)
{
  RUN_UNTIL(strlen(c->log) >= strlen(text));
  ck_assert_str_eq(c->log, text);
  c->log[0] = '\0';
}

/* Make a client that is connected; `*peer` is the server's end. */
static inline lk_client *new_connected(int *peer)
{
  lk_client *c = new_client();
  uint16_t port;
  int listener = sockets_listen("127.0.0.1", &port);

  engine_want_connection(c, 1, "127.0.0.1", port, 0);
  expect(c, "connected 1\n");
  *peer = sockets_accept(listener);
  close(listener);
  return c;
}

#endif
