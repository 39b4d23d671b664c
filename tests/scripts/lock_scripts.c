/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Plays tests/scripts/lock/ *.txt. */

#include "scripts/lock_play.h"
#include "scripts/transcripts.h"
#include "support/suite.h"
#include "support/wire.h"

static void play_and_compare(const transcript *t)
{
  lk_buf out = wire_buf();

  lock_play(t->text, NULL, &out);
  wire_say(&out, "%c", '\0'); /* ends the string */
  transcripts_compare(t, (char *)lk__buf_bytes(&out), "");
  lk__buf_free(&out);
}

START_TEST(locks_follow_the_transcripts)
{
  ck_assert_uint_gt(transcripts_count, 10);
  for (size_t i = 0; i < transcripts_count; i++)
    play_and_compare(&transcripts[i]);
}
END_TEST

/* Play with a fault. The outputs then differ from the transcript and are not
   compared, but the player checks that no memory and no node is left. */
static void play_with_fault(const transcript *t, lock_play_mode *mode)
{
  lk_buf out = wire_buf();

  lock_play(t->text, mode, &out);
  lk__buf_free(&out);
}

START_TEST(each_allocation_may_fail_in_any_transcript)
{
  for (size_t i = 0; i < transcripts_count; i++) {
    lock_play_mode mode = {.happened = true}; /* lets the loop begin */

    for (size_t n = 1; mode.happened; n++) {
      mode = (lock_play_mode){.fail_at = n};
      play_with_fault(&transcripts[i], &mode);
    }
  }
}
END_TEST

enum { AT_STEP = 3 }; /* a third of all places, to save time */

START_TEST(connections_may_break_between_bytes)
{
  for (size_t i = 0; i < transcripts_count; i++) {
    lock_play_mode mode = {.happened = true}; /* lets the loop begin */

    for (size_t at = 1; mode.happened; at += AT_STEP) {
      mode = (lock_play_mode){.cut = true, .at = at};
      play_with_fault(&transcripts[i], &mode);
    }
  }
}
END_TEST

static void load_transcripts(void)
{
  transcripts_load("lock");
}

SUITE_WITH("lock", load_transcripts, locks_follow_the_transcripts,
           each_allocation_may_fail_in_any_transcript,
           connections_may_break_between_bytes)
