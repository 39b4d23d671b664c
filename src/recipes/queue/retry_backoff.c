/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/retry_backoff.h"

enum { FIRST_PAUSE_MS = 50, MAX_PAUSE_DOUBLINGS = 4 };

void lk__contender_start_pause(lk_contender *ct, int64_t ms)
{
  lk_client *c = lk__contender_client(ct);

  lk__lease_start_timer(ct->lease, &ct->pause.timer, lk_client_clock(c) + ms);
}

int64_t lk__contender_backoff_ms(lk_contender *ct)
{
  int64_t ms = (int64_t)FIRST_PAUSE_MS << ct->pause.doublings;
  uint16_t jitter;

  if (ct->pause.doublings < MAX_PAUSE_DOUBLINGS)
    ct->pause.doublings++;
  lk_client_random(lk__contender_client(ct), &jitter, sizeof jitter);
  return ms + jitter % ms;
}
