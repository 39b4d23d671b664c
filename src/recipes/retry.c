/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/retry.h"

#include "proto/engine/lease_slot.h"

enum { PAUSE_MS = 100 };

static void retry_pause_complete(lk_retry_pause *p, lk_client *c, int err)
{
  lk__retry_pause_stop(p, c);
  p->over(p->arg, err);
}

static void retry_pause_on_timer(lk_client *c, void *arg)
{
  lk_retry_pause *p = arg;

  retry_pause_complete(p, c, p->ends_at_deadline ? LK_ERR_DEADLINE : 0);
}

static void retry_pause_on_state(lk_client *c, lk_state state, int err,
                                 void *arg)
{
  (void)err;
  if (state == LK_STATE_CLOSED)
    retry_pause_complete(arg, c, lk__client_end_err(c));
}

void lk__retry_pause_until(lk_retry_pause *p, lk_client *c, int64_t end_ms,
                           void (*over)(void *arg, int err), void *arg)
{
  p->timer = (lk_timer){.fire = retry_pause_on_timer, .arg = p};
  p->listener = (lk_listener){
      .size = sizeof(lk_listener), .state = retry_pause_on_state, .arg = p};
  p->over = over;
  p->arg = arg;
  p->running = true;
  p->ends_at_deadline = false;
  lk_client_attach(c, &p->listener);
  lk_timer_start(c, &p->timer, end_ms);
}

void lk__retry_pause_start(lk_retry_pause *p, lk_client *c, int64_t deadline_ms,
                           void (*over)(void *arg, int err), void *arg)
{
  int64_t end_ms = lk_client_clock(c) + PAUSE_MS;
  bool ends_at_deadline = end_ms >= deadline_ms;

  lk__retry_pause_until(p, c, ends_at_deadline ? deadline_ms : end_ms, over,
                        arg);
  p->ends_at_deadline = ends_at_deadline;
}

void lk__retry_pause_stop(lk_retry_pause *p, lk_client *c)
{
  if (!p->running)
    return;
  p->running = false;
  lk_timer_stop(c, &p->timer);
  lk_client_detach(c, &p->listener);
}
