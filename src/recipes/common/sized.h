/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_SIZED_H
#define LK_RECIPES_COMMON_SIZED_H

#include "base/sized.h"

#include <latchkey/client.h>

/** Copy a caller's struct, which begins with its size; `from` NULL: all its
    options are 0. LK_ERR_BAD_ARGUMENT: the reason is logged through `c`, unless
    that is NULL. */
static inline int lk__sized_take(const lk_client *c, const lk_sized *sized,
                                 void *out, const void *from)
{
  const char *wrong = lk__sized_copy(sized, out, from);

  if (wrong == NULL)
    return 0;
  if (c != NULL)
    lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return LK_ERR_BAD_ARGUMENT;
}

#endif
