/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/queue_order.h"
#include "support/suite.h"

static char names[] = "abcdefgh";

static cli_contender contender(int64_t number, bool shared)
{
  return (cli_contender){
      .name = names + number, .number = number, .shared = shared};
}

START_TEST(one_writer_holds_and_readers_before_it_hold_together)
{
  cli_contender w[] = {contender(3, false), contender(1, false),
                       contender(2, true)};
  cli_contender r[] = {contender(4, true), contender(1, true),
                       contender(3, false), contender(2, true)};

  ck_assert_uint_eq(cli_queue_mark_lock_holders(w, 3), 3);
  ck_assert_int_eq(w[0].number, 1);
  ck_assert(w[0].holds && !w[1].holds && !w[2].holds);
  ck_assert_uint_eq(cli_queue_mark_lock_holders(r, 4), 4);
  ck_assert(r[0].holds && r[1].holds && !r[2].holds && !r[3].holds);
  ck_assert_int_eq(r[3].number, 4);
}
END_TEST

START_TEST(a_writer_that_also_reads_holds_twice)
{
  cli_contender c[] = {contender(1, true), contender(1, false),
                       contender(2, true)};

  cli_queue_mark_lock_holders(c, 3);
  ck_assert(!c[0].shared && c[0].holds);
  ck_assert(c[1].shared && c[1].holds);
  ck_assert(!c[2].holds);
}
END_TEST

START_TEST(contender_that_has_left_is_not_counted)
{
  cli_contender c[] = {contender(1, false), contender(2, false),
                       contender(3, false)};

  c[0].gone = true;
  ck_assert_uint_eq(cli_queue_mark_lock_holders(c, 3), 2);
  ck_assert(c[0].holds);
  ck_assert_int_eq(c[0].number, 2);
  ck_assert_int_eq(c[2].number, 1);
}
END_TEST

/* A queue node or a permit node of a session, created by transaction `zxid`. */
static cli_contender of_semaphore(bool permit, int64_t session, int64_t zxid)
{
  return (cli_contender){.name = names,
                         .number = zxid,
                         .permit = permit,
                         .stat = {.czxid = zxid, .ephemeral_owner = session}};
}

enum { QUEUE_NODE, PERMIT };

/* Checks how many contenders of a semaphore hold, and how many are shown. */
static void expect_permits(cli_contender *c, size_t count, size_t holders,
                           size_t shown)
{
  size_t n = 0;

  ck_assert_uint_eq(cli_queue_mark_permit_holders(c, count), shown);
  for (size_t i = 0; i < shown; i++) {
    ck_assert(!c[i].holds || c[i].permit);
    n += c[i].holds;
  }
  ck_assert_uint_eq(n, holders);
}

START_TEST(permit_that_is_younger_than_the_first_place_holds)
{
  /* session 1 was a predecessor of session 2 when that queued */
  cli_contender c[] = {of_semaphore(QUEUE_NODE, 2, 11),
                       of_semaphore(QUEUE_NODE, 3, 12),
                       of_semaphore(PERMIT, 1, 14)};

  expect_permits(c, 3, 1, 3);
}
END_TEST

START_TEST(permits_of_the_first_place_wait)
{
  cli_contender one[] = {of_semaphore(QUEUE_NODE, 2, 11),
                         of_semaphore(PERMIT, 1, 14),
                         of_semaphore(PERMIT, 2, 15)};
  cli_contender two[] = {
      of_semaphore(QUEUE_NODE, 2, 11), of_semaphore(QUEUE_NODE, 3, 12),
      of_semaphore(PERMIT, 2, 16), of_semaphore(PERMIT, 1, 14),
      of_semaphore(PERMIT, 2, 15)};

  expect_permits(one, 3, 1, 2);
  expect_permits(two, 5, 1, 3);
  ck_assert_int_eq(two[2].stat.ephemeral_owner, 1);
}
END_TEST

/* The first in the queue holds its permits, and is about to leave the queue. */
START_TEST(permits_hold_when_no_other_contender_has_any)
{
  cli_contender c[] = {of_semaphore(QUEUE_NODE, 1, 11),
                       of_semaphore(PERMIT, 1, 12),
                       of_semaphore(PERMIT, 1, 13)};

  expect_permits(c, 3, 2, 3);
  c[0].gone = true;
  expect_permits(c, 3, 2, 2);
}
END_TEST

START_TEST(session_of_many_threads_waits_with_its_youngest_permit)
{
  cli_contender older[] = {
      of_semaphore(PERMIT, 1, 10), of_semaphore(QUEUE_NODE, 1, 11),
      of_semaphore(PERMIT, 1, 14), of_semaphore(PERMIT, 1, 15)};
  cli_contender places[] = {
      of_semaphore(QUEUE_NODE, 1, 11), of_semaphore(QUEUE_NODE, 1, 12),
      of_semaphore(PERMIT, 1, 14), of_semaphore(PERMIT, 1, 15)};

  expect_permits(older, 4, 2, 3);
  expect_permits(places, 4, 1, 3);
}
END_TEST

START_TEST(permits_hold_when_the_first_place_may_not_be_read)
{
  cli_contender c[] = {
      of_semaphore(QUEUE_NODE, 0, 1), of_semaphore(QUEUE_NODE, 3, 12),
      of_semaphore(PERMIT, 3, 14), of_semaphore(PERMIT, 1, 13)};

  c[0].hidden = true;
  c[0].stat = (lk_stat){0};
  expect_permits(c, 4, 2, 4);
}
END_TEST

SUITE("queue_order", one_writer_holds_and_readers_before_it_hold_together,
      a_writer_that_also_reads_holds_twice,
      contender_that_has_left_is_not_counted,
      permit_that_is_younger_than_the_first_place_holds,
      permits_of_the_first_place_wait,
      permits_hold_when_no_other_contender_has_any,
      session_of_many_threads_waits_with_its_youngest_permit,
      permits_hold_when_the_first_place_may_not_be_read)
