/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/acquisition.h"

#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"

static bool acquisition_parts_hold(const lk_acquisition *a)
{
  for (size_t i = 0; i < a->count; i++) {
    if (!lk__contender_holds(a->parts[i]))
      return false;
  }
  return true;
}

bool lk__acquisition_holds(const lk_acquisition *a)
{
  return a->held_with_parts && acquisition_parts_hold(a);
}

bool lk__acquisition_is_unsure(const lk_acquisition *a)
{
  for (size_t i = 0; i < a->count; i++) {
    if (a->parts[i]->state == LK_CONTENDER_UNSURE)
      return true;
  }
  return false;
}

bool lk__acquisition_try_grant(lk_acquisition *a)
{
  lk_session_lease *lease = a->parts[0]->lease;

  a->held_with_parts = false;
  if (!acquisition_parts_hold(a) || lk__acquisition_is_unsure(a))
    return false;
  if (!lk__lease_may_grant(lease, lk_client_clock(lease->client))) {
    lk__contender_await_lease(a->parts[0]);
    return false;
  }
  a->held_with_parts = true;
  return true;
}

int64_t lk__acquisition_deadline(const lk_acquisition *a)
{
  int64_t earliest = INT64_MAX;

  for (size_t i = 0; i < a->count; i++) {
    int64_t deadline_ms = lk__contender_deadline(a->parts[i]);

    if (deadline_ms < earliest)
      earliest = deadline_ms;
  }
  return earliest;
}

uint64_t lk__acquisition_token(const lk_acquisition *a)
{
  uint64_t largest = 0;

  for (size_t i = 0; i < a->count; i++) {
    uint64_t token = lk__contender_token(a->parts[i]);

    if (token > largest)
      largest = token;
  }
  return largest;
}

const char *lk__acquisition_node_path(const lk_acquisition *a)
{
  return a->count > 0 && a->parts[0]->own.state == LK_OWN_CREATED
             ? a->parts[0]->own.path
             : NULL;
}
