/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

bool lk__attempt_holds(const lk_attempt *a)
{
  for (size_t i = 0; i < a->count; i++) {
    if (!lk__contend_holds(a->parts[i]))
      return false;
  }
  return a->whole;
}

bool lk__attempt_unsure(const lk_attempt *a)
{
  for (size_t i = 0; i < a->count; i++) {
    if (a->parts[i]->state == LK_CONTEND_UNSURE)
      return true;
  }
  return false;
}

bool lk__attempt_try(lk_attempt *a)
{
  lk_keeper *k = a->parts[0]->lease;

  a->whole = true;
  a->whole = lk__attempt_holds(a) && !lk__attempt_unsure(a);
  if (a->whole && !lk__lease_may_grant(k, lk_client_clock(k->client))) {
    a->whole = false;
    lk__contend_await(a->parts[0]);
  }
  return a->whole;
}

int64_t lk__attempt_deadline(const lk_attempt *a)
{
  int64_t first = INT64_MAX;

  for (size_t i = 0; i < a->count; i++) {
    int64_t at = lk__contend_deadline(a->parts[i]);

    first = at < first ? at : first;
  }
  return first;
}

uint64_t lk__attempt_token(const lk_attempt *a)
{
  uint64_t largest = 0;

  for (size_t i = 0; i < a->count; i++) {
    uint64_t token = lk__contend_token(a->parts[i]);

    largest = token > largest ? token : largest;
  }
  return largest;
}

const char *lk__attempt_node(const lk_attempt *a)
{
  const lk_contend *first = a->count > 0 ? a->parts[0] : NULL;

  return first != NULL && first->own == LK_OWN_MADE ? first->node : NULL;
}
