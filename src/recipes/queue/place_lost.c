/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/request_count.h"

/* A contender fails when its node was deleted by others this many times. */
enum { MAX_TIMES_MISSING = 3 };

void lk__contender_forget_own(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk__own_node_forget(&ct->own);
  ct->downgrade.writer_token = 0;
  ct->round.checked = false;
  ct->holding.revoked = false;
  ct->wait.reported_position = 0;
}

static void own_node_draw_unique_part(lk_contender *ct)
{
  unsigned char random[16];

  if (ct->own.identity == LK_IDENTITY_NONE)
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  lk__own_node_set_unique_part(&ct->own, random);
}

void lk__contender_prepare_create(lk_contender *ct)
{
  ct->wait.watches_directory = ct->role->is_permit;
  own_node_draw_unique_part(ct);
}

void lk__contender_own_missing(lk_contender *ct, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  lk__contender_forget_own(ct);
  ct->own.times_missing++;
  if (ct->own.times_missing == MAX_TIMES_MISSING) {
    lk__contender_fail(ct, err);
    return;
  }
  lk__contender_prepare_create(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  lk__contender_notify(ct, &notice);
}
