/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/foreign_node.h"

#include <string.h>

#include "recipes/queue/names.h"

/* The directory of a semaphore's permits, in Curator's layout. */
static const char permits_dir[] = "leases";
enum { SEQUENCE_LEN = 10 /* digits that a server appends to a name */ };

bool lk__name_is_foreign(lk_bytes name)
{
  const unsigned char *at = name.at;
  size_t digits = 0;

  while (digits < name.len && at[name.len - digits - 1] >= '0' &&
         at[name.len - digits - 1] <= '9')
    digits++;
  return digits >= SEQUENCE_LEN || lk__name_is_hex(name) ||
         (name.len == strlen(permits_dir) &&
          memcmp(at, permits_dir, name.len) == 0);
}
