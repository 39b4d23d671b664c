/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Plays tests/scripts/session/ *.txt and tests/scripts/requests/ *.txt. */

#include "scripts/play.h"
#include "scripts/transcripts.h"
#include "support/suite.h"
#include "support/wire.h"

#define NO_FAULTS NULL

static void play_and_compare(const transcript *t, play_mode *mode,
                             const char *how)
{
  lk_buf out = wire_buf();

  play(t->text, mode, &out);
  wire_say(&out, "%c", '\0');
  transcripts_compare(t, (char *)lk__buf_bytes(&out), how);
  lk__buf_free(&out);
}

START_TEST(client_follows_the_transcripts)
{
  ck_assert_uint_gt(transcripts_count, 5);
  for (size_t i = 0; i < transcripts_count; i++)
    play_and_compare(&transcripts[i], NO_FAULTS, "");
}
END_TEST

START_TEST(client_follows_the_transcripts_byte_by_byte)
{
  play_mode mode = {.step = 1};

  for (size_t i = 0; i < transcripts_count; i++)
    play_and_compare(&transcripts[i], &mode, ", byte by byte");
}
END_TEST

/* Play with a fault. The outputs then differ from the transcript and are not
   compared, but the harness checks that every request completes once and all
   memory is freed. */
static void play_with_fault(const transcript *t, play_mode *mode)
{
  lk_buf out = wire_buf();

  play(t->text, mode, &out);
  lk__buf_free(&out);
}

START_TEST(each_allocation_may_fail_in_any_transcript)
{
  for (size_t i = 0; i < transcripts_count; i++) {
    play_mode mode = {.failed = true}; /* lets the loop begin */

    for (size_t n = 1; mode.failed; n++) {
      mode = (play_mode){.fail_at = n};
      play_with_fault(&transcripts[i], &mode);
    }
  }
}
END_TEST

START_TEST(all_allocations_may_fail_from_any_time_on)
{
  for (size_t i = 0; i < transcripts_count; i++) {
    play_mode mode = {.failed = true}; /* lets the loop begin */

    for (size_t n = 1; mode.failed; n++) {
      mode = (play_mode){.fail_at = n, .for_good = true};
      play_with_fault(&transcripts[i], &mode);
    }
  }
}
END_TEST

enum { BYTES_MAX = 5000 }; /* limits the time for long transcripts */

START_TEST(server_may_disconnect_after_any_byte)
{
  for (size_t i = 0; i < transcripts_count; i++) {
    play_mode mode = {.failed = true}; /* lets the loop begin */

    for (size_t at = 0; mode.failed && at < BYTES_MAX; at++) {
      mode = (play_mode){.cut = true, .at = at};
      play_with_fault(&transcripts[i], &mode);
    }
  }
}
END_TEST

static void load_session(void)
{
  transcripts_load("session");
}

static void load_requests(void)
{
  transcripts_load("requests");
}

#define TESTS                                                                  \
  client_follows_the_transcripts, client_follows_the_transcripts_byte_by_byte, \
      each_allocation_may_fail_in_any_transcript,                              \
      all_allocations_may_fail_from_any_time_on,                               \
      server_may_disconnect_after_any_byte

SUITE_WITH("session", load_session, TESTS)
SUITE_WITH("requests", load_requests, TESTS)
