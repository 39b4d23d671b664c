/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"
#include "recipes/rwlock/downgrade.h"

#include <stdio.h>

/**
 * @file
 * A downgrade creates a read node for an owner that holds the write side. As in
 * Curator 5.5 and later, the read node gets the number of the write node, so
 * all waiters behind the writer also wait for the reader. A transaction checks
 * that the write node exists and creates the read node. While the write node
 * exists no other client holds, so success grants the read side without a wait.
 */

static const char *own_node_number_text(const lk_contender *ct)
{
  return ct->own.path + ct->own.path_base_len;
}

/* The write node does not exist, so the reader has to queue like any other. The
 * writer is notified first. Its callback may cancel the reader, so the state of
 * the reader is checked again. */
static void downgrade_writer_is_missing(lk_contender *ct)
{
  lk__contender_own_checked(ct->downgrade.writer, LK_CHECK_MISSING);
  if (ct->state == LK_CONTENDER_CREATING)
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

static void downgrade_judge(lk_contender *ct, int err)
{
  if (err == 0)
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else if (err == LK_ERR_NO_NODE)
    downgrade_writer_is_missing(ct);
  else
    lk__contender_request_failed(ct, err);
}

static void on_downgraded_created(lk_client *c, int err,
                                  const lk_op_result *results, size_t count,
                                  void *arg)
{
  lk_contender *ct = arg;
  const lk_reply *reply = lk_client_reply(c);

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct)) {
    uint64_t czxid = reply == NULL ? 0 : (uint64_t)reply->zxid;

    if (err == 0)
      lk__own_node_set_found(&ct->own, czxid, lk__contender_connection(ct));
    else
      lk__own_node_create_failed(&ct->own, err);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_continue(ct);
    else
      downgrade_judge(ct, err);
  }
  lk__contender_unref(ct);
}

static int downgrade_send_create(lk_contender *ct)
{
  enum { ANY_VERSION = -1, COUNT = 2 };
  const lk_contender *writer = ct->downgrade.writer;
  lk_op ops[COUNT];

  snprintf(ct->own.path + ct->own.path_base_len, LK_NUMBER_MAX_LEN + 1, "%s",
           own_node_number_text(writer));
  ops[0] = lk_op_check(writer->own.path, ANY_VERSION);
  ops[1] = lk_op_create(ct->own.path, ct->config->data, ct->config->acl,
                        LK_EPHEMERAL);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), ops, COUNT, LK_NO_OPTIONS,
                   on_downgraded_created, ct));

  if (err == 0) {
    lk__own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
    ct->downgrade.writer_token = lk__contender_token(writer);
  }
  return err;
}

void lk__downgrade_set_writer(lk_contender *ct, lk_contender *writer)
{
  lk__contender_ref(writer);
  ct->downgrade.writer = writer;
  ct->downgrade.send_create = downgrade_send_create;
}
