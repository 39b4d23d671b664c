/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/node_data.h"

#include <latchkey/lock.h>

bool lk__is_announcement(lk_bytes data)
{
  size_t len = strlen(LK_ANNOUNCEMENT);

  return data.at != NULL && data.len >= len &&
         memcmp((const char *)data.at + data.len - len, LK_ANNOUNCEMENT, len) ==
             0;
}

bool lk__is_revocation(lk_bytes data)
{
  return data.at != NULL && data.len == strlen(LK_REVOKE_MESSAGE) &&
         memcmp(data.at, LK_REVOKE_MESSAGE, data.len) == 0;
}
