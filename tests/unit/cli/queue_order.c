/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/contenders.h"
#include "support/suite.h"

/* Contender N has the name that begins at names[N]. */
static char names[] = "abcdefgh";

static cli_contender writer(int64_t number)
{
  return (cli_contender){.name = names + number, .number = number};
}

static cli_contender reader(int64_t number)
{
  return (cli_contender){
      .name = names + number, .number = number, .shared = true};
}

/* cli_queue_mark_lock_holders() sorts the contenders by their numbers, too. */
START_TEST(one_writer_holds_and_readers_before_it_hold_together)
{
  cli_contender writer_first[] = {writer(3), writer(1), reader(2)};
  cli_contender readers_first[] = {reader(4), reader(1), writer(3), reader(2)};

  ck_assert_uint_eq(cli_queue_mark_lock_holders(writer_first, 3), 3);
  ck_assert_int_eq(writer_first[0].number, 1);
  ck_assert(writer_first[0].holds && !writer_first[1].holds &&
            !writer_first[2].holds);
  ck_assert_uint_eq(cli_queue_mark_lock_holders(readers_first, 4), 4);
  ck_assert(readers_first[0].holds && readers_first[1].holds &&
            !readers_first[2].holds && !readers_first[3].holds);
  ck_assert_int_eq(readers_first[3].number, 4);
}
END_TEST

START_TEST(a_writer_that_also_reads_holds_twice)
{
  cli_contender c[] = {reader(1), writer(1), reader(2)};

  cli_queue_mark_lock_holders(c, 3);
  ck_assert(!c[0].shared && c[0].holds);
  ck_assert(c[1].shared && c[1].holds);
  ck_assert(!c[2].holds);
}
END_TEST

START_TEST(contender_that_has_left_is_not_counted)
{
  cli_contender c[] = {writer(1), writer(2), writer(3)};

  c[0].gone = true; /* it is moved to the end */
  ck_assert_uint_eq(cli_queue_mark_lock_holders(c, 3), 2);
  ck_assert(c[0].holds);
  ck_assert_int_eq(c[0].number, 2);
  ck_assert_int_eq(c[2].number, 1);
}
END_TEST

/* A queue node of a semaphore, which transaction `zxid` created. */
static cli_contender queue_node(int64_t session, int64_t zxid)
{
  return (cli_contender){.name = names,
                         .number = zxid,
                         .stat = {.czxid = zxid, .ephemeral_owner = session}};
}

static cli_contender permit(int64_t session, int64_t zxid)
{
  cli_contender c = queue_node(session, zxid);

  c.permit = true;
  return c;
}

/* Checks how many contenders of a semaphore hold, and how many are shown. A
   permit node that waits is not shown, since its session's queue node is. */
static void expect_permits(cli_contender *c, size_t count, size_t holders,
                           size_t shown)
{
  size_t marked = 0;

  ck_assert_uint_eq(cli_queue_mark_permit_holders(c, count), shown);
  for (size_t i = 0; i < shown; i++) {
    if (!c[i].holds)
      continue;
    ck_assert(c[i].permit);
    marked++;
  }
  ck_assert_uint_eq(marked, holders);
}

START_TEST(permit_created_after_the_first_queue_node_holds)
{
  /* Session 1 has left the queue. It was a predecessor of session 2. */
  cli_contender c[] = {queue_node(2, 11), queue_node(3, 12), permit(1, 14)};

  expect_permits(c, 3, 1, 3);
}
END_TEST

START_TEST(permits_of_the_first_in_the_queue_wait_if_others_have_permits)
{
  cli_contender one[] = {queue_node(2, 11), permit(1, 14), permit(2, 15)};
  cli_contender two[] = {queue_node(2, 11), queue_node(3, 12), permit(2, 16),
                         permit(1, 14), permit(2, 15)};

  expect_permits(one, 3, 1, 2);
  expect_permits(two, 5, 1, 3);
  ck_assert_int_eq(two[2].stat.ephemeral_owner, 1);
}
END_TEST

/* The first in the queue holds its permits, and is about to leave the queue. */
START_TEST(permits_hold_when_no_other_contender_has_any)
{
  cli_contender c[] = {queue_node(1, 11), permit(1, 12), permit(1, 13)};

  expect_permits(c, 3, 2, 3);
  c[0].gone = true;
  expect_permits(c, 3, 2, 2);
}
END_TEST

START_TEST(session_of_many_threads_waits_with_its_youngest_permit)
{
  cli_contender with_older_permit[] = {permit(1, 10), queue_node(1, 11),
                                       permit(1, 14), permit(1, 15)};
  cli_contender two_queue_nodes[] = {queue_node(1, 11), queue_node(1, 12),
                                     permit(1, 14), permit(1, 15)};

  expect_permits(with_older_permit, 4, 2, 3);
  expect_permits(two_queue_nodes, 4, 1, 3);
}
END_TEST

START_TEST(permits_hold_when_the_first_queue_node_may_not_be_read)
{
  cli_contender c[] = {queue_node(0, 1), queue_node(3, 12), permit(3, 14),
                       permit(1, 13)};

  c[0].hidden = true;
  c[0].stat = (lk_stat){0};
  expect_permits(c, 4, 2, 4);
}
END_TEST

SUITE("queue_order", one_writer_holds_and_readers_before_it_hold_together,
      a_writer_that_also_reads_holds_twice,
      contender_that_has_left_is_not_counted,
      permit_created_after_the_first_queue_node_holds,
      permits_of_the_first_in_the_queue_wait_if_others_have_permits,
      permits_hold_when_no_other_contender_has_any,
      session_of_many_threads_waits_with_its_youngest_permit,
      permits_hold_when_the_first_queue_node_may_not_be_read)
