/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "poll/loop.h"
#include "support/suite.h"
#include "unit/loop/test_loop.h"

lk_loop *test_loop_new(void)
{
  lk_loop *l;

  ck_assert_int_eq(lk__poll_loop_new(&l, &lk__mem_libc), 0);
  return l;
}

void test_loop_run(lk_loop *l, const bool *done)
{
  lk__poll_loop_run(l, done);
}

void test_loop_free(lk_loop *l)
{
  lk__poll_loop_free(l);
}
