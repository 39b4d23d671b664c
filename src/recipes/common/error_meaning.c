/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_meaning.h"

lk_error_advice lk__error_advice(int err)
{
  switch (err) {
  case LK_ERR_NOT_SENT:
  case LK_ERR_CONNECTION_LOSS:
  case LK_ERR_IN_DOUBT:
  case LK_ERR_SESSION_EXPIRED: return LK_ADVICE_AWAIT_CONNECTION;
  case LK_ERR_THROTTLED:
  case LK_ERR_SESSION_MOVED:
  case LK_ERR_NOT_READ_ONLY: return LK_ADVICE_RETRY_LATER;
  default: return LK_ADVICE_GIVE_UP;
  }
}
