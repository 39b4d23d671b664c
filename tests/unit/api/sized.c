/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/api/sized.h"

#include "support/suite.h"

#include <latchkey/client.h>

#include <stdio.h>
#include <string.h>

enum { MORE = 24 };

static char logged[256];

void sized_log(void *arg, int level, int err, const char *text)
{
  (void)arg;
  if (level == LK_LOG_ERROR && err == LK_ERR_BAD_ARGUMENT)
    snprintf(logged, sizeof logged, "%s", text);
}

/* Pass a struct that claims to have `size` bytes, in a block of `room` bytes
   with zeros behind the struct. If `odd` is not 0, the byte there is not zero.
 */
static int hand_in(const sized_row *row, size_t room, size_t size, size_t odd)
{
  size_t shared = room < row->what.size ? room : row->what.size;
  unsigned char *s = calloc(1, room);

  ck_assert_ptr_nonnull(s);
  memcpy(s, row->valid, shared);
  memcpy(s, &size, sizeof size);
  if (odd != 0)
    s[odd] = 1;
  logged[0] = '\0';
  int err = row->hand_in(s);

  free(s);
  return err;
}

static void accepted(const sized_row *row, size_t size)
{
  int err = hand_in(row, size, size, 0);

  ck_assert_msg(err == 0, "%s of %zu bytes: %s", row->name, size,
                lk_error_text(err));
  ck_assert_str_eq(logged, "");
}

static void forgotten(const sized_row *row, size_t size)
{
  size_t room =
      size < sizeof size || size > row->what.size ? sizeof size : size;
  int err = hand_in(row, room, size, 0);

  ck_assert_msg(err == LK_ERR_BAD_ARGUMENT, "%s of %zu bytes: %s", row->name,
                size, lk_error_text(err));
  ck_assert_str_eq(logged, row->silent_unset ? "" : row->what.unset);
}

static void too_new(const sized_row *row, size_t odd)
{
  size_t size = row->what.size + MORE;
  int err = hand_in(row, size, size, odd);

  ck_assert_msg(err == LK_ERR_BAD_ARGUMENT, "%s with byte %zu set: %s",
                row->name, odd, lk_error_text(err));
  ck_assert_str_eq(logged, row->silent_beyond ? "" : row->what.beyond);
}

void sized_check(const sized_row *row)
{
  const size_t size = row->what.size;

  /* Sizes that end within a pointer are not tried: no version of the headers
     has them. */
  accepted(row, row->what.least);
  for (size_t n = row->what.least; n <= size + MORE; n++) {
    if (n % sizeof(void *) == 0)
      accepted(row, n);
  }
  for (size_t n = 0; n < row->what.least; n++)
    forgotten(row, n);
  forgotten(row, 4097);
  forgotten(row, SIZE_MAX);
  for (size_t odd = size; odd < size + MORE; odd++)
    too_new(row, odd);
}
