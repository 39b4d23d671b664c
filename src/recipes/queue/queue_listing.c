/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/max_queue.h"
#include "recipes/queue/own_node_check.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/queue_listing.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"
#include "recipes/queue/sequence_limit.h"

/* ---- the position of the own node --------------------------------------- */

static void contender_notify_if_counter_near_end(lk_contender *ct,
                                                 int64_t number)
{
  lk_notice notice = {.type = LK_NOTICE_COUNTER_NEAR_END};

  if (lk__sequence_is_near_end(number))
    lk__contender_notify(ct, &notice);
}

static void contender_notify_mixed_queue(lk_contender *ct, lk_bytes name)
{
  size_t size = strlen(ct->own.dir) + sizeof "/" + name.len;
  lk_notice notice = {.type = LK_NOTICE_MIXED_QUEUE};
  char *path = lk__mem_new(&ct->lease->mem, size);

  if (path == NULL)
    return; /* the notice follows with the next list */
  (void)lk__write_child_path(path, ct->own.dir, name);
  notice.node = path;
  lk__contender_notify(ct, &notice);
  lk__mem_free(&ct->lease->mem, path);
}

static void contender_take_position(lk_contender *ct,
                                    const lk_queue_position *p)
{
  int err = lk__max_queue_refusal(ct->config->once, ct->config->max_queue,
                                  p->predecessors);

  if (p->predecessors == 0) {
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  } else if (err != 0) {
    lk__contender_fail(ct, err);
  } else {
    lk__contender_step(ct, LK_CONTENDER_ON_PREDECESSORS);
    lk__contender_notify_position(ct);
  }
}

static size_t max_permits_of(const lk_contender *ct)
{
  const int32_t *limit = ct->config->limit;

  if (limit == NULL)
    return SIZE_MAX;
  return *limit < 0 ? 0 : (size_t)*limit;
}

/* Of the other permits, only the number matters. */
static void permit_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  lk_contender_state state_before = ct->state;
  lk_queue_position p;

  ct->config->find_position(&p, ct->role, lk_text(lk__own_node_name(&ct->own)),
                            names, count, max_permits_of(ct));
  ct->pause.doublings = 0;
  ct->wait.limit_changed = false;
  ct->wait.listed_zxid = ct->lease->evidence->seen_zxid;
  lk__predecessors_set_count_only(&ct->predecessors, p.predecessors);
  if (!p.found)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (p.foreign.at != NULL)
    contender_notify_mixed_queue(ct, p.foreign);
  /* The callback of a notice may have stopped the contender. */
  if (p.found && ct->state == state_before)
    contender_take_position(ct, &p);
}

void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  if (ct->role->is_permit) {
    permit_take_list(ct, names, count);
    return;
  }
  int64_t *scratch = lk__lease_scratch(ct->lease, count);
  lk_contender_state state_before = ct->state;
  lk_queue_position p;

  if (scratch == NULL) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
    return;
  }
  lk__queue_position_find(&p, ct->role, lk_text(lk__own_node_name(&ct->own)),
                          names, count, scratch);
  ct->pause.doublings = 0;
  if (!p.found) {
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (p.unsafe) {
    lk__contender_fail(ct, LK_ERR_SEQ_UNSAFE);
  } else if (!lk__predecessors_set(&ct->predecessors, &ct->lease->mem,
                                   ct->own.dir, lk__contender_connection(ct),
                                   count, &p)) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
  } else {
    contender_notify_if_counter_near_end(ct, p.number);
    lk__max_queue_warn_if_long(ct, p.predecessors);
    if (p.foreign.at != NULL)
      contender_notify_mixed_queue(ct, p.foreign);
    /* The callback of a notice may have stopped the contender. */
    if (ct->state == state_before)
      contender_take_position(ct, &p);
  }
}

void lk__contender_limit_changed(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else
    ct->wait.limit_changed = true; /* used when the next list has come */
}

/* ---- replies ------------------------------------------------------------ */

static void contender_take_first_list(lk_contender *ct, const lk_bytes *names,
                                      size_t count)
{
  int err =
      lk__max_queue_refusal(ct->config->once, ct->config->max_queue,
                            lk__names_count_excluding(ct->role, names, count));

  ct->pause.doublings = 0;
  if (err != 0)
    lk__contender_fail(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_START);
}

/* A missing directory is an empty queue. */
static void contender_judge_first_list(lk_contender *ct, int err,
                                       const lk_bytes *names, size_t count)
{
  if (err != 0 && err != LK_ERR_NO_NODE)
    lk__contender_request_failed(ct, err);
  else
    contender_take_first_list(ct, names, err == 0 ? count : 0);
}

void lk__contender_judge_list(lk_contender *ct, int err, const lk_bytes *names,
                              size_t count)
{
  if (err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_list(ct, names, count);
}

static void on_list_reply(lk_client *c, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    if (err != 0 && ct->wait.watches_directory)
      lk__contender_cancel_wait_watch(ct); /* a list that fails sets none */
    if (!lk__contender_fail_if_too_big(ct, err) &&
        lk__contender_rules(ct)->listed != NULL)
      lk__contender_rules(ct)->listed(ct, err, names, count);
  }
  lk__contender_unref(ct);
}

/* ---- requests ----------------------------------------------------------- */

static void on_directory_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  if (event->type != LK_EVENT_ENDED && ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  lk__contender_unref(ct);
}

int lk__contender_send_list(lk_contender *ct)
{
  /* The server need not remove the earlier watch, since the same node is
   * watched again or is about to be deleted. */
  const bool on_server = false;

  if (ct->wait.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->wait.watch, on_server);
  ct->wait.watch = NULL;
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_directory_event,
                  .watch_arg = ct,
                  .watch = &ct->wait.watch};

  return lk__contender_count_request(
      ct, lk_get_children(lk__contender_client(ct),
                          lk__own_node_directory(&ct->own),
                          ct->wait.watches_directory ? &call : LK_NO_OPTIONS,
                          on_list_reply, ct));
}

/* ---- LISTING_FIRST, LISTING --------------------------------------------- */

int lk__contender_enter_listing_first(lk_contender *ct, lk_contender_state from)
{
  (void)from;
  return ct->machine->request_view(ct);
}

const lk_contender_rules lk__rules_listing_first = {
    .next = {LK_ON(START, CREATING), LK_ON_ANY_BEFORE_GRANT},
    .enter = lk__contender_enter_listing_first,
    .listed = contender_judge_first_list};

/* Whether the next list may show that no predecessor is left, and so be
 * followed by a grant. A direct predecessor that was deleted has usually held
 * the lock; in a long queue it may be one of many whose sessions have expired.
 * The count of predecessors is that of the last list, less those deleted
 * since. */
static bool contender_list_may_grant(const lk_contender *ct)
{
  bool usually_grants =
      ct->wait.predecessor_deleted && ct->predecessors.listed <= LK_SHORT_LIST;

  return ct->role->is_permit || usually_grants || ct->predecessors.count <= 1;
}

static void on_check_before_list(lk_client *c, int err,
                                 const lk_op_result *results, size_t count,
                                 void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.checked = lk__check_result_of(err) != LK_CHECK_UNKNOWN;
  lk__contender_unref(ct);
}

/* If a grant may follow and the lease is too short for a grant, a check of the
 * own node is sent together with the list, in front of it. This saves a round
 * trip before the grant. */
int lk__contender_enter_listing(lk_contender *ct, lk_contender_state from)
{
  int64_t now = lk_client_clock(lk__contender_client(ct));
  int err = 0;

  (void)from;
  ct->round.checked = false;
  if (contender_list_may_grant(ct) && !lk__contender_lease_suffices(ct, now))
    err = lk__contender_check_own(ct, on_check_before_list);
  return err != 0 ? err : ct->machine->request_view(ct);
}

const lk_contender_rules lk__rules_listing = {
    .next = {LK_ON(PREDECESSORS, SETTING_WATCHES), LK_ON(GRANT, HELD),
             LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(TOKEN_NEEDED, READING_OWN), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = lk__contender_enter_listing,
    .listed = lk__contender_judge_list};
