/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_API_SIZED_H
#define LK_UNIT_API_SIZED_H

#include <latchkey/client.h>

#include "base/sized_struct.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Public structs whose first member is their size, as they come from programs
 * that were compiled with older or newer headers. Each struct stands at the end
 * of its block, so that AddressSanitizer reports a read behind it.
 */
typedef struct sized_row {
  const char *name;  /* of the call, and of the struct where needed */
  const void *valid; /* a valid struct; only the first option may be set */
  lk_sized_struct what;
  int (*hand_in)(const void *s); /* pass the struct; the result of the call */
  bool silent_unset;  /* a missing size is not logged: there is no log yet */
  bool silent_beyond; /* a newer option is not logged: there is no log yet */
} sized_row;

/** A row for `variable`, a struct of `type`. */
#define SIZED_ROW(type, variable, ...)                               \
  {                                                                  \
    .valid = &(variable), .what = LK_SIZED_STRUCT(type), __VA_ARGS__ \
  }

/** The timeout of a blocking call that takes the struct. */
extern int64_t sized_timeout_ms;
/** For lk_client_config.log. */
void sized_log(void *arg, lk_log_level level, int err, const char *text);
/** Try valid sizes, sizes that were forgotten, and sizes of newer headers. */
void sized_check(const sized_row *row);

#endif
