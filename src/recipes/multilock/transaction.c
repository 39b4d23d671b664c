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

static void trouble(lk_multilock_acquisition *t, int err)
{
  lk_session_lease *k = t->lease;

  switch (lk__error_advice(k->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break; /* the listener goes on */
  case LK_ADVICE_RETRY_LATER:
    lk__lease_start_timer(k, &t->rest, lk_client_clock(k->client) + REST_MS);
    break;
  case LK_ADVICE_GIVE_UP: lk__multilock_end(t, err); break;
  }
}

/* The directories could not all be there; `culprit` says which. */
static void no_directory(lk_multilock_acquisition *t, int parent_err)
{
  if (parent_err != 0)
    trouble(t, parent_err);
  else if (t->missing++ == MAX_MISSING)
    lk__multilock_end(t, LK_ERR_NO_NODE);
  else
    lk__multilock_begin_transaction(t);
}

static void judge_failed(lk_multilock_acquisition *t, int err, int parent_err)
{
  t->parents = err == LK_ERR_NO_NODE;
  if (t->parents)
    no_directory(t, parent_err);
  else
    trouble(t, err);
}

/* Each contend learns what became of its node. */
static int deliver(lk_multilock_acquisition *t, int err,
                   const lk_op_result *results, size_t count)
{
  const lk_reply *a = lk_client_reply(t->lease->client);
  uint64_t zxid = a == NULL ? 0 : (uint64_t)a->zxid;
  int parent_err = 0;

  for (size_t i = t->fresh; i < t->acquisition.count; i++) {
    size_t at = i - t->fresh;

    if (at < count && results[at].err == err)
      parent_err = t->parts[i]->round.parent_err;
    lk__contender_own_created(t->parts[i], err,
                              at < count ? results[at].path : NULL, zxid);
  }
  return parent_err;
}

static void on_round(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  lk_multilock_acquisition *t = arg;

  (void)c;
  t->asked = false;
  int parent_err = deliver(t, err, results, count);

  if (t->over) {
    lk__multilock_unref(t);
    return;
  }
  if (err != 0)
    lk__multilock_drop_from(t, t->fresh);
  if (t->again) {
    t->again = false;
    lk__multilock_drop_from(t, 0);
    lk__multilock_begin_transaction(t);
  } else if (err != 0) {
    judge_failed(t, err, parent_err);
  } else {
    t->parents = false;
    t->missing = 0;
  }
  lk__multilock_unref(t);
}

static int ask_round(lk_multilock_acquisition *t)
{
  size_t count = t->acquisition.count - t->fresh;
  lk_op *ops = lk__take(&t->lease->mem, count * sizeof *ops);
  int err = ops == NULL ? LK_ERR_NO_MEMORY : 0;

  for (size_t i = 0; i < count && err == 0; i++) {
    lk_contender *ct = t->parts[t->fresh + i];

    if (t->parents)
      err = lk__contender_create_parents(ct);
    ops[i] = lk_op_create(ct->own.path, lk__contender_data(ct), ct->config->acl,
                          LK_EPHEMERAL | LK_SEQUENTIAL);
  }
  if (err == 0)
    err = lk_multi(t->lease->client, ops, count, NULL, on_round, t);
  lk__give(&t->lease->mem, ops);
  return err;
}

void lk__multilock_begin_transaction(lk_multilock_acquisition *t)
{
  if (t->over || t->asked || t->orphans > 0 || !lk__lease_is_online(t->lease))
    return;
  t->fresh = t->acquisition.count;
  for (size_t i = t->fresh; i < t->config->count; i++) {
    lk_contender *ct = lk__multilock_new_contender(t, i);

    if (ct == NULL) {
      lk__multilock_end(t, LK_ERR_NO_MEMORY);
      return;
    }
    lk__contender_ref(ct);
    t->parts[t->acquisition.count++] = ct;
  }
  int err = ask_round(t);

  if (err != 0) {
    lk__multilock_end(t, err);
    return;
  }
  t->asked = true;
  for (size_t i = t->fresh; i < t->acquisition.count; i++)
    lk__contender_mark_created_by_group(t->parts[i]);
  lk__multilock_ref(t);
  lk__multilock_ref(t);
  for (size_t i = t->fresh; i < t->acquisition.count && !t->over; i++)
    lk__contender_begin(t->parts[i]);
  lk__multilock_unref(t);
}
