/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sized_struct.h"

#include <stdbool.h>
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

const char *lk__sized_struct_check(const lk_sized_struct *what,
                                   const void *from)
{
  size_t given = size_of(from);

  if (given < what->least || given > LONGEST_STRUCT)
    return what->unset;
  if (given > what->size &&
      !is_zero((const unsigned char *)from + what->size, given - what->size))
    return what->beyond;
  return NULL;
}

const char *lk__sized_struct_copy(const lk_sized_struct *what, void *out,
                                  const void *from)
{
  size_t given = 0; /* bytes that are copied */

  if (from != NULL) {
    const char *refusal = lk__sized_struct_check(what, from);

    if (refusal != NULL)
      return refusal;
    given = size_of(from) < what->size ? size_of(from) : what->size;
    memcpy(out, from, given);
  }
  memset((unsigned char *)out + given, 0, what->size - given);
  memcpy(out, &what->size, sizeof what->size);
  return NULL;
}
