/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/predecessor_watch.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/waiting.h"

static int contender_enter_setting_watches(lk_contender *ct,
                                           lk_contender_state from)
{
  int err = 0;

  (void)from;
  ct->wait.had_predecessors = true;
  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  if (!ct->wait.watches_directory)
    err = lk__predecessors_watch_direct(ct);
  if (err == 0 && ct->own.watch == NULL && !ct->own.unreadable)
    err = lk__contender_watch_own(ct);
  /* Without a request, no reply would continue the contender. */
  if (err == 0)
    lk__contender_continue_if_all_read(ct);
  return err;
}

const lk_contender_rules lk__rules_setting_watches = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(FEW_LEFT, READING_PREDECESSORS),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_setting_watches,
    .reads_done = lk__predecessors_judge};

const lk_contender_rules lk__rules_waiting = {
    .next = {LK_ON(FEW_LEFT, READING_PREDECESSORS), LK_ON(LIST_NEEDED, LISTING),
             LK_ON(GRANT, HELD), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .reads_done = lk__predecessors_judge};
