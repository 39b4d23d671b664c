/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ev.h>

#include "ev/loop.h"
#include "support/suite.h"
#include "unit/loop/test_loop.h"

static lk_ev_loop loop;

lk_loop *test_loop_new(void)
{
  struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);

  ck_assert_ptr_nonnull(ev);
  lk__ev_loop_attach(&loop, ev);
  return &loop.base;
}

void test_loop_run(lk_loop *l, const bool *done)
{
  bool goes_on = true;

  ck_assert_ptr_eq(l, &loop.base);
  while (goes_on && !*done)
    goes_on = ev_run(loop.ev, EVRUN_ONCE) != 0;
}

void test_loop_free(lk_loop *l)
{
  ck_assert_ptr_eq(l, &loop.base);
  ev_loop_destroy(loop.ev);
}
