/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Calls of the library may nest: a callback calls the client that invoked it.
 * Waking the driver and freeing the client wait until the outermost call ends.
 */

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"

void lk__client_enter(lk_client *c)
{
  if (c->nesting.depth++ > 0)
    return;
  c->now = c->hooks.now(c->hooks.arg);
  if (c->output.sent_unstamped)
    c->output.sent_ms = c->now;
  c->output.sent_unstamped = false;
}

void lk__client_leave(lk_client *c)
{
  c->now_stale = true;
  lk__client_release(c);
}

void lk__client_hold(lk_client *c)
{
  c->nesting.depth++;
}

/* End the outermost call. Only this function wakes the driver. The hook may
 * give inputs, which may set wake_wanted again. The depth stays 1 until the
 * hook has returned, so that such an input counts as nested. */
static void end_outermost(lk_client *c)
{
  lk__invariants_check(c, LK_MOMENT_REST);
  while (c->nesting.wake_wanted && !c->nesting.free_wanted) {
    c->nesting.wake_wanted = false;
    c->nesting.waking = true;
    c->hooks.wake(c, c->hooks.arg);
    c->nesting.waking = false;
  }
  c->nesting.depth = 0;
  if (c->nesting.free_wanted)
    c->nesting.destroy(c);
}

void lk__client_release(lk_client *c)
{
  if (c->nesting.depth > 1)
    c->nesting.depth--;
  else
    end_outermost(c);
}

void lk__client_wake(lk_client *c)
{
  lk__client_hold(c);
  c->nesting.wake_wanted = true;
  lk__client_release(c);
}
