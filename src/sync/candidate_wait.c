/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/candidate_wait.h"

#include "sync/candidate_state.h"
#include "sync/wait.h"

/* The calls that wait until a candidate leads, or until it does not. */

/** A caller that waits until the candidate leads, or until it does not. */
typedef struct candidate_wait {
  lk_wait wait; /* in lk_sync_candidate.waiting */
  lk_sync_candidate *candidate;
  bool until_elected;
} candidate_wait;

static bool wait_is_over(const lk_sync_candidate *c, const candidate_wait *w)
{
  bool leads = atomic_load(&c->sure_until_ms) != LK_NOT_LEADING;

  return leads == w->until_elected;
}

/* A caller may free its wait as soon as that is completed. */
void lk__sync_candidate_end_waits(lk_sync_candidate *c, int err)
{
  lk_link *next;

  for (lk_link *l = c->waiting.next; l != &c->waiting; l = next) {
    candidate_wait *w = LK_OWNER(l, candidate_wait, wait.link);

    next = l->next;
    if (wait_is_over(c, w))
      lk__wait_end(&w->wait, 0);
    else if (err != 0)
      lk__wait_end(&w->wait, err);
  }
}

static void begin_wait(lk_blocking_call *b)
{
  candidate_wait *w = LK_OWNER(b, candidate_wait, wait.call);
  lk_sync_candidate *c = w->candidate;
  int err = lk__blocking_call_refusal(b);

  if (err == 0 && c->source == NULL) { /* it was freed meanwhile */
    lk__blocking_call_complete(b, w->until_elected ? LK_ERR_CLOSED : 0);
    return;
  }
  if (err == 0 && w->until_elected)
    err = lk_candidate_start(c->source);
  if (err != 0) {
    lk__blocking_call_complete(b, err);
    return;
  }
  lk__sync_candidate_publish(c);
  lk__wait_add(&w->wait, &c->waiting);
  lk__sync_candidate_end_waits(c, c->end_err);
}

static int candidate_wait_until(lk_sync_candidate *c, bool elected,
                                const lk_sync_call *call)
{
  candidate_wait w = {.candidate = c, .until_elected = elected};

  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__wait_do(&w.wait, c->client, &c->calls_inside, call, begin_wait);
}

int lk_sync_candidate_wait_elected(lk_sync_candidate *c,
                                   const lk_sync_call *call)
{
  return candidate_wait_until(c, true, call);
}

int lk_sync_candidate_wait_unsure(lk_sync_candidate *c,
                                  const lk_sync_call *call)
{
  return candidate_wait_until(c, false, call);
}
