/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/kill_schedule.h"
#include "support/suite.h"

enum { MARGIN_MS = 5, LEASE_DEADLINE = 100 };

/* The time of the next action if there is none. */
#define NEVER INT64_MAX

/* Checks the action that is due at `now`, and the time of the next one. */
static void expect_action(cli_kill_schedule *s, int64_t now, cli_action act,
                          int64_t next_at)
{
  int64_t at;

  if (act != CLI_ACTION_NONE)
    ck_assert_int_eq(cli_kill_schedule_next(s, now, &at), act);
  ck_assert_int_eq(cli_kill_schedule_next(s, now, &at), CLI_ACTION_NONE);
  ck_assert_int_eq(at, next_at);
}

/* A schedule for a margin of 5 ms before the lease deadline at 100. */
static cli_kill_schedule schedule_of(cli_on_lost policy)
{
  return (cli_kill_schedule){.policy = policy,
                             .margin_ms = MARGIN_MS,
                             .lease_deadline = LEASE_DEADLINE};
}

START_TEST(term_comes_the_margin_before_the_deadline_and_kill_at_it)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  expect_action(&s, 0, CLI_ACTION_NONE, 95);
  expect_action(&s, 94, CLI_ACTION_NONE, 95);
  expect_action(&s, 95, CLI_ACTION_TERM, 100);
  expect_action(&s, 99, CLI_ACTION_NONE, 100);
  expect_action(&s, 100, CLI_ACTION_KILL, NEVER);
  expect_action(&s, 200, CLI_ACTION_NONE, NEVER);
}
END_TEST

START_TEST(deadline_renewed_before_the_margin_moves_all_signals)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  s.lease_deadline = 150;
  expect_action(&s, 99, CLI_ACTION_NONE, 145);
  expect_action(&s, 145, CLI_ACTION_TERM, 150);
  s.lease_deadline = 300; /* a later deadline does not undo TERM */
  expect_action(&s, 150, CLI_ACTION_NONE, 300);
  expect_action(&s, 300, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(a_lock_that_is_lost_means_term_at_once_and_kill_after_the_margin)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  cli_kill_schedule_lock_lost(&s, 20);
  expect_action(&s, 20, CLI_ACTION_TERM, 25);
  s.lease_deadline = 500; /* a later deadline after a loss has no effect */
  expect_action(&s, 24, CLI_ACTION_NONE, 25);
  expect_action(&s, 25, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(loss_after_term_never_delays_kill)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  expect_action(&s, 95, CLI_ACTION_TERM, 100);
  cli_kill_schedule_lock_lost(&s, 98);
  expect_action(&s, 98, CLI_ACTION_NONE, 100);
  expect_action(&s, 100, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_TERM);
  expect_action(&s, 95, CLI_ACTION_TERM, 100);
  s.lease_deadline = 1000;
  cli_kill_schedule_lock_lost(&s, 200);
  expect_action(&s, 200, CLI_ACTION_NONE, 205);
  expect_action(&s, 205, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(processes_left_by_a_command_get_the_margin_at_most)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  expect_action(&s, 95, CLI_ACTION_TERM, 100);
  s.lease_deadline = 1000;
  cli_kill_schedule_command_ended(&s);
  expect_action(&s, 99, CLI_ACTION_NONE, 100);
  expect_action(&s, 100, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_TERM);
  expect_action(&s, 97, CLI_ACTION_TERM, 100);
  cli_kill_schedule_command_ended(&s);
  expect_action(&s, 97, CLI_ACTION_NONE, 100);
  s = schedule_of(CLI_ON_LOST_TERM);
  cli_kill_schedule_command_ended(&s); /* COMMAND ends before TERM was sent */
  expect_action(&s, 94, CLI_ACTION_NONE, 95);
}
END_TEST

/* The process that calls the schedule was suspended until after the deadline.
 */
START_TEST(after_the_deadline_the_command_still_gets_the_margin_to_stop)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  expect_action(&s, 1000, CLI_ACTION_TERM, 1005);
  cli_kill_schedule_lock_lost(&s, 1003);
  expect_action(&s, 1003, CLI_ACTION_NONE, 1005);
  expect_action(&s, 1005, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_TERM);
  /* At the deadline itself, it counts as passed. */
  expect_action(&s, 100, CLI_ACTION_TERM, 105);
}
END_TEST

START_TEST(kill_comes_the_margin_before_the_deadline_or_with_the_loss)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_KILL);

  expect_action(&s, 94, CLI_ACTION_NONE, 95);
  expect_action(&s, 95, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_KILL);
  cli_kill_schedule_lock_lost(&s, 7);
  expect_action(&s, 7, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(stopped_command_waits_for_a_new_lease_and_is_killed_when_lost)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_STOP);

  expect_action(&s, 95, CLI_ACTION_STOP, 100);
  s.all_stopped = true;
  expect_action(&s, 500, CLI_ACTION_NONE, NEVER);
  s.lease_deadline = 600;
  expect_action(&s, 510, CLI_ACTION_CONT, 595);
  expect_action(&s, 595, CLI_ACTION_STOP, 600);
  s.all_stopped = true;
  cli_kill_schedule_lock_lost(&s, 700);
  expect_action(&s, 700, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(command_that_cannot_be_stopped_in_time_is_killed)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_STOP);

  s.margin_ms = 30; /* KILL comes 30 / 10 ms before the deadline */
  expect_action(&s, 70, CLI_ACTION_STOP, 97);
  expect_action(&s, 96, CLI_ACTION_NONE, 97);
  expect_action(&s, 97, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(kill_comes_a_tenth_of_a_long_margin_before_the_deadline)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  s.margin_ms = 50; /* KILL comes 50 / 10 ms before the deadline */
  expect_action(&s, 50, CLI_ACTION_TERM, 95);
  expect_action(&s, 95, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(earlier_deadline_and_shorter_margin_count_at_once)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  expect_action(&s, 0, CLI_ACTION_NONE, 95);
  s.lease_deadline = 50;
  s.margin_ms = 2;
  expect_action(&s, 1, CLI_ACTION_NONE, 48);
  expect_action(&s, 48, CLI_ACTION_TERM, 50);
}
END_TEST

START_TEST(after_the_longest_hold_term_and_kill_come_however_long_the_lease)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_TERM);

  s.max_hold_ends_at = 50;
  expect_action(&s, 0, CLI_ACTION_NONE, 50);
  s.lease_deadline = 1000;
  expect_action(&s, 50, CLI_ACTION_TERM, 55);
  s.lease_deadline = 2000;
  expect_action(&s, 54, CLI_ACTION_NONE, 55);
  expect_action(&s, 55, CLI_ACTION_KILL, NEVER);
  /* If the lease deadline comes first, it applies. */
  s = schedule_of(CLI_ON_LOST_TERM);
  s.max_hold_ends_at = 98;
  expect_action(&s, 0, CLI_ACTION_NONE, 95);
  s.lease_deadline = 101;
  expect_action(&s, 95, CLI_ACTION_NONE, 96);
  expect_action(&s, 98, CLI_ACTION_TERM, 101);
  expect_action(&s, 101, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_TERM);
  s.max_hold_ends_at = 50;
  expect_action(&s, 50, CLI_ACTION_TERM, 55);
  cli_kill_schedule_lock_lost(&s, 53);
  expect_action(&s, 53, CLI_ACTION_NONE, 55);
  expect_action(&s, 55, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(after_the_longest_hold_the_policies_kill_and_stop_send_kill)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_KILL);

  s.max_hold_ends_at = 50;
  expect_action(&s, 49, CLI_ACTION_NONE, 50);
  expect_action(&s, 50, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_STOP);
  s.max_hold_ends_at = 50;
  expect_action(&s, 50, CLI_ACTION_KILL, NEVER);
  s = schedule_of(CLI_ON_LOST_STOP);
  s.max_hold_ends_at = 200;
  expect_action(&s, 95, CLI_ACTION_STOP, 100);
  s.all_stopped = true;
  expect_action(&s, 95, CLI_ACTION_NONE, 200);
  expect_action(&s, 200, CLI_ACTION_KILL, NEVER);
}
END_TEST

START_TEST(the_policy_ignore_does_nothing)
{
  cli_kill_schedule s = schedule_of(CLI_ON_LOST_IGNORE);

  expect_action(&s, 1000, CLI_ACTION_NONE, NEVER);
  cli_kill_schedule_lock_lost(&s, 1000);
  expect_action(&s, 2000, CLI_ACTION_NONE, NEVER);
}
END_TEST

SUITE("kill_schedule", term_comes_the_margin_before_the_deadline_and_kill_at_it,
      deadline_renewed_before_the_margin_moves_all_signals,
      a_lock_that_is_lost_means_term_at_once_and_kill_after_the_margin,
      loss_after_term_never_delays_kill,
      processes_left_by_a_command_get_the_margin_at_most,
      after_the_deadline_the_command_still_gets_the_margin_to_stop,
      kill_comes_the_margin_before_the_deadline_or_with_the_loss,
      stopped_command_waits_for_a_new_lease_and_is_killed_when_lost,
      command_that_cannot_be_stopped_in_time_is_killed,
      kill_comes_a_tenth_of_a_long_margin_before_the_deadline,
      earlier_deadline_and_shorter_margin_count_at_once,
      after_the_longest_hold_term_and_kill_come_however_long_the_lease,
      after_the_longest_hold_the_policies_kill_and_stop_send_kill,
      the_policy_ignore_does_nothing)
