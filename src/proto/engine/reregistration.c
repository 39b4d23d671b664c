/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/reregistration.h"

#include "proto/engine/client.h"
#include "proto/engine/set_watches.h"

bool lk__reregistration_send(lk_client *c)
{
  int count = lk__set_watches_encode(&c->watches, c->session.last_zxid,
                                     c->options.send_limit, &c->output.bytes);

  if (count < 0)
    return false;
  c->reregistration.sent = c->reregistration.unanswered = (size_t)count;
  c->reregistration.throttled = false;
  return true;
}

void lk__reregistration_retry_later(lk_client *c)
{
  if (c->reregistration.unanswered > 0 ||
      c->reregistration.retry_ms != LK_NEVER)
    return;
  c->reregistration.tries++;
  c->reregistration.retry_ms =
      c->now + lk__hosts_pause_ms(c->session.timeout_ms,
                                  c->reregistration.tries, c->hooks.random,
                                  c->hooks.arg);
  lk__client_wake(c);
}

void lk__reregistration_finish(lk_client *c, bool missing)
{
  if (missing)
    lk__reregistration_retry_later(c);
  else
    c->reregistration.tries = 0;
}
