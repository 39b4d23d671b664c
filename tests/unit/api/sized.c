/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/api/sized.h"

#include "support/suite.h"

#include <latchkey/client.h>

#include <stdio.h>
#include <string.h>

enum { NEWER_OPTIONS = 24 }; /* bytes of the options of a newer header */

static char logged[256]; /* the error of the last call */

/* A call that is refused ends at once, and may take its time on a busy machine.
 * An accepted one ends at its timeout. */
enum { REFUSED_MS = 10000, ACCEPTED_MS = 20 };
int64_t sized_timeout_ms = REFUSED_MS;

void sized_log(void *arg, lk_log_level level, int err, const char *text)
{
  (void)arg;
  if (level == LK_LOG_ERROR && err == LK_ERR_BAD_ARGUMENT)
    snprintf(logged, sizeof logged, "%s", text);
}

enum { NONE = 0 };

/* Pass a struct that claims to have `size` bytes, in a block of `block_size`
   bytes with zeros behind the struct. `nonzero_at`: the byte there is 1, or
   NONE. */
static int hand_in(const sized_row *row, size_t block_size, size_t size,
                   size_t nonzero_at)
{
  size_t copied = block_size < row->what.size ? block_size : row->what.size;
  unsigned char *s = calloc(1, block_size);

  ck_assert_ptr_nonnull(s);
  memcpy(s, row->valid, copied);
  memcpy(s, &size, sizeof size);
  if (nonzero_at != NONE)
    s[nonzero_at] = 1;
  logged[0] = '\0';
  int err = row->hand_in(s);

  free(s);
  /* No server replies, so a blocking call that was accepted ends so. */
  return err == LK_ERR_DEADLINE ? 0 : err;
}

static void expect_accepted(const sized_row *row, size_t size)
{
  sized_timeout_ms = ACCEPTED_MS;
  int err = hand_in(row, size, size, NONE);

  sized_timeout_ms = REFUSED_MS;
  ck_assert_msg(err == 0, "%s of %zu bytes: %s", row->name, size,
                lk_error_text(err));
  ck_assert_str_eq(logged, "");
}

/* `size`: a value that a program may have left there by mistake. */
static void expect_missing_size(const sized_row *row, size_t size)
{
  size_t block_size =
      size < sizeof size || size > row->what.size ? sizeof size : size;
  int err = hand_in(row, block_size, size, NONE);

  ck_assert_msg(err == LK_ERR_BAD_ARGUMENT, "%s of %zu bytes: %s", row->name,
                size, lk_error_text(err));
  char text[LK_SIZE_TEXT_ROOM] = "";

  if (!row->silent_unset)
    (void)lk__sized_struct_text(&row->what, LK_SIZE_UNSET, text);
  ck_assert_msg(strcmp(logged, text) == 0, "%s of %zu bytes: %s", row->name,
                size, logged);
}

static void expect_newer_option_refused(const sized_row *row, size_t at)
{
  size_t size = row->what.size + NEWER_OPTIONS;
  int err = hand_in(row, size, size, at);

  ck_assert_msg(err == LK_ERR_BAD_ARGUMENT, "%s with byte %zu set: %s",
                row->name, at, lk_error_text(err));
  char text[LK_SIZE_TEXT_ROOM] = "";

  if (!row->silent_beyond)
    (void)lk__sized_struct_text(&row->what, LK_SIZE_NEWER, text);
  ck_assert_msg(strcmp(logged, text) == 0, "%s with byte %zu set: %s",
                row->name, at, logged);
}

void sized_check(const sized_row *row)
{
  const size_t size = row->what.size;

  /* Sizes that end within a pointer are not tried: no version of the headers
     has them. */
  expect_accepted(row, row->what.least);
  for (size_t n = row->what.least; n <= size + NEWER_OPTIONS; n++) {
    if (n % sizeof(void *) == 0)
      expect_accepted(row, n);
  }
  for (size_t n = 0; n < row->what.least; n++)
    expect_missing_size(row, n);
  expect_missing_size(row, 4097); /* more than any struct can have */
  expect_missing_size(row, SIZE_MAX);
  for (size_t at = size; at < size + NEWER_OPTIONS; at++)
    expect_newer_option_refused(row, at);
}
