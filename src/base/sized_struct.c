/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sized_struct.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* No public struct is longer. A larger `size` means that the program has not
 * initialised the struct, so it is not read. */
enum { LONGEST_STRUCT = 4096 };

static bool is_zero(const unsigned char *at, size_t len)
{
  for (size_t i = 0; i < len; i++) {
    if (at[i] != 0)
      return false;
  }
  return true;
}

static size_t size_of(const void *from)
{
  size_t size;

  memcpy(&size, from, sizeof size);
  return size;
}

lk_size_fault lk__sized_struct_check(const lk_sized_struct *what,
                                     const void *from)
{
  size_t given = size_of(from);

  if (given < what->least || given > LONGEST_STRUCT)
    return LK_SIZE_UNSET;
  if (given > what->size &&
      !is_zero((const unsigned char *)from + what->size, given - what->size))
    return LK_SIZE_NEWER;
  return LK_SIZE_OK;
}

lk_size_fault lk__sized_struct_copy(const lk_sized_struct *what, void *out,
                                    const void *from)
{
  size_t given = 0; /* bytes that are copied */

  if (from != NULL) {
    lk_size_fault fault = lk__sized_struct_check(what, from);

    if (fault != LK_SIZE_OK)
      return fault;
    given = size_of(from) < what->size ? size_of(from) : what->size;
    memcpy(out, from, given);
  }
  memset((unsigned char *)out + given, 0, what->size - given);
  memcpy(out, &what->size, sizeof what->size);
  return LK_SIZE_OK;
}

const char *lk__sized_struct_text(const lk_sized_struct *what,
                                  lk_size_fault fault,
                                  char text[LK_SIZE_TEXT_ROOM])
{
  snprintf(text, LK_SIZE_TEXT_ROOM, "%s%s", what->name,
           fault == LK_SIZE_UNSET
               ? ".size is not set"
               : " has an option that is newer than this library");
  return text;
}
