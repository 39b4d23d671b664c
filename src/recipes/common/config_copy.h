/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_CONFIG_COPY_H
#define LK_RECIPES_COMMON_CONFIG_COPY_H

/**
 * @file
 * Copies of a caller's options.
 */

#include "base/sized_struct.h"

#include <latchkey/client.h>

/** Copy the caller's options `from`, a struct that begins with its size, to
    `out`. If `from` is NULL, all options in `out` are 0. Returns 0, or
    LK_ERR_BAD_ARGUMENT if the struct is not valid; the reason is logged, unless
    `c` is NULL. */
static inline int lk__config_copy(const lk_client *c,
                                  const lk_sized_struct *sized, void *out,
                                  const void *from)
{
  const char *wrong = lk__sized_struct_copy(sized, out, from);

  if (wrong == NULL)
    return 0;
  if (c != NULL)
    lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return LK_ERR_BAD_ARGUMENT;
}

#endif
