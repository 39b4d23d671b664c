/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender_start.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/max_queue.h"
#include "recipes/queue/own_node_create.h"
#include "recipes/queue/own_node_recovery.h"
#include "recipes/queue/predecessor_watch.h"
#include "recipes/queue/queue_listing.h"
#include "recipes/queue/queue_state_table.h"
#include "recipes/queue/session_listing.h"
#include "recipes/queue/waiting.h"

static bool queue_check_proves_own(const lk_contender *ct)
{
  return !lk__own_node_needs_verification(&ct->own,
                                          lk__contender_connection(ct));
}

static bool queue_has_watch(const lk_contender *ct)
{
  return ct->wait.watch != NULL;
}

/* If the list was larger than the client accepts, the cleanup lists only the
 * nodes of this session. */
static int queue_request_view(lk_contender *ct)
{
  if (ct->cleanup.too_big && ct->state == LK_CONTENDER_CLEANING_UP)
    return lk__contender_list_session(ct);
  return lk__contender_send_list(ct);
}

const lk_contender_machine lk__queue_machine = {
    .states = {[LK_CONTENDER_IDLE] = &lk__rules_idle,
               [LK_CONTENDER_PAUSED] = &lk__rules_paused,
               [LK_CONTENDER_LISTING_FIRST] = &lk__rules_listing_first,
               [LK_CONTENDER_CREATING] = &lk__rules_creating,
               [LK_CONTENDER_CREATING_PARENTS] = &lk__rules_creating_parents,
               [LK_CONTENDER_RECOVERING] = &lk__rules_recovering,
               [LK_CONTENDER_READING_CANDIDATES] =
                   &lk__rules_reading_candidates,
               [LK_CONTENDER_LISTING] = &lk__rules_listing,
               [LK_CONTENDER_SETTING_WATCHES] = &lk__rules_setting_watches,
               [LK_CONTENDER_WAITING] = &lk__rules_waiting,
               [LK_CONTENDER_READING_PREDECESSORS] =
                   &lk__rules_reading_predecessors,
               [LK_CONTENDER_READING_OWN] = &lk__rules_reading_own,
               [LK_CONTENDER_CHECKING_OWN] = &lk__rules_checking_own,
               [LK_CONTENDER_HELD] = &lk__rules_held,
               [LK_CONTENDER_UNSURE] = &lk__rules_unsure,
               [LK_CONTENDER_CLEANING_UP] = &lk__rules_cleaning_up,
               [LK_CONTENDER_FINISHED] = &lk__rules_finished},
    .waits_with_own_node = true,
    .reads_first = lk__max_queue_needs_peek,
    .request_view = queue_request_view,
    .check_proves_own = queue_check_proves_own,
    .has_watch = queue_has_watch};
