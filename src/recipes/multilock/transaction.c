/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/error_advice.h"
#include "recipes/multilock/transaction.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/own_node.h"

/**
 * @file
 * The transaction of a multi-lock: it creates the missing contender nodes.
 * Lists of their queues are requested in the same write.
 */

enum {
  /* Transactions in a row that find a directory missing. */
  MAX_PARENTS_MISSING = 10,
  /* Transactions in a row that are refused because of an expired session,
   * although the session is resumed behind each. */
  MAX_SESSION_DENIED = 3,
  PAUSE_MS = 100
};

/* Whether the session is a local one, in which no ephemeral node can be
 * created. A server that does not upgrade it refuses the transaction as one of
 * an expired session, while it serves the session. An expired session would
 * have ended at the handshake behind the first refusal. */
static bool multilock_session_is_local(lk_multilock_acquisition *m, int err)
{
  bool refused_by_server = lk_client_reply(m->joint.lease->client) != NULL;

  if (err == LK_ERR_SESSION_EXPIRED && refused_by_server)
    m->session_denied++;
  return m->session_denied == MAX_SESSION_DENIED;
}

static void multilock_transaction_retry(lk_multilock_acquisition *m, int err)
{
  lk_session_lease *lease = m->joint.lease;

  if (multilock_session_is_local(m, err)) {
    lk__multilock_end(m, LK_ERR_EPHEMERAL_ON_LOCAL_SESSION);
    return;
  }
  switch (lk__error_advice(lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break; /* the listener begins the next one */
  case LK_ADVICE_RETRY_LATER:
    lk__lease_start_timer(lease, &m->pause,
                          lk_client_clock(lease->client) + PAUSE_MS);
    break;
  case LK_ADVICE_GIVE_UP: lk__multilock_end(m, err); break;
  }
}

/* A lock directory is missing. `parent_err` is the error of its create; 0: it
 * was created, or was not requested yet. */
static void multilock_parent_missing(lk_multilock_acquisition *m,
                                     int parent_err)
{
  if (parent_err != 0) {
    multilock_transaction_retry(m, parent_err);
  } else if (m->parents_missing == MAX_PARENTS_MISSING) {
    lk__multilock_end(m, LK_ERR_NO_NODE);
  } else {
    m->parents_missing++;
    lk__multilock_begin_transaction(m);
  }
}

static void multilock_transaction_failed(lk_multilock_acquisition *m, int err,
                                         int parent_err)
{
  m->create_parents = err == LK_ERR_NO_NODE;
  if (m->create_parents)
    multilock_parent_missing(m, parent_err);
  else
    multilock_transaction_retry(m, err);
}

/* Report to each contender the result of its operation. If an operation failed
 * with `err`, its directory is missing, and the error with which the directory
 * could not be created is returned. Otherwise returns 0. */
static int multilock_report_results(lk_multilock_acquisition *m, int err,
                                    const lk_op_result *results, size_t count)
{
  const lk_reply *reply = lk_client_reply(m->joint.lease->client);
  uint64_t zxid = reply == NULL ? 0 : (uint64_t)reply->zxid;
  int parent_err = 0;

  for (size_t i = m->first_new; i < m->joint.acquisition.count; i++) {
    lk_contender *ct = m->joint.acquisition.parts[i];
    size_t operation = i - m->first_new;
    bool has_result = operation < count;

    if (has_result && results[operation].err == err)
      parent_err = ct->round.parent_err;
    lk__contender_own_created(
        ct, err, has_result ? results[operation].path : NULL, zxid);
  }
  return parent_err;
}

static void multilock_on_transaction(lk_client *c, int err,
                                     const lk_op_result *results, size_t count,
                                     void *arg)
{
  lk_multilock_acquisition *m = arg;

  (void)c;
  m->in_transaction = false;
  int parent_err = multilock_report_results(m, err, results, count);

  if (m->joint.over) {
    lk__joint_unref(&m->joint);
    return;
  }
  if (err != 0)
    lk__multilock_drop_from(m, m->first_new);
  if (m->begin_again) {
    m->begin_again = false;
    lk__multilock_drop_all(m);
    lk__multilock_begin_transaction(m);
  } else if (err != 0) {
    multilock_transaction_failed(m, err, parent_err);
  } else {
    m->create_parents = false;
    m->parents_missing = 0;
    m->session_denied = 0;
  }
  lk__joint_unref(&m->joint);
}

static int multilock_request_transaction(lk_multilock_acquisition *m)
{
  size_t count = m->joint.acquisition.count - m->first_new;
  lk_op *ops = lk__mem_new(&m->joint.lease->mem, count * sizeof *ops);
  int err = ops == NULL ? LK_ERR_NO_MEMORY : 0;

  for (size_t i = 0; i < count && err == 0; i++) {
    lk_contender *ct = m->joint.acquisition.parts[m->first_new + i];

    if (m->create_parents)
      err = lk__contender_create_parents(ct);
    ops[i] = lk_op_create(ct->own.path, lk__contender_data(ct), ct->config->acl,
                          LK_EPHEMERAL | LK_SEQUENTIAL);
  }
  if (err == 0)
    err = lk_multi(m->joint.lease->client, ops, count, LK_NO_OPTIONS,
                   multilock_on_transaction, m);
  lk__mem_free(&m->joint.lease->mem, ops);
  return err;
}

void lk__multilock_begin_transaction(lk_multilock_acquisition *m)
{
  if (m->joint.over || m->in_transaction || m->orphans > 0 ||
      !lk__lease_is_online(m->joint.lease))
    return;
  m->first_new = m->joint.acquisition.count;
  for (size_t i = m->first_new; i < m->plan->count; i++) {
    if (lk__multilock_add_contender(m) == NULL) {
      lk__multilock_end(m, LK_ERR_NO_MEMORY);
      return;
    }
  }
  int err = multilock_request_transaction(m);

  if (err != 0) {
    lk__multilock_end(m, err);
    return;
  }
  m->in_transaction = true;
  /* All contenders must be marked before the first one begins. */
  for (size_t i = m->first_new; i < m->joint.acquisition.count; i++)
    lk__contender_mark_created_jointly(m->joint.acquisition.parts[i]);
  lk__joint_ref(&m->joint); /* the reference of the transaction */
  lk__joint_ref(&m->joint); /* the reference of this function */
  for (size_t i = m->first_new;
       i < m->joint.acquisition.count && !m->joint.over; i++)
    lk__contender_begin(m->joint.acquisition.parts[i]);
  lk__joint_unref(&m->joint);
}
