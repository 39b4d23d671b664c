/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/transport.h"

#include <stdio.h>
#include <string.h>

#include <latchkey/client.h>

#include "base/sized_struct.h"

/* strerror_r() of glibc returns the text; that of POSIX returns 0 or an error,
   and writes the text to the buffer. TEXT_OF() takes either. */
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
                           int sys_errno)
{
  char buffer[96] = "";
  const char *text =
      TEXT_OF(strerror_r(sys_errno, buffer, sizeof buffer), buffer);

  t->err = err;
  t->sys_errno = sys_errno;
  snprintf(t->why, sizeof t->why, "%s: %s", what, text);
  return LK_FLOW_FAILED;
}

lk_flow lk__transport_copy_endpoint(lk_transport *t, lk_endpoint *out,
                                    const lk_endpoint *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_endpoint);
  lk_size_fault fault = lk__sized_struct_copy(&what, out, from);

  if (fault == LK_SIZE_OK)
    return LK_FLOW_DONE;
  t->err = LK_ERR_CONNECT;
  t->sys_errno = 0;
  (void)lk__sized_struct_text(&what, fault, t->why);
  return LK_FLOW_FAILED;
}

const lk_transport_type *lk_transport_of(const lk_client *c)
{
  return lk_client_tls(c) == NULL ? lk_transport_tcp() : lk_transport_tls();
}
