/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_meaning.h"

lk_trouble lk__trouble_of(int err)
{
  switch (err) {
  case LK_ERR_NOT_SENT:
  case LK_ERR_LOSS:
  case LK_ERR_UNKNOWN:
  case LK_ERR_SESSION_EXPIRED: return LK_TROUBLE_BROKEN;
  case LK_ERR_THROTTLED:
  case LK_ERR_SESSION_MOVED:
  case LK_ERR_NOT_READ_ONLY: return LK_TROUBLE_BUSY;
  default: return LK_TROUBLE_FATAL;
  }
}
