/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/call.h"

int lk__config_copy(const lk_client *c, const lk_sized_struct *sized, void *out,
                    const void *from)
{
  lk_size_fault fault = lk__sized_struct_copy(sized, out, from);
  char text[LK_SIZE_TEXT_ROOM];

  if (fault == LK_SIZE_OK)
    return 0;
  lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
                lk__sized_struct_text(sized, fault, text));
  return LK_ERR_BAD_ARGUMENT;
}
