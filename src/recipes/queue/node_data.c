/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/node_data.h"

#include <latchkey/lock.h>

bool lk__is_announcement(lk_bytes data)
{
  static const char word[] = LK_ANNOUNCEMENT;
  size_t len = sizeof word - 1;

  return data.at != NULL && data.len >= len &&
         memcmp((const char *)data.at + data.len - len, word, len) == 0;
}

bool lk__is_revocation(lk_bytes data)
{
  static const char word[] = LK_REVOKE_MESSAGE;

  return data.at != NULL && data.len == sizeof word - 1 &&
         memcmp(data.at, word, data.len) == 0;
}
