/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/predecessors.h"

#include "base/mem.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/direct_handoff.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/queue.h"

/* ---- the paths of the predecessors --------------------------------------- */

static size_t child_path_size(const char *dir, lk_bytes name)
{
  return strlen(dir) + sizeof "/" + name.len;
}

static bool predecessors_make_room(lk_predecessors *p, const lk_mem *mem,
                                   size_t size)
{
  if (size <= p->block_size)
    return true;
  char *block = mem->resize(mem->arg, p->block, size);

  if (block == NULL)
    return false;
  p->block = block;
  p->block_size = size;
  return true;
}

/* Whether the predecessors will be read if the direct one is deleted. */
static bool all_may_be_read(const lk_queue_position *position, size_t listed)
{
  return listed > LK_SHORT_LIST &&
         position->predecessors <= LK_KEPT_PREDECESSORS;
}

/* The path of the head is always kept: it is reported to the caller. */
bool lk__predecessors_set(lk_predecessors *p, const lk_mem *mem,
                          const char *dir, uint64_t connection, size_t listed,
                          const lk_queue_position *position)
{
  size_t kept = position->nearest_count;

  if (kept > 1 && !all_may_be_read(position, listed))
    kept = 1;
  size_t size = child_path_size(dir, position->head.name);

  for (size_t i = 0; i < kept; i++)
    size += child_path_size(dir, position->nearest[i].name);
  if (kept > 0 && !predecessors_make_room(p, mem, size))
    return false;
  char *at = p->block;

  p->listed = listed;
  p->count = position->predecessors;
  p->kept = kept;
  p->has_rw_writer = position->has_rw_writer;
  p->in_range = position->in_range;
  p->connection = connection;
  for (size_t i = 0; i < kept; i++) {
    p->path[i] = at;
    at = lk__write_child_path(at, dir, position->nearest[i].name);
  }
  p->head_path = NULL;
  if (kept > 0) {
    p->head_path = at;
    (void)lk__write_child_path(at, dir, position->head.name);
  }
  return true;
}

void lk__predecessors_set_count_only(lk_predecessors *p, size_t count)
{
  p->count = count;
  p->kept = 0;
  p->head_path = NULL;
}

/* The predecessor with path `i` was deleted. */
static void predecessors_remove(lk_predecessors *p, size_t i)
{
  p->count--;
  p->kept--;
  for (; i < p->kept; i++)
    p->path[i] = p->path[i + 1];
  bool all_are_kept = p->kept == p->count;

  /* `path` begins with the direct predecessor. If it has the paths of all
   * predecessors, the last one is the head's. */
  if (all_are_kept && p->kept > 0)
    p->head_path = p->path[p->kept - 1];
}

/* Whether the predecessors that are left are to be read, after the direct one
   was deleted. Behind a short list another list costs less, and `path` has not
   all of them: see all_may_be_read(). */
static bool predecessors_are_worth_reading(const lk_predecessors *p)
{
  return p->listed > LK_SHORT_LIST && p->count <= LK_MAX_PREDECESSOR_READS;
}

void lk__predecessors_free(lk_predecessors *p, const lk_mem *mem)
{
  lk__mem_free(mem, p->block);
}

/* ---- the read and the watch of the direct predecessor -------------------- */

enum { DIRECT = 0 }; /* the index of the direct predecessor */

static void on_predecessor_read(lk_client *c, int err, const lk_bytes *data,
                                const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    ct->round.predecessor_err = err;
    if (err != 0)
      lk__contender_cancel_wait_watch(ct); /* a read that fails sets none */
    if (!lk__contender_fail_if_too_big(ct, err))
      lk__contender_continue_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg);

static int contender_watch_predecessor(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_predecessor_event,
                  .watch_arg = ct,
                  .watch = &ct->wait.watch};

  return lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                ct->predecessors.path[DIRECT],
                                                &call, done, ct));
}

/* Read the direct predecessor, and watch it. 0, or why the request was
   refused. */
static int predecessors_watch_direct(lk_contender *ct)
{
  return contender_watch_predecessor(ct, on_predecessor_read);
}

/* Other predecessors may have been deleted before the direct one. */
static void contender_direct_predecessor_deleted(lk_contender *ct)
{
  predecessors_remove(&ct->predecessors, DIRECT);
  if (ct->predecessors.count == 0)
    lk__direct_handoff_try(ct);
  else if (predecessors_are_worth_reading(&ct->predecessors))
    lk__contender_step(ct, LK_CONTENDER_ON_FEW_LEFT);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

static void on_predecessor_event(lk_client *c, lk_watch *w,
                                 const lk_event *event, void *arg)
{
  lk_contender *ct = arg;
  bool is_waiting = lk__contender_waits(ct);

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  if (is_waiting && event->type == LK_EVENT_DELETED) {
    ct->wait.predecessor_deleted = true;
    /* While reads are under way, the last reply continues the contender. */
    if (ct->state == LK_CONTENDER_WAITING)
      contender_direct_predecessor_deleted(ct);
  } else if (is_waiting) {
    /* The watch has ended, or the data changed, by a revocation. */
    int err = predecessors_watch_direct(ct);

    if (err != 0)
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

/* ---- all reads completed ------------------------------------------------- */

static void contender_judge_predecessors(lk_contender *ct)
{
  bool direct_deleted =
      ct->wait.predecessor_deleted || ct->round.deleted[DIRECT];

  ct->round.deleted[DIRECT] = direct_deleted;
  /* From the end, since a removal moves the paths behind it. */
  for (size_t i = ct->predecessors.kept; i-- > 0;) {
    if (ct->round.deleted[i])
      predecessors_remove(&ct->predecessors, i);
  }
  if (ct->predecessors.count == 0) {
    lk__direct_handoff_try(ct);
    return;
  }
  lk__contender_step(ct, direct_deleted ? LK_CONTENDER_ON_PREDECESSORS
                                        : LK_CONTENDER_ON_WATCHES_SET);
  lk__contender_notify_position(ct);
}

static void contender_judge_watches(lk_contender *ct)
{
  bool watch_has_ended = ct->wait.watch == NULL;
  bool directory_changed = ct->wait.watches_directory && watch_has_ended;
  bool limit_changed = ct->wait.watches_directory && ct->wait.limit_changed;

  if (directory_changed || limit_changed)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else if (!ct->wait.watches_directory && ct->wait.predecessor_deleted)
    contender_direct_predecessor_deleted(ct);
  else if (ct->state == LK_CONTENDER_SETTING_WATCHES)
    lk__contender_step(ct, LK_CONTENDER_ON_WATCHES_SET);
}

/* A watch on a node that cannot be read does not report its deletion, so the
 * directory is watched instead. */
static void contender_watch_directory(lk_contender *ct)
{
  lk_client_log(
      lk__contender_client(ct), LK_LOG_WARNING, LK_ERR_NO_AUTH,
      "the direct predecessor cannot be read: watching the whole queue");
  ct->wait.watches_directory = true;
  lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
}

/* lk_contender_rules.reads_done of SETTING_WATCHES, WAITING and
   READING_PREDECESSORS. */
static void predecessors_judge(lk_contender *ct)
{
  bool read_several = ct->state == LK_CONTENDER_READING_PREDECESSORS;
  /* The next heartbeat reads the own node again. */
  bool own_read_may_fail = ct->state == LK_CONTENDER_WAITING;

  if (ct->round.predecessor_err == LK_ERR_NO_NODE) {
    ct->wait.predecessor_deleted = true;
    ct->round.predecessor_err = 0;
  }
  if (ct->round.own_err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (ct->round.own_err != 0 && ct->round.own_err != LK_ERR_NO_AUTH &&
           !own_read_may_fail)
    lk__contender_request_failed(ct, ct->round.own_err);
  else if (ct->round.predecessor_err == LK_ERR_NO_AUTH)
    contender_watch_directory(ct);
  else if (ct->round.predecessor_err != 0)
    lk__contender_request_failed(ct, ct->round.predecessor_err);
  else if (read_several)
    contender_judge_predecessors(ct);
  else
    contender_judge_watches(ct);
}

/* ---- SETTING_WATCHES, WAITING -------------------------------------------- */

/* The deletion of the only predecessor grants the lock without a list if the
 * own node is watched. With several predecessors, a list or reads come first. A
 * grant of any kind needs the token, and a node that is certainly the own one:
 * if names are shared, the watch reports its deletion before another client's
 * node of the same name is listed. */
static bool waiter_needs_own_watch(const lk_contender *ct)
{
  bool is_next = ct->predecessors.count == 1 && !ct->wait.watches_directory;

  return is_next || ct->own.token == 0 ||
         lk__identity_shares_names(ct->own.identity) ||
         lk__own_node_needs_verification(&ct->own,
                                         lk__contender_connection(ct));
}

static int contender_enter_setting_watches(lk_contender *ct)
{
  int err = 0;

  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  if (!ct->wait.watches_directory)
    err = predecessors_watch_direct(ct);
  if (err == 0 && waiter_needs_own_watch(ct))
    err = lk__contender_ensure_own_watch(ct);
  /* Without a request, no reply would continue the contender. */
  if (err == 0)
    lk__contender_continue_if_all_read(ct);
  return err;
}

const lk_contender_rules lk__rules_setting_watches = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(FEW_LEFT, READING_PREDECESSORS),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_setting_watches,
    .reads_done = predecessors_judge};

/* A watch on the directory also reports the deletion of the own node, but not
 * if the directory may not be read any more. A node that may not be read is
 * read at each heartbeat, since nothing else reports its deletion: a missing
 * node has another error. If a request is refused, the next heartbeat calls
 * this function again. */
void lk__waiter_supervise_own(lk_contender *ct)
{
  if (lk__contender_waits(ct) && !lk__contender_is_single_node(ct) &&
      ct->own.watch == NULL)
    (void)lk__contender_watch_own(ct);
}

const lk_contender_rules lk__rules_waiting = {
    .next = {LK_ON(FEW_LEFT, READING_PREDECESSORS), LK_ON(LIST_NEEDED, LISTING),
             LK_ON(GRANT, HELD), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .reads_done = predecessors_judge};

/* ---- READING_PREDECESSORS ------------------------------------------------ */

/* In READING_PREDECESSORS. The replies come in the order of the paths. */
static void on_one_of_few_read(lk_client *c, int err, const lk_bytes *data,
                               const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)data;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    size_t i = ct->round.reads_replied++;
    bool is_direct = i == DIRECT;
    /* LK_ERR_NO_AUTH shows that the node exists, which is enough for all but
     * the direct predecessor: that one must be watched. */
    bool read_suffices = err == 0 || err == LK_ERR_NO_NODE ||
                         (err == LK_ERR_NO_AUTH && !is_direct);

    if (is_direct && err != 0)
      lk__contender_cancel_wait_watch(ct); /* a read that fails sets none */
    ct->round.deleted[i] = err == LK_ERR_NO_NODE;
    if (!read_suffices)
      ct->round.predecessor_err = err;
    if (!lk__contender_fail_if_too_big(ct, err))
      lk__contender_continue_if_all_read(ct);
  }
  lk__contender_unref(ct);
}

static int contender_enter_reading_predecessors(lk_contender *ct)
{
  int err;

  ct->wait.predecessor_deleted = false;
  ct->round.predecessor_err = 0;
  ct->round.own_err = 0;
  ct->round.reads_replied = 0;
  memset(ct->round.deleted, 0, sizeof ct->round.deleted);
  err = contender_watch_predecessor(ct, on_one_of_few_read);
  for (size_t i = DIRECT + 1; i < ct->predecessors.kept && err == 0; i++)
    err = lk__contender_count_request(
        ct, lk_get(lk__contender_client(ct), ct->predecessors.path[i],
                   LK_NO_OPTIONS, on_one_of_few_read, ct));
  /* If none is left, the grant needs no list. */
  return err != 0 ? err : lk__contender_ensure_own_watch(ct);
}

const lk_contender_rules lk__rules_reading_predecessors = {
    .next = {LK_ON(WATCHES_SET, WAITING), LK_ON(PREDECESSORS, SETTING_WATCHES),
             LK_ON(LIST_NEEDED, LISTING), LK_ON(GRANT, HELD),
             LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = contender_enter_reading_predecessors,
    .reads_done = predecessors_judge};
