/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/set_watches_retry.h"

#include "proto/engine/client.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_events.h"

bool lk__set_watches_send(lk_client *c)
{
  int count = lk__set_watches_encode(&c->watches, c->session.last_zxid,
                                     c->options.send_limit, &c->output.bytes);

  if (count < 0)
    return false;
  c->set_watches.sent = c->set_watches.unanswered = (size_t)count;
  c->set_watches.throttled = false;
  return true;
}

void lk__set_watches_retry_later(lk_client *c)
{
  if (c->set_watches.unanswered > 0 || c->set_watches.retry_ms != LK_NEVER)
    return;
  c->set_watches.tries++;
  c->set_watches.retry_ms =
      c->now + lk__hosts_pause_ms(c->session.timeout_ms, c->set_watches.tries,
                                  LK_PAUSE_DOUBLINGS, c->hooks.random,
                                  c->hooks.arg);
  lk__client_wake(c);
}

void lk__set_watches_finish(lk_client *c, bool missing)
{
  if (missing)
    lk__set_watches_retry_later(c);
  else
    c->set_watches.tries = 0;
}

/* No setWatches was needed: the missing watches were registered by an addWatch,
 * or have ended. */
static void finish_retry(lk_client *c)
{
  bool missing = lk__set_watches_acknowledge(&c->watches, LK_ALL_SET_WATCHES);

  lk__set_watches_finish(c, missing);
  lk__watches_notify_reregistered_late(c);
}

bool lk__set_watches_run_retry(lk_client *c)
{
  c->set_watches.retry_ms = LK_NEVER;
  if (c->close.begun)
    return true; /* nothing may be sent behind closeSession */
  if (!lk__set_watches_send(c))
    return false;
  if (c->set_watches.unanswered == 0)
    finish_retry(c);
  lk__client_wake(c);
  return true;
}
