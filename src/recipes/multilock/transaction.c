/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/multilock/group.h"

/**
 * @file
 * A round of a team: the nodes that it still lacks, in one transaction, and a
 * list of each of their queues, in one write.
 */

enum { MAX_MISSING = 10, REST_MS = 100 };

static void trouble(lk_team *t, int err)
{
  lk_keeper *k = t->lease;

  switch (lk__trouble_of(err)) {
  case LK_TROUBLE_BROKEN: break; /* the listener goes on */
  case LK_TROUBLE_BUSY:
    lk__lease_start_timer(k, &t->rest, lk_client_clock(k->client) + REST_MS);
    break;
  case LK_TROUBLE_FATAL: lk__team_end(t, err); break;
  }
}

/* The directories could not all be there; `culprit` says which. */
static void no_directory(lk_team *t, int parent_err)
{
  if (parent_err != 0)
    trouble(t, parent_err);
  else if (t->missing++ == MAX_MISSING)
    lk__team_end(t, LK_ERR_NO_NODE);
  else
    lk__round_begin(t);
}

static void judge_failed(lk_team *t, int err, int parent_err)
{
  t->parents = err == LK_ERR_NO_NODE;
  if (t->parents)
    no_directory(t, parent_err);
  else
    trouble(t, err);
}

/* Each contend learns what became of its node. */
static int deliver(lk_team *t, int err, const lk_op_result *results,
                   size_t count)
{
  const lk_answer *a = lk_client_answer(t->lease->client);
  uint64_t zxid = a == NULL ? 0 : (uint64_t)a->zxid;
  int parent_err = 0;

  for (size_t i = t->fresh; i < t->attempt.count; i++) {
    size_t at = i - t->fresh;

    if (at < count && results[at].err == err)
      parent_err = t->parts[i]->parent_err;
    lk__contender_own_created(t->parts[i], err,
                              at < count ? results[at].path : NULL, zxid);
  }
  return parent_err;
}

static void on_round(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  lk_team *t = arg;

  (void)c;
  t->asked = false;
  int parent_err = deliver(t, err, results, count);

  if (t->over) {
    lk__team_unref(t);
    return;
  }
  if (err != 0)
    lk__team_drop(t, t->fresh);
  if (t->again) {
    t->again = false;
    lk__team_drop(t, 0);
    lk__round_begin(t);
  } else if (err != 0) {
    judge_failed(t, err, parent_err);
  } else {
    t->parents = false;
    t->missing = 0;
  }
  lk__team_unref(t);
}

static int ask_round(lk_team *t)
{
  size_t count = t->attempt.count - t->fresh;
  lk_op *ops = lk__take(&t->lease->mem, count * sizeof *ops);
  int err = ops == NULL ? LK_ERR_NO_MEMORY : 0;

  for (size_t i = 0; i < count && err == 0; i++) {
    lk_contender *ct = t->parts[t->fresh + i];

    if (t->parents)
      err = lk__contender_create_parents(ct);
    ops[i] = lk_op_create(ct->node, lk__contender_data(ct), ct->config->acl,
                          LK_EPHEMERAL | LK_SEQUENTIAL);
  }
  if (err == 0)
    err = lk_multi(t->lease->client, ops, count, NULL, on_round, t);
  lk__give(&t->lease->mem, ops);
  return err;
}

void lk__round_begin(lk_team *t)
{
  if (t->over || t->asked || t->orphans > 0 || !lk__lease_is_online(t->lease))
    return;
  t->fresh = t->attempt.count;
  for (size_t i = t->fresh; i < t->config->count; i++) {
    lk_contender *ct = lk__mate_new(t, i);

    if (ct == NULL) {
      lk__team_end(t, LK_ERR_NO_MEMORY);
      return;
    }
    lk__contender_ref(ct);
    t->parts[t->attempt.count++] = ct;
  }
  int err = ask_round(t);

  if (err != 0) {
    lk__team_end(t, err);
    return;
  }
  t->asked = true;
  for (size_t i = t->fresh; i < t->attempt.count; i++)
    lk__contender_mark_created_by_group(t->parts[i]);
  lk__team_ref(t);
  lk__team_ref(t);
  for (size_t i = t->fresh; i < t->attempt.count && !t->over; i++)
    lk__contender_begin(t->parts[i]);
  lk__team_unref(t);
}
