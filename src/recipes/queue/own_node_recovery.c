/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/error_advice.h"
#include "recipes/lease/session_lease.h"
#include "recipes/names.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/own_node_check.h"
#include "recipes/queue/own_node_recovery.h"
#include "recipes/queue/queue_listing.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"

/**
 * @file
 * After the reply to a create was lost, a transaction and a list behind it show
 * whether the create was executed.
 *
 * If names are not unique (LK_IDENTITY_DATA), the list does not show which node
 * is the own one. So the candidates are read, the newest first, until the own
 * node is found or the candidates are older than the create. The own node
 * belongs to our session. If the token is known, the node's czxid equals the
 * token; otherwise the node has the data of the create, with our UUID.
 */

/* ---- candidates --------------------------------------------------------- */

static bool candidate_is_of_session(const lk_contender *ct, const lk_stat *stat)
{
  return stat->ephemeral_owner ==
         lk_client_session(lk__contender_client(ct)).id;
}

/* Whether the candidate may be the own node without its UUID, since a
 * revocation has replaced the data. A node that another contender of this
 * session knows as its own is no such candidate. */
static bool candidate_is_revoked(const lk_contender *ct, const lk_bytes *data,
                                 const lk_stat *stat)
{
  bool is_new_enough = (uint64_t)stat->czxid > ct->own.requested_after_zxid;

  if (ct->own.token != 0 || !is_new_enough || !lk__is_revocation(*data) ||
      !candidate_is_of_session(ct, stat))
    return false;
  lk_contender *other = NULL;

  while ((other = lk__contender_next_of_client(ct, other)) != NULL) {
    if (other->own.state == LK_OWN_CREATED &&
        strcmp(other->own.path, ct->own.path) == 0)
      return false;
  }
  return true;
}

static bool candidate_is_own(const lk_contender *ct, const lk_bytes *data,
                             const lk_stat *stat)
{
  if (!candidate_is_of_session(ct, stat))
    return false;
  if (ct->own.token != 0)
    return ct->own.token == (uint64_t)stat->czxid;
  return data->len == ct->own.data_len &&
         memcmp(data->at, ct->own.data, data->len) == 0;
}

static void candidates_take_reply(lk_contender *ct, int err,
                                  const lk_bytes *data, const lk_stat *stat)
{
  lk_own_node_candidates *s = &ct->candidates;
  /* Replies come in the order of the reads, from the end of the array. */
  int64_t number = s->numbers[--s->next];

  if (err == LK_ERR_NO_NODE || s->found)
    return;
  if (err != 0) {
    s->err = err;
    return;
  }
  lk__own_node_set_number(&ct->own, number);
  s->rest_is_older =
      s->in_order && (uint64_t)stat->czxid <= ct->own.requested_after_zxid;
  bool may_be_own = candidate_is_revoked(ct, data, stat);

  s->saw_revoked = s->saw_revoked || may_be_own;
  if (candidate_is_own(ct, data, stat) || (may_be_own && s->takes_revoked)) {
    lk__own_node_set_found(&ct->own, (uint64_t)stat->czxid,
                           lk__contender_connection(ct));
    s->found = true;
  }
}

static lk_recovered candidates_result(bool found, int err)
{
  if (found)
    return LK_RECOVERED_FOUND;
  return err != 0 ? LK_RECOVERED_FAILED : LK_RECOVERED_ABSENT;
}

static void candidates_end(lk_contender *ct, int err)
{
  bool found = ct->candidates.found;

  lk__own_node_candidates_free(&ct->candidates, &ct->lease->mem);
  if (!found && err == 0)
    lk__own_node_set_absent(&ct->own);
  if (lk__contender_rules(ct)->recovered != NULL)
    lk__contender_rules(ct)->recovered(ct, candidates_result(found, err), err);
  else if (found)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

static int candidates_read_next(lk_contender *ct);

static void on_candidate_read(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    candidates_take_reply(ct, err, data, stat);
    if (!lk__contender_fail_if_too_big(ct, err) &&
        lk__contender_has_all_replies(ct)) {
      err = candidates_read_next(ct);
      if (err != 0)
        candidates_end(ct, err);
    }
  }
  lk__contender_unref(ct);
}

enum { READS_AT_A_TIME = LK_MAX_PREDECESSOR_READS };

/* Read the newest candidates that were not read yet, a few at a time. If the
 * own node was found, or no candidate can be the own node, end. */
static int candidates_read_next(lk_contender *ct)
{
  lk_own_node_candidates *s = &ct->candidates;
  bool done = s->found || s->err != 0 || s->rest_is_older || s->count == 0;
  int err = 0;

  if (done && !lk__own_node_candidates_rewind(s)) {
    candidates_end(ct, s->err);
    return 0;
  }
  for (size_t i = 0; i < READS_AT_A_TIME && s->count > 0 && err == 0; i++) {
    lk__own_node_set_number(&ct->own, s->numbers[--s->count]);
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->own.path, LK_NO_OPTIONS,
                                                 on_candidate_read, ct));
  }
  if (err != 0)
    lk__contender_ignore_replies(ct); /* to the reads that were sent */
  return err;
}

static int contender_enter_reading_candidates(lk_contender *ct,
                                              lk_contender_state from)
{
  (void)from;
  return candidates_read_next(ct);
}

const lk_contender_rules lk__rules_reading_candidates = {
    .next = {LK_ON(LIST_NEEDED, LISTING), LK_ON_ANY_IN_QUEUE},
    .enter = contender_enter_reading_candidates};

/* ---- transaction and list ----------------------------------------------- */

static void on_recovery_transaction(lk_client *c, int err,
                                    const lk_op_result *results, size_t count,
                                    void *arg)
{
  lk_contender *ct = arg;

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.transaction_err = lk__transaction_was_ordered(c) ? 0 : err;
  lk__contender_unref(ct);
}

/* Send a transaction, on any path, and then the list. A create of the old
 * connection was either proposed before this transaction, and the list shows
 * it, or the servers will never execute it. A sync does not suffice: a deposed
 * leader replies to a sync without asking the other servers. */
int lk__recovery_begin(lk_contender *ct)
{
  enum { ANY_VERSION = -1 };
  lk_op check = lk_op_check(lk__own_node_directory(&ct->own), ANY_VERSION);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), &check, 1, LK_NO_OPTIONS,
                   on_recovery_transaction, ct));

  return err != 0 ? err : ct->machine->request_view(ct);
}

/* The list completed with `*err`, which is set to the error of the transaction
 * if that failed. Behind a committed transaction, a node that is not listed
 * does not exist, and no delayed create will make it. */
static lk_recovered recovery_judge_list(lk_contender *ct, int *err,
                                        const lk_bytes *names, size_t count)
{
  if (ct->round.transaction_err != 0) {
    *err = ct->round.transaction_err;
    return LK_RECOVERED_FAILED;
  }
  if (*err == LK_ERR_NO_NODE) /* the directory does not exist */
    return LK_RECOVERED_ABSENT;
  if (*err != 0)
    return LK_RECOVERED_FAILED;
  lk_bytes own_name = lk__own_node_find(&ct->own, names, count);

  if (own_name.at == NULL)
    return LK_RECOVERED_ABSENT;
  if (ct->own.identity == LK_IDENTITY_DATA)
    return LK_RECOVERED_CANDIDATES;
  (void)lk__own_node_accept_name(&ct->own, own_name);
  return LK_RECOVERED_FOUND;
}

static void recovery_continue(lk_contender *ct, lk_recovered result, int err,
                              const lk_bytes *names, size_t count)
{
  switch (result) {
  case LK_RECOVERED_FAILED: lk__contender_request_failed(ct, err); break;
  case LK_RECOVERED_FOUND: lk__contender_take_list(ct, names, count); break;
  case LK_RECOVERED_ABSENT:
    lk__own_node_set_absent(&ct->own);
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
    break;
  case LK_RECOVERED_CANDIDATES:
    err = lk__own_node_candidates_set(&ct->candidates, &ct->lease->mem,
                                      &ct->own, names, count);
    if (err != 0)
      lk__contender_fail(ct, err);
    else
      lk__contender_step(ct, LK_CONTENDER_ON_CANDIDATES);
    break;
  }
}

/* CLEANING_UP: report the result to the cleanup. */
static void recovery_report(lk_contender *ct, lk_recovered result, int err,
                            const lk_bytes *names, size_t count)
{
  if (result != LK_RECOVERED_CANDIDATES) {
    lk__contender_rules(ct)->recovered(ct, result, err);
    return;
  }
  err = lk__own_node_candidates_set(&ct->candidates, &ct->lease->mem, &ct->own,
                                    names, count);
  if (err == 0)
    err = candidates_read_next(ct);
  if (err != 0)
    lk__contender_rules(ct)->recovered(ct, LK_RECOVERED_FAILED, err);
}

void lk__recovery_take_list(lk_contender *ct, int err, const lk_bytes *names,
                            size_t count)
{
  lk_recovered result = recovery_judge_list(ct, &err, names, count);

  if (lk__contender_rules(ct)->recovered != NULL)
    recovery_report(ct, result, err, names, count);
  else
    recovery_continue(ct, result, err, names, count);
}

int lk__contender_enter_recovering(lk_contender *ct, lk_contender_state from)
{
  (void)from;
  return lk__recovery_begin(ct);
}

const lk_contender_rules lk__rules_recovering = {
    .next = {LK_ON(PREDECESSORS, SETTING_WATCHES), LK_ON(GRANT, HELD),
             LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(TOKEN_NEEDED, READING_OWN),
             LK_ON(CANDIDATES, READING_CANDIDATES), LK_ON_ANY_IN_QUEUE},
    .enter = lk__contender_enter_recovering,
    .listed = lk__recovery_take_list};
