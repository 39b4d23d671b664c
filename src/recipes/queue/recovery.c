/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

#include <inttypes.h>
#include <latchkey/lock.h>
#include <stdio.h>

/**
 * @file
 * Which of the names in a queue is our node, where a name does not tell: a
 * create whose answer was lost, or a node that was ours before the connection
 * broke. It belongs to our session, and was created when we were told that it
 * was or, if we were not, holds our UUID. The newest are read first, and none
 * that is older than our create.
 */

void lk__candidates_free(lk_contender *ct)
{
  lk__give(&ct->lease->mem, ct->candidates.suffix);
  ct->candidates = (lk_candidates){.suffix = NULL};
}

/* A node that we were told of keeps its name. */
static bool name_may_be_own(const lk_contender *ct, lk_bytes name)
{
  const char *own = lk__contender_own_name(ct);

  return ct->own.token == 0 ||
         (name.len == strlen(own) && memcmp(name.at, own, name.len) == 0);
}

int lk__candidates_take(lk_contender *ct, const lk_bytes *names, size_t count)
{
  lk_candidates *s = &ct->candidates;
  int64_t suffix;

  lk__candidates_free(ct);
  s->suffix = lk__take(&ct->lease->mem, count * sizeof *s->suffix);
  if (s->suffix == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    if (lk__name_is_ours(names[i], lk__contender_name_base(ct), &suffix) &&
        name_may_be_own(ct, names[i]))
      s->suffix[s->count++] = suffix;
  }
  lk__numbers_sort(s->suffix, s->count);
  s->next = s->count;
  s->strict = s->count > 0 && s->suffix[0] >= 0 &&
              s->suffix[s->count - 1] <= LK_SUFFIX_LIMIT;
  return 0;
}

/* ---- what the answers mean --------------------------------------------- */

/* Somebody may have asked us to let go before we knew that we had come. The
 * other nodes of this session are those of other attempts. */
static bool candidate_is_revoked(const lk_contender *ct, const lk_bytes *data)
{
  static const char word[] = LK_REVOKE_MESSAGE;

  if (data->len != sizeof word - 1 || memcmp(data->at, word, data->len) != 0)
    return false;
  lk_contender *o = NULL;

  while ((o = lk__lease_next_contender(ct->lease, o)) != NULL) {
    if (o->own.state == LK_OWN_CREATED &&
        strcmp(o->own.path, ct->own.path) == 0)
      return false;
  }
  return true;
}

static bool candidate_is_own(const lk_contender *ct, const lk_bytes *data,
                             const lk_stat *stat)
{
  if (stat->ephemeral_owner != lk_client_session(lk__contender_client(ct)).id)
    return false;
  if (ct->own.token != 0)
    return ct->own.token == (uint64_t)stat->czxid;
  return (data->len == ct->own.data_len &&
          memcmp(data->at, ct->own.data, data->len) == 0) ||
         ((uint64_t)stat->czxid > ct->own.before_zxid &&
          candidate_is_revoked(ct, data));
}

/* The node that is looked at. */
static void own_node_set_suffix(lk_contender *ct, int64_t suffix)
{
  snprintf(ct->own.path + ct->own.base_len, LK_SUFFIX_MAX + 1, "%010" PRId64,
           suffix);
}

static void own_node_take_candidate(lk_contender *ct, const lk_stat *stat)
{
  ct->own.state = LK_OWN_CREATED;
  ct->own.token = (uint64_t)stat->czxid;
  ct->own.verified_on = lk_client_connection(lk__contender_client(ct));
  ct->candidates.found = true;
}

static void candidates_take_reply(lk_contender *ct, int err,
                                  const lk_bytes *data, const lk_stat *stat)
{
  lk_candidates *s = &ct->candidates;
  int64_t suffix = s->suffix[--s->next];

  if (err == LK_ERR_NO_NODE || s->found)
    return;
  if (err != 0) {
    s->err = err;
    return;
  }
  own_node_set_suffix(ct, suffix);
  s->enough = s->strict && (uint64_t)stat->czxid <= ct->own.before_zxid;
  if (candidate_is_own(ct, data, stat))
    own_node_take_candidate(ct, stat);
}

static void candidates_end(lk_contender *ct, int err)
{
  bool found = ct->candidates.found;

  lk__candidates_free(ct);
  if (!found && err == 0)
    ct->own.state = LK_OWN_NONE;
  if (ct->state == LK_CONTENDER_CLEANING_UP)
    lk__cleanup_searched(ct, found ? 0 : err);
  else if (found)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

/* ---- reads ------------------------------------------------------------- */

static void on_candidate_read(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    candidates_take_reply(ct, err, data, stat);
    if (!lk__contender_fail_if_too_big(ct, err) &&
        lk__contender_has_all_replies(ct)) {
      err = lk__enter_reading_candidates(ct);
      if (err != 0)
        candidates_end(ct, err);
    }
  }
  lk__contender_unref(ct);
}

/* Some more, or the end. */
int lk__enter_reading_candidates(lk_contender *ct)
{
  lk_candidates *s = &ct->candidates;
  int err = 0;

  if (s->found || s->err != 0 || s->enough || s->count == 0) {
    candidates_end(ct, s->err);
    return 0;
  }
  for (size_t i = 0; i < LK_MAX_PREDECESSOR_READS && s->count > 0 && err == 0;
       i++) {
    own_node_set_suffix(ct, s->suffix[--s->count]);
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->own.path, NULL,
                                                 on_candidate_read, ct));
  }
  if (err != 0)
    lk__contender_ignore_replies(ct); /* what was asked of these is in vain */
  return err;
}
