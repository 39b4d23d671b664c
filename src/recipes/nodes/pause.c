/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/nodes/pause.h"

enum { PAUSE_MS = 100 };

static void pause_complete(lk_pause *p, lk_client *c, int err)
{
  lk__pause_stop(p, c);
  p->over(p->arg, err);
}

static void pause_on_timer(lk_client *c, void *arg)
{
  lk_pause *p = arg;

  pause_complete(p, c, p->last ? LK_ERR_DEADLINE : 0);
}

static void pause_on_state(lk_client *c, lk_state state, int err, void *arg)
{
  (void)err;
  if (state == LK_STATE_CLOSED)
    pause_complete(arg, c, LK_ERR_CLOSED);
  else if (state == LK_STATE_AUTH_FAILED)
    pause_complete(arg, c, LK_ERR_AUTH_FAILED);
}

void lk__pause_until(lk_pause *p, lk_client *c, int64_t at_ms,
                     void (*over)(void *arg, int err), void *arg)
{
  p->timer = (lk_timer){.fire = pause_on_timer, .arg = p};
  p->listener = (lk_listener){.state = pause_on_state, .arg = p};
  p->over = over;
  p->arg = arg;
  p->on = true;
  p->last = false;
  lk_client_attach(c, &p->listener);
  lk_timer_start(c, &p->timer, at_ms);
}

void lk__pause_start(lk_pause *p, lk_client *c, int64_t latest_ms,
                     void (*over)(void *arg, int err), void *arg)
{
  int64_t at = lk_client_clock(c) + PAUSE_MS;
  bool last = at >= latest_ms;

  lk__pause_until(p, c, last ? latest_ms : at, over, arg);
  p->last = last;
}

void lk__pause_stop(lk_pause *p, lk_client *c)
{
  if (!p->on)
    return;
  p->on = false;
  lk_timer_stop(c, &p->timer);
  lk_client_detach(c, &p->listener);
}
