/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"
#include "recipes/multilock/multilock_acquisition.h"
#include "recipes/queue/create.h"

/**
 * @file
 * A round of a team: the nodes that it still lacks, in one transaction, and a
 * list of each of their queues, in one write.
 */

enum { MAX_MISSING = 10, REST_MS = 100 };

static void trouble(lk_multilock_acquisition *m, int err)
{
  lk_session_lease *k = m->group.lease;

  switch (lk__error_advice(k->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break; /* the listener goes on */
  case LK_ADVICE_RETRY_LATER:
    lk__lease_start_timer(k, &m->pause, lk_client_clock(k->client) + REST_MS);
    break;
  case LK_ADVICE_GIVE_UP: lk__multilock_end(m, err); break;
  }
}

/* The directories could not all be there; `culprit` says which. */
static void no_directory(lk_multilock_acquisition *m, int parent_err)
{
  if (parent_err != 0)
    trouble(m, parent_err);
  else if (m->parents_gone++ == MAX_MISSING)
    lk__multilock_end(m, LK_ERR_NO_NODE);
  else
    lk__multilock_begin_transaction(m);
}

static void judge_failed(lk_multilock_acquisition *m, int err, int parent_err)
{
  m->create_parents = err == LK_ERR_NO_NODE;
  if (m->create_parents)
    no_directory(m, parent_err);
  else
    trouble(m, err);
}

/* Each contend learns what became of its node. */
static int deliver(lk_multilock_acquisition *m, int err,
                   const lk_op_result *results, size_t count)
{
  const lk_reply *a = lk_client_reply(m->group.lease->client);
  uint64_t zxid = a == NULL ? 0 : (uint64_t)a->zxid;
  int parent_err = 0;

  for (size_t i = m->first_new; i < m->group.acquisition.count; i++) {
    size_t at = i - m->first_new;

    if (at < count && results[at].err == err)
      parent_err = m->group.acquisition.parts[i]->round.parent_err;
    lk__contender_own_created(m->group.acquisition.parts[i], err,
                              at < count ? results[at].path : NULL, zxid);
  }
  return parent_err;
}

static void on_round(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  lk_multilock_acquisition *m = arg;

  (void)c;
  m->in_transaction = false;
  int parent_err = deliver(m, err, results, count);

  if (m->group.over) {
    lk__group_unref(&m->group);
    return;
  }
  if (err != 0)
    lk__multilock_drop_from(m, m->first_new);
  if (m->begin_again) {
    m->begin_again = false;
    lk__multilock_drop_from(m, 0);
    lk__multilock_begin_transaction(m);
  } else if (err != 0) {
    judge_failed(m, err, parent_err);
  } else {
    m->create_parents = false;
    m->parents_gone = 0;
  }
  lk__group_unref(&m->group);
}

static int ask_round(lk_multilock_acquisition *m)
{
  size_t count = m->group.acquisition.count - m->first_new;
  lk_op *ops = lk__take(&m->group.lease->mem, count * sizeof *ops);
  int err = ops == NULL ? LK_ERR_NO_MEMORY : 0;

  for (size_t i = 0; i < count && err == 0; i++) {
    lk_contender *ct = m->group.acquisition.parts[m->first_new + i];

    if (m->create_parents)
      err = lk__contender_create_parents(ct);
    ops[i] = lk_op_create(ct->own.path, lk__contender_data(ct), ct->config->acl,
                          LK_EPHEMERAL | LK_SEQUENTIAL);
  }
  if (err == 0)
    err = lk_multi(m->group.lease->client, ops, count, NULL, on_round, m);
  lk__give(&m->group.lease->mem, ops);
  return err;
}

void lk__multilock_begin_transaction(lk_multilock_acquisition *m)
{
  if (m->group.over || m->in_transaction || m->orphans > 0 ||
      !lk__lease_is_online(m->group.lease))
    return;
  m->first_new = m->group.acquisition.count;
  for (size_t i = m->first_new; i < m->plan->count; i++) {
    if (lk__multilock_add_contender(m) == NULL) {
      lk__multilock_end(m, LK_ERR_NO_MEMORY);
      return;
    }
  }
  int err = ask_round(m);

  if (err != 0) {
    lk__multilock_end(m, err);
    return;
  }
  m->in_transaction = true;
  for (size_t i = m->first_new; i < m->group.acquisition.count; i++)
    lk__contender_mark_created_by_group(m->group.acquisition.parts[i]);
  lk__group_ref(&m->group);
  lk__group_ref(&m->group);
  for (size_t i = m->first_new;
       i < m->group.acquisition.count && !m->group.over; i++)
    lk__contender_begin(m->group.acquisition.parts[i]);
  lk__group_unref(&m->group);
}
