/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

#include <stdio.h>

/**
 * @file
 * The read node of a writer, as Curator makes it from 5.5 on: with the number
 * of its write node, so that whoever waits for the writer waits for the reader
 * it becomes. While the write node is there nobody else holds, so the create
 * is the grant. The check in front of it keeps out a writer that has lost its
 * lock and does not know it.
 */

void lk__contender_set_writer(lk_contender *ct, lk_contender *writer)
{
  lk__contender_ref(writer);
  ct->beside = writer;
}

static const char *suffix_of(const lk_contender *ct)
{
  return ct->node + ct->base_len;
}

/* The writer's node is gone, so that it can be wanted only like any other. The
 * writer is told first; its owner may give up. */
static void judge_lonely(lk_contender *ct)
{
  lk__contender_own_checked(ct->beside, LK_CHECK_MISSING);
  if (ct->state == LK_CONTENDER_CREATING)
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

static void judge(lk_contender *ct, int err)
{
  if (err == 0)
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else if (err == LK_ERR_NO_NODE)
    judge_lonely(ct);
  else
    lk__contender_request_failed(ct, err);
}

static void on_made(lk_client *c, int err, const lk_op_result *results,
                    size_t count, void *arg)
{
  lk_contender *ct = arg;
  const lk_answer *a = lk_client_answer(c);

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct)) {
    ct->own = err == 0 ? LK_OWN_CREATED : lk__own_state_after_create(err);
    if (err == 0 && a != NULL)
      ct->token = (uint64_t)a->zxid;
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_go(ct);
    else
      judge(ct, err);
  }
  lk__contender_unref(ct);
}

int lk__enter_creating_downgraded(lk_contender *ct)
{
  const lk_contender *writer = ct->beside;
  lk_op ops[2];

  snprintf(ct->node + ct->base_len, LK_SUFFIX_MAX + 1, "%s", suffix_of(writer));
  ops[0] = lk_op_check(writer->node, -1);
  ops[1] =
      lk_op_create(ct->node, ct->config->data, ct->config->acl, LK_EPHEMERAL);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), ops, 2, NULL, on_made, ct));

  if (err == 0) {
    ct->own = LK_OWN_REQUESTED;
    ct->lent = lk__contender_token(writer);
  }
  return err;
}
