/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/error_advice.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/request_errors.h"
#include "recipes/queue/retry_backoff.h"

void lk__contender_request_failed(lk_contender *ct, int err)
{
  if (err == LK_ERR_REPLY_TOO_BIG)
    ct->cleanup.too_big = true;
  switch (lk__error_advice(lk__contender_client(ct), err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    /* Without a timer: the next connection ends the pause. */
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_RETRY_LATER:
    lk__contender_start_pause(ct, lk__contender_backoff_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_GIVE_UP: lk__contender_fail(ct, err); break;
  }
}

bool lk__contender_fail_if_too_big(lk_contender *ct, int err)
{
  if (err != LK_ERR_REPLY_TOO_BIG || ct->state != LK_CONTENDER_PAUSED)
    return false;
  lk__contender_request_failed(ct, err);
  return true;
}
