/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

#include <string.h>

#include "support/suite.h"

static const lk_transport_type *transport_types(size_t i)
{
  return i == 0 ? lk_transport_tcp() : lk_transport_tls();
}

/* `to` is refused before a descriptor is opened. */
static void expect_refused(const lk_transport_type *type, const lk_endpoint *to,
                           const char *why)
{
  lk_transport *t = calloc(1, type->object_size);

  ck_assert_ptr_nonnull(t);
  t->fd = -1;
  ck_assert_int_eq(type->open(t, to), LK_FLOW_FAILED);
  ck_assert_int_eq(t->err, LK_ERR_CONNECT);
  ck_assert_str_eq(t->why, why);
  ck_assert_int_eq(t->fd, -1);
  type->close(t);
  if (type->end != NULL)
    type->end(t);
  free(t);
}

/* The endpoint of a program with newer headers. */
typedef struct newer_endpoint {
  lk_endpoint known;
  int newer_option;
} newer_endpoint;

START_TEST(endpoint_needs_its_size_and_no_newer_option)
{
  for (size_t i = 0; i < 2; i++) {
    const lk_transport_type *type = transport_types(i);
    newer_endpoint to = {.newer_option = 1};

    if (type == NULL)
      continue;
    ck_assert_uint_eq(type->size, sizeof *type);
    expect_refused(type, &to.known, "lk_endpoint.size is not set");
    to.known.size = sizeof to;
    expect_refused(type, &to.known,
                   "lk_endpoint has an option that is newer than this library");
  }
}
END_TEST

SUITE("endpoint", endpoint_needs_its_size_and_no_newer_option)
