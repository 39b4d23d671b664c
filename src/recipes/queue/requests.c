/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/requests.h"

enum { PAUSE_MS = 50, MAX_PAUSE_DOUBLINGS = 4 };

int lk__contender_count_request(lk_contender *ct, int err)
{
  if (err == 0) {
    ct->requests.sent++;
    lk__contender_ref(ct);
  }
  return err;
}

bool lk__contender_take_reply(lk_contender *ct)
{
  return ++ct->requests.replied > ct->requests.ignored;
}

void lk__contender_ignore_replies(lk_contender *ct)
{
  ct->requests.ignored = ct->requests.sent;
}

/* ---- pauses ------------------------------------------------------------- */

void lk__contender_start_pause(lk_contender *ct, int64_t ms)
{
  lk_client *c = lk__contender_client(ct);

  lk__lease_start_timer(ct->lease, &ct->pause.timer, lk_client_clock(c) + ms);
}

int64_t lk__contender_pause_ms(lk_contender *ct)
{
  int64_t ms = (int64_t)PAUSE_MS << ct->pause.count;
  uint16_t jitter;

  if (ct->pause.count < MAX_PAUSE_DOUBLINGS)
    ct->pause.count++;
  lk_client_random(lk__contender_client(ct), &jitter, sizeof jitter);
  return ms + jitter % ms;
}

/* ---- errors that say nothing about the lock ----------------------------- */

void lk__contender_request_failed(lk_contender *ct, int err)
{
  ct->cleanup.too_big = ct->cleanup.too_big || err == LK_ERR_TOO_BIG;
  switch (lk__error_advice(lk__contender_client(ct), err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_RETRY_LATER:
    lk__contender_start_pause(ct, lk__contender_pause_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_GIVE_UP: lk__contender_fail(ct, err); break;
  }
}

bool lk__contender_fail_if_too_big(lk_contender *ct, int err)
{
  if (err != LK_ERR_TOO_BIG || ct->state != LK_CONTENDER_PAUSED)
    return false;
  lk__contender_request_failed(ct, err);
  return true;
}
