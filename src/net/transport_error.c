/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/transport_error.h"

#include <stdio.h>
#include <string.h>

/* strerror_r() returns a text (glibc) or a number (POSIX). */
static inline const char *text_given(const char *text, const char *buffer)
{
  (void)buffer;
  return text;
}

static inline const char *text_filled(int failed, const char *buffer)
{
  return failed != 0 ? "unknown error" : buffer;
}

#define TEXT_OF(result, buffer) \
  _Generic((result), char * : text_given, int : text_filled)(result, buffer)

lk_flow lk__transport_fail(lk_transport *t, int err, const char *what,
                           int number)
{
  char buffer[96] = "";
  const char *text = TEXT_OF(strerror_r(number, buffer, sizeof buffer), buffer);

  t->err = err;
  t->sys_errno = number;
  snprintf(t->why, sizeof t->why, "%s: %s", what, text);
  return LK_FLOW_FAILED;
}
