/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The constructors that need libev: after wrong arguments and each failing
 * allocation the result is NULL and nothing is kept. Structs of older and newer
 * programs.
 */

#include <latchkey/ev.h>

#include "unit/api/arguments.h"
#include "unit/api/constructors.h"
#include "unit/api/sized.h"

#include <ev.h>

static failing_mem memory;
static const lk_mem *const test_mem = &memory.mem;
static struct ev_loop *test_ev_loop;
static lk_ev *test_ev;

#include "tests/unit/ev/constructors_from_headers.h"
#include "tests/unit/ev/sizes_from_headers.h"

static void begin(void)
{
  test_ev_loop = ev_loop_new(EVFLAG_AUTO);
  failing_mem_init(&memory);
  ck_assert_int_eq(lk_ev_new(&test_ev, test_ev_loop, test_mem), 0);
}

static void end(void)
{
  lk_ev_free(test_ev);
  ck_assert_uint_eq(memory.live, 0);
  ev_loop_destroy(test_ev_loop);
}

START_TEST(failed_driver_constructors_return_null)
{
  for (size_t i = 0; i < sizeof constructors / sizeof constructors[0]; i++) {
    begin();
    expect_refusals(&constructors[i]);
    expect_no_leaks(&constructors[i], &memory);
    end();
  }
}
END_TEST

START_TEST(structs_may_be_older_or_newer_but_need_a_size)
{
  begin();
  for (size_t i = 0; i < sizeof sized_rows / sizeof sized_rows[0]; i++)
    sized_check(&sized_rows[i]);
  end();
}
END_TEST

SUITE("constructors", failed_driver_constructors_return_null,
      structs_may_be_older_or_newer_but_need_a_size)
