/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/request_count.h"

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
  ct->requests.replied++;
  return ct->requests.replied > ct->requests.ignored;
}

void lk__contender_ignore_replies(lk_contender *ct)
{
  ct->requests.ignored = ct->requests.sent;
}

void lk__contender_continue_if_all_read(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (lk__contender_has_all_replies(ct) && rules->reads_done != NULL)
    rules->reads_done(ct);
}
