/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/predecessor_watch.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/waiting.h"

/* The deletion of the only predecessor grants the lock without a list if the
 * own node is watched. With several predecessors, a list or reads come first. A
 * grant of any kind needs the token, and a node that is certainly the own one:
 * if names are shared, the watch reports its deletion before another client's
 * node of the same name is listed. */
static bool waiter_needs_own_watch(const lk_contender *ct)
{
  bool is_next = ct->predecessors.count == 1 && !ct->wait.watches_directory;

  return is_next || ct->own.token == 0 ||
         lk__identity_shares_names(ct->own.identity) ||
         lk__own_node_needs_verification(&ct->own,
                                         lk__contender_connection(ct));
}

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
  if (err == 0 && waiter_needs_own_watch(ct))
    err = lk__contender_ensure_own_watch(ct);
  /* Without a request, no reply would continue the contender. */
  if (err == 0)
    lk__contender_continue_if_all_read(ct);
  return err;
}

/* A watch on the directory also reports the deletion of the own node, but not
 * if the directory may not be read any more. A node that may not be read is
 * read at each heartbeat, since nothing else reports its deletion: a missing
 * node has another error. If a request is refused, the next heartbeat calls
 * this function again. */
void lk__waiter_supervise_own(lk_contender *ct)
{
  if (lk__contender_waits(ct) && !lk__contender_is_single_node(ct) &&
      ct->own.watch == NULL)
    (void)lk__contender_watch_own(ct);
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
