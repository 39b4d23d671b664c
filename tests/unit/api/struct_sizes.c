/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/latchkey.h>
#include <latchkey/leader.h>
#include <latchkey/member.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/poll.h>
#include <latchkey/roster.h>
#include <latchkey/rwlock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>
#include <latchkey/subscribe.h>

#include "support/suite.h"
#include "unit/api/arguments.h"
#include "unit/api/sized.h"

/* Structs of programs that were compiled with older or newer headers, and
 * structs without a size. tests/unit/sync/struct_sizes.c tests those of the
 * blocking interface. */

static lk_client *test_client;
static lk_lock *test_lock;
static lk_poll *test_poll;

#include "tests/unit/api/sizes_from_headers.h"

static void begin(void)
{
  lk_client_config config = {.size = sizeof config, .log = sized_log};

  ck_assert_int_eq(lk_client_new(&test_client, &config, &test_hooks), 0);
  ck_assert_int_eq(lk_lock_new(&test_lock, test_client, "/l", NULL), 0);
  ck_assert_int_eq(lk_poll_new(&test_poll, NULL), 0);
}

static void end(void)
{
  lk_lock_free(test_lock);
  lk_client_free(test_client);
  lk_poll_free(test_poll);
}

/* ---- lk__sized_struct_copy() --------------------------------------------- */

typedef struct lk_sample {
  size_t size;
  int first;
  int second;
} lk_sample;
#define LK_ENDS_lk_sample first, second

static const lk_sized_struct sample = LK_SIZED_STRUCT(lk_sample);

START_TEST(options_that_an_older_program_lacks_are_zero)
{
  lk_sample from = {offsetof(lk_sample, second), 1, 2}, out = {7, 7, 7};

  ck_assert_int_eq(lk__sized_struct_copy(&sample, &out, &from), LK_SIZE_OK);
  ck_assert_uint_eq(out.size, sizeof out);
  ck_assert_int_eq(out.first, 1);
  ck_assert_int_eq(out.second, 0);
}
END_TEST

START_TEST(missing_struct_selects_the_defaults)
{
  lk_sample out = {7, 7, 7};

  ck_assert_int_eq(lk__sized_struct_copy(&sample, &out, NULL), LK_SIZE_OK);
  ck_assert_uint_eq(out.size, sizeof out);
  ck_assert_int_eq(out.first, 0);
  ck_assert_int_eq(out.second, 0);
}
END_TEST

START_TEST(a_refusal_names_the_struct_and_copies_nothing)
{
  struct {
    lk_sample known;
    int newer_option;
  } from = {{0, 1, 2}, 3};
  lk_sample out = {7, 7, 7};
  char text[LK_SIZE_TEXT_ROOM];

  ck_assert_int_eq(lk__sized_struct_copy(&sample, &out, &from), LK_SIZE_UNSET);
  ck_assert_str_eq(lk__sized_struct_text(&sample, LK_SIZE_UNSET, text),
                   "lk_sample.size is not set");
  from.known.size = sizeof from;
  ck_assert_int_eq(lk__sized_struct_copy(&sample, &out, &from), LK_SIZE_NEWER);
  ck_assert_str_eq(lk__sized_struct_text(&sample, LK_SIZE_NEWER, text),
                   "lk_sample has an option that is newer than this library");
  ck_assert_uint_eq(out.size, 7);
  ck_assert_int_eq(out.first, 7);
}
END_TEST

/* ---- all structs --------------------------------------------------------- */

START_TEST(structs_may_be_older_or_newer_but_need_a_size)
{
  begin();
  for (size_t i = 0; i < sizeof sized_rows / sizeof sized_rows[0]; i++)
    sized_check(&sized_rows[i]);
  end();
}
END_TEST

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

static int set(const lk_call *call)
{
  return lk_set(test_client, "/x", lk_text(""), -1, call, NULL, NULL);
}

static int add_watch(const lk_call *call)
{
  return lk_add_watch(test_client, "/x", LK_WATCH_PERSISTENT, call, NULL, NULL);
}

/* Bytes behind the size of an older program's struct do not belong to it. */
START_TEST(a_call_has_no_watch_behind_its_size)
{
  lk_call call = {.size = offsetof(lk_call, on_event), .on_event = on_event};

  begin();
  ck_assert_int_eq(set(&call), 0);
  ck_assert_int_eq(add_watch(&call), LK_ERR_BAD_ARGUMENT);
  call.size = sizeof call;
  ck_assert_int_eq(set(&call), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(add_watch(&call), 0);
  end();
}
END_TEST

SUITE("struct_sizes", options_that_an_older_program_lacks_are_zero,
      missing_struct_selects_the_defaults,
      a_refusal_names_the_struct_and_copies_nothing,
      structs_may_be_older_or_newer_but_need_a_size,
      a_call_has_no_watch_behind_its_size)
