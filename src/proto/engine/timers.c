/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/timers.h"

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"

enum {
  MAX_FIRES = 10000 /* callbacks in a row; timers that start themselves again
                       must not occupy the loop for ever */
};

void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms)
{
  lk__heap_remove(&c->timers, &t->node);
  lk__heap_add(&c->timers, &t->node, at_ms);
  lk__client_wake(c);
}

void lk_timer_stop(lk_client *c, lk_timer *t)
{
  lk__heap_remove(&c->timers, &t->node);
}

void lk__timers_run(lk_client *c)
{
  for (int fires = 0; fires < MAX_FIRES; fires++) {
    lk_heap_node *first = c->timers.root;

    if (first == NULL || first->at > c->now || c->nesting.free_wanted)
      return;
    lk_timer *t = LK_OWNER(first, lk_timer, node);

    lk__heap_remove(&c->timers, first);
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    t->fire(c, t->arg);
  }
}

int64_t lk__timers_deadline(const lk_client *c)
{
  return c->timers.root == NULL ? LK_NEVER : c->timers.root->at;
}
