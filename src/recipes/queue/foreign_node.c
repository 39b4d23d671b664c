/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/names.h"
#include "recipes/queue/foreign_node.h"

#include <string.h>

/* The digits of the number that a server appends to a name. */
enum { SEQUENCE_LEN = 10 };

static size_t count_digits_at_end(lk_bytes name)
{
  const unsigned char *at = name.at;
  size_t len = name.len;

  while (len > 0 && at[len - 1] >= '0' && at[len - 1] <= '9')
    len--;
  return name.len - len;
}

/* Whether `name` is the directory of a semaphore's permits in Curator's layout.
 */
static bool is_permits_dir(lk_bytes name)
{
  return lk__names_are_equal(name, lk_text("leases"));
}

bool lk__name_is_foreign(lk_bytes name)
{
  size_t digits = count_digits_at_end(name);

  return digits >= SEQUENCE_LEN || lk__name_is_hex(name) ||
         is_permits_dir(name);
}
