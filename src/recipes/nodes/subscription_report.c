/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/nodes/subscription_report.h"

/* The state of the node that was last reported to the caller. A state is
 * reported only if it differs from that one. */

void lk__subscription_ref(lk_subscription *s)
{
  s->refs++;
}

void lk__subscription_unref(lk_subscription *s)
{
  lk_mem mem = s->mem;

  if (--s->refs == 0)
    lk__mem_free(&mem, s);
}

lk_node_state lk__subscription_state_of_reply(const lk_subscription *s, int err,
                                              const lk_stat *stat)
{
  if (err != 0)
    return (lk_node_state){.err = err};
  if (s->on_children != NULL)
    return (lk_node_state){
        .czxid = stat->czxid, .zxid = stat->pzxid, .version = stat->cversion};
  return (lk_node_state){
      .czxid = stat->czxid, .zxid = stat->mzxid, .version = stat->version};
}

bool lk__subscription_was_reported(const lk_subscription *s,
                                   const lk_node_state *state)
{
  return s->reported && s->last_reported.err == state->err &&
         s->last_reported.czxid == state->czxid &&
         s->last_reported.zxid == state->zxid &&
         s->last_reported.version == state->version;
}

bool lk__subscription_record_state(lk_subscription *s, int err,
                                   const lk_stat *stat)
{
  lk_node_state state = lk__subscription_state_of_reply(s, err, stat);

  if (lk__subscription_was_reported(s, &state))
    return false;
  s->reported = true;
  s->last_reported = state;
  return true;
}

void lk__subscription_report_error(lk_subscription *s, int err)
{
  const lk_bytes *no_content = NULL;
  const lk_stat *no_stat = NULL;

  if (!lk__subscription_record_state(s, err, no_stat))
    return;
  if (s->on_children != NULL)
    s->on_children(s, err, no_content, 0, no_stat, s->arg);
  else
    s->on_data(s, err, no_content, no_stat, s->arg);
}
