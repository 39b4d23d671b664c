/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/multilock.h>

#include "base/mem.h"
#include "recipes/error_advice.h"
#include "recipes/locks/joint.h"
#include "recipes/locks/lock.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"

/**
 * @file
 * A multi-lock: a contender node in the queue of each part, made in one
 * transaction. When one of the contenders has to wait, the nodes of later
 * parts are deleted, so that the acquisition always consists of the first
 * parts. When that contender is granted, another transaction creates the
 * other nodes.
 */

enum {
  /* Transactions in a row that find a directory missing. */
  MAX_PARENTS_MISSING = 10,
  /* Transactions in a row that are refused because of an expired session,
   * although the session is resumed behind each. */
  MAX_SESSION_DENIED = 3,
  PAUSE_MS = 100
};

enum { MAX_PARTS = 1000 };

/* What all acquisitions of one handle share. The paths of the parts follow in
   the same allocation. */
typedef struct lk_multilock_plan {
  size_t count;
  bool once; /* end with LK_ERR_BUSY instead of waiting */
  bool fail_on_expiry;
  lk_contender_config parts[]; /* in the order in which they are acquired */
} lk_multilock_plan;

typedef struct lk_multilock_acquisition {
  lk_joint_acquisition joint;
  lk_multilock_plan *plan;
  bool suspended;      /* the owner was notified of the lost connection */
  bool in_transaction; /* a transaction is under way */
  bool begin_again;    /* begin again when the transaction has completed */
  bool create_parents; /* create directories before the next transaction */
  size_t first_new;    /* index of the first part of the newest transaction */
  /* Orphans: nodes of unknown name that are being deleted. The nodes of a new
   * transaction would wait for them, so none begins while there are any. */
  size_t orphans;
  unsigned parents_missing; /* transactions in a row with LK_ERR_NO_NODE */
  unsigned session_denied;  /* transactions of this session that a server has
                               refused with LK_ERR_SESSION_EXPIRED, in a row */
  lk_listener listener;
  lk_timer pause; /* fires when the next transaction is due */
} lk_multilock_acquisition;

static void multilock_begin_transaction(lk_multilock_acquisition *m);

static inline lk_multilock_acquisition *
multilock_of(lk_joint_acquisition *joint)
{
  return (lk_multilock_acquisition *)(void *)joint;
}

/* Whether another transaction is needed and may be sent: all contenders hold,
   and some parts have no contender. */
static bool multilock_can_continue(const lk_multilock_acquisition *m)
{
  const lk_acquisition *a = &m->joint.acquisition;

  for (size_t i = 0; i < a->count; i++) {
    if (!lk__contender_holds(a->parts[i]))
      return false;
  }
  return a->count < m->plan->count;
}

/* ---- end of the acquisition ---------------------------------------------- */

/* Detach the listener from the client, and stop the timer. */
static void multilock_stop_listening(lk_joint_acquisition *joint)
{
  lk_multilock_acquisition *m = multilock_of(joint);

  lk_timer_stop(joint->lease->client, &m->pause);
  lk_client_detach(joint->lease->client, &m->listener);
}

/* ---- deletion of contender nodes ----------------------------------------- */

static void orphan_gone(void *arg, int err)
{
  lk_multilock_acquisition *m = arg;

  (void)err; /* the session lease reports a node that cannot be deleted */
  if (--m->orphans == 0 && !m->joint.over && multilock_can_continue(m))
    multilock_begin_transaction(m);
  lk__joint_unref(&m->joint);
}

static void orphan_ignore_notice(void *arg, const lk_notice *notice)
{
  (void)arg;
  (void)notice;
}

static const lk_acquisition_callbacks orphan_callbacks = {
    .notice = orphan_ignore_notice, .gone = orphan_gone};

/* The name of the node is not known yet, so its delete cannot be sent before
 * the next transaction. The nodes of that transaction would wait for this one,
 * so the transaction is put off until this node is gone. */
static void multilock_drop_orphan(lk_multilock_acquisition *m, lk_contender *ct)
{
  bool has_ended = ct->callbacks == NULL;

  ct->callbacks = &orphan_callbacks;
  ct->callbacks_arg = m;
  m->orphans++;
  lk__joint_ref(&m->joint);
  if (!has_ended)
    lk__contender_stop(ct, LK_GONE_REPORT);
}

/* Delete the nodes of part `from` and of all later parts. */
static void multilock_drop_from(lk_multilock_acquisition *m, size_t from)
{
  lk_acquisition *a = &m->joint.acquisition;

  while (a->count > from) {
    lk_contender *ct = a->parts[--a->count];
    bool has_ended = ct->callbacks == NULL;

    if (ct->own.state == LK_OWN_REQUESTED || ct->own.state == LK_OWN_IN_DOUBT)
      multilock_drop_orphan(m, ct);
    else if (!has_ended)
      lk__contender_stop(ct, LK_NO_GONE_REPORT);
    lk__contender_unref(ct);
  }
}

/* Delete the nodes of all parts. */
static inline void multilock_drop_all(lk_multilock_acquisition *m)
{
  multilock_drop_from(m, 0);
}

static void multilock_begin_again(lk_multilock_acquisition *m, int err)
{
  lk_joint_acquisition *joint = &m->joint;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  if (!lk__joint_begins_again_after_loss(joint, err)) {
    lk__joint_end(&m->joint, err);
    return;
  }
  lk__joint_ref(joint);
  if (m->in_transaction) {
    /* The nodes can be deleted when the reply has given their names. */
    m->begin_again = true;
  } else {
    multilock_drop_all(m);
    multilock_begin_transaction(m);
  }
  lk__joint_notify(joint, &notice);
  lk__joint_unref(joint);
}

/* ---- callbacks of the contenders ----------------------------------------- */

static void multilock_try_grant(lk_joint_acquisition *joint)
{
  lk_multilock_acquisition *m = multilock_of(joint);

  if (m->begin_again || joint->acquisition.count < m->plan->count)
    return;
  if (lk__acquisition_try_grant(&joint->acquisition) &&
      joint->callbacks != NULL)
    joint->callbacks->granted(joint->callbacks_arg);
  lk__joint_notify_revoked(joint);
}

static void part_granted(void *arg)
{
  lk_joint_part *part = arg;
  lk_joint_acquisition *joint = part->joint;
  lk_multilock_acquisition *m = multilock_of(joint);

  lk__joint_ref(joint);
  if (joint->acquisition.count == m->plan->count)
    multilock_try_grant(joint);
  else if (multilock_can_continue(m))
    multilock_begin_transaction(m);
  lk__joint_unref(joint);
}

static void part_ended(void *arg, int err)
{
  lk_joint_part *part = arg;

  if (err == LK_ERR_SESSION_EXPIRED)
    multilock_begin_again(multilock_of(part->joint), err);
  else
    lk__joint_end(part->joint, err);
}

static void part_lost(void *arg, int err)
{
  lk_joint_part *part = arg;

  if (lk__joint_was_granted(part->joint))
    lk__joint_end(part->joint, err);
  else
    multilock_begin_again(multilock_of(part->joint), err);
}

/* All contenders are suspended at the same time. Only the first notice is
 * passed on, so that the owner gets one. */
static void part_suspended(lk_multilock_acquisition *m)
{
  if (!lk__joint_was_granted(&m->joint) || m->suspended)
    return;
  m->suspended = true;
  lk__joint_notify_with_deadline(&m->joint, LK_NOTICE_SUSPENDED);
}

/* A contender has to wait, so the nodes of later parts are deleted. Otherwise
 * there could be a deadlock with a client that acquires the same locks one by
 * one. That client could hold the lock we wait for, and wait for the lock of a
 * later part. */
static void part_waiting(const lk_joint_part *part, const lk_notice *notice)
{
  lk_joint_acquisition *joint = part->joint;

  if (part->index + 1 < joint->acquisition.count)
    multilock_drop_from(multilock_of(joint), part->index + 1);
  lk__joint_notify(joint, notice);
}

static void part_on_notice(void *arg, const lk_notice *notice)
{
  lk_joint_part *part = arg;
  lk_joint_acquisition *joint = part->joint;

  lk__joint_ref(joint);
  switch (notice->type) {
  case LK_NOTICE_WAITING: part_waiting(part, notice); break;
  case LK_NOTICE_SUSPENDED: part_suspended(multilock_of(joint)); break;
  case LK_NOTICE_UNSURE: lk__joint_part_unsure(joint); break;
  case LK_NOTICE_LEASE_PROVEN: lk__joint_part_proven(joint); break;
  case LK_NOTICE_REVOKED: lk__joint_notify_revoked(joint); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED:
  case LK_NOTICE_COUNTER_NEAR_END: lk__joint_notify(joint, notice); break;
  }
  lk__joint_unref(joint);
}

static const lk_acquisition_callbacks part_callbacks = {
    .granted = part_granted,
    .ended = part_ended,
    .lost = part_lost,
    .notice = part_on_notice,
    .gone = lk__joint_part_gone};

/* ---- the transaction ----------------------------------------------------- */

/* A transaction creates the missing contender nodes. Lists of their queues are
 * requested in the same write. */

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
    lk__joint_end(&m->joint, LK_ERR_EPHEMERAL_ON_LOCAL_SESSION);
    return;
  }
  switch (lk__error_advice(lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break; /* the listener begins the next one */
  case LK_ADVICE_RETRY_LATER:
    lk_timer_start(lease->client, &m->pause,
                   lk_client_clock(lease->client) + PAUSE_MS);
    break;
  case LK_ADVICE_GIVE_UP: lk__joint_end(&m->joint, err); break;
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
    lk__joint_end(&m->joint, LK_ERR_NO_NODE);
  } else {
    m->parents_missing++;
    multilock_begin_transaction(m);
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
    multilock_drop_from(m, m->first_new);
  if (m->begin_again) {
    m->begin_again = false;
    multilock_drop_all(m);
    multilock_begin_transaction(m);
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

/* Make the contender of the next part. The caller begins it. NULL: no
 * memory.
 */
static lk_contender *multilock_add_contender(lk_multilock_acquisition *m)
{
  return lk__joint_add(&m->joint, &m->plan->parts[m->joint.acquisition.count],
                       &part_callbacks);
}

/* Send a transaction that creates all missing nodes. No effect without a
   connection, while a transaction is under way or while `orphans` > 0. */
static void multilock_begin_transaction(lk_multilock_acquisition *m)
{
  if (m->joint.over || m->in_transaction || m->orphans > 0 ||
      !lk__lease_is_online(m->joint.lease))
    return;
  m->first_new = m->joint.acquisition.count;
  for (size_t i = m->first_new; i < m->plan->count; i++) {
    if (multilock_add_contender(m) == NULL) {
      lk__joint_end(&m->joint, LK_ERR_NO_MEMORY);
      return;
    }
  }
  int err = multilock_request_transaction(m);

  if (err != 0) {
    lk__joint_end(&m->joint, err);
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

/* ---- callbacks of the client --------------------------------------------- */

static void multilock_on_pause_over(lk_client *c, void *arg)
{
  lk_multilock_acquisition *m = arg;

  (void)c;
  if (multilock_can_continue(m))
    multilock_begin_transaction(m);
}

static void multilock_on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_multilock_acquisition *m = arg;

  (void)err;
  lk__joint_ref(&m->joint);
  switch (state) {
  case LK_STATE_CONNECTED:
    m->suspended = false;
    if (multilock_can_continue(m))
      multilock_begin_transaction(m);
    break;
  case LK_STATE_EXPIRED: m->session_denied = 0; break;
  case LK_STATE_CLOSED: lk__joint_end(&m->joint, lk__client_end_err(c)); break;
  case LK_STATE_AUTH_FAILED:
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  lk__joint_unref(&m->joint);
}

static void multilock_on_closing(lk_client *c, void *arg)
{
  lk_multilock_acquisition *m = arg;

  lk__joint_end(&m->joint, lk__client_end_err(c));
}

/* ---- the acquisition ----------------------------------------------------- */

static void multilock_begin(lk_acquisition *a)
{
  lk_multilock_acquisition *m = (lk_multilock_acquisition *)(void *)a;

  lk_client_attach(m->joint.lease->client, &m->listener);
  multilock_begin_transaction(m);
}

/* Nothing is left to do when the contenders are stopped. */
static void multilock_after_stop(lk_joint_acquisition *joint)
{
  (void)joint;
}

static const lk_joint_kind multilock_kind = {
    .acquisition = {.begin = multilock_begin,
                    .stop = lk__joint_stop,
                    .remove_callbacks = lk__joint_remove_callbacks,
                    .ref = lk__joint_ref_acquisition,
                    .unref = lk__joint_unref_acquisition},
    .try_grant = multilock_try_grant,
    .before_stop = multilock_stop_listening,
    .after_stop = multilock_after_stop};

/* Make an acquisition; `arg` is for the callbacks. NULL: no memory. `plan`
   must stay until the acquisition was stopped, has ended or was lost. */
static lk_multilock_acquisition *
multilock_acquisition_new(lk_session_lease *lease, lk_multilock_plan *plan,
                          const lk_acquisition_callbacks *callbacks, void *arg)
{
  lk_multilock_acquisition *m =
      lk__mem_new(&lease->mem, sizeof *m + lk__joint_room(plan->count));

  if (m == NULL)
    return NULL;
  lk__joint_init(&m->joint, &multilock_kind, lease, callbacks, arg, m + 1,
                 plan->count);
  m->joint.fail_on_expiry = plan->fail_on_expiry;
  m->plan = plan;
  m->listener = (lk_listener){.size = sizeof(lk_listener),
                              .state = multilock_on_state,
                              .closing = multilock_on_closing,
                              .arg = m};
  m->pause = (lk_timer){.fire = multilock_on_pause_over, .arg = m};
  return m;
}

/* ---- creation of the lock ------------------------------------------------ */

static bool side_is_valid(lk_multilock_side side)
{
  return side == LK_MULTILOCK_MUTEX || side == LK_MULTILOCK_READ ||
         side == LK_MULTILOCK_WRITE;
}

static int multilock_check_parts(const lk_layout_rules *rules,
                                 const lk_multilock_part *parts, size_t count)
{
  if (rules == NULL || parts == NULL || count == 0 || count > MAX_PARTS)
    return LK_ERR_BAD_ARGUMENT;
  for (size_t i = 0; i < count; i++) {
    if (!side_is_valid(parts[i].side) ||
        !lk__layout_has_side(rules, parts[i].side))
      return LK_ERR_BAD_ARGUMENT;
    if (parts[i].path == NULL || lk_path_check(parts[i].path) != 0 ||
        strcmp(parts[i].path, "/") == 0)
      return LK_ERR_BAD_PATH;
  }
  return 0;
}

/* NULL: no memory. A role that is NULL in `rules` is replaced by the role of
 * the lock in multilock_use_plan(). */
static lk_multilock_plan *multilock_plan_new(const lk_mem *mem,
                                             const lk_layout_rules *rules,
                                             const lk_multilock_part *parts,
                                             size_t count)
{
  size_t size = sizeof(lk_multilock_plan) + count * sizeof(lk_contender_config);
  size_t paths_size = 0;

  for (size_t i = 0; i < count; i++)
    paths_size += strlen(parts[i].path) + 1;
  lk_multilock_plan *p = lk__mem_new(mem, size + paths_size);

  if (p == NULL)
    return NULL;
  char *at = (char *)p + size;

  for (size_t i = 0; i < count; i++) {
    size_t path_size = strlen(parts[i].path) + 1;

    memcpy(at, parts[i].path, path_size);
    p->parts[i].dir = at;
    p->parts[i].role = rules->roles[parts[i].side];
    at += path_size;
  }
  p->count = count;
  return p;
}

static int multilock_compare_paths(const void *a, const void *b)
{
  const lk_contender_config *x = a;
  const lk_contender_config *y = b;

  return strcmp(x->dir, y->dir);
}

/* The part with the path `dir` among the first `count` parts, or NULL. */
static const lk_contender_config *
multilock_find_part(const lk_multilock_plan *plan, size_t count,
                    const char *dir)
{
  for (size_t i = 0; i < count; i++) {
    if (strcmp(plan->parts[i].dir, dir) == 0)
      return &plan->parts[i];
  }
  return NULL;
}

/* Remove duplicate parts. false: a path has two different sides. */
static bool multilock_remove_duplicates(lk_multilock_plan *plan)
{
  size_t kept = 0;

  for (size_t i = 0; i < plan->count; i++) {
    const lk_contender_config *same_path =
        multilock_find_part(plan, kept, plan->parts[i].dir);

    if (same_path == NULL)
      plan->parts[kept++] = plan->parts[i];
    else if (same_path->role != plan->parts[i].role)
      return false;
  }
  plan->count = kept;
  return true;
}

static lk_acquisition *
multilock_acquisition_make(lk_lock *l,
                           const lk_acquisition_callbacks *callbacks)
{
  lk_multilock_plan *p = l->source.plan;

  p->once = l->options.contender.once;
  for (size_t i = 0; i < p->count; i++)
    p->parts[i].once = p->once;
  lk_multilock_acquisition *m =
      multilock_acquisition_new(l->lease, p, callbacks, l);

  return m == NULL ? NULL : &m->joint.acquisition;
}

static lk_multilock_side multilock_side_of(const lk_lock *l,
                                           const lk_role *role)
{
  const lk_role *const *roles = l->options.rules->roles;

  if (role == roles[LK_MULTILOCK_READ])
    return LK_MULTILOCK_READ;
  return role == roles[LK_MULTILOCK_WRITE] ? LK_MULTILOCK_WRITE
                                           : LK_MULTILOCK_MUTEX;
}

static int multilock_clone(lk_lock **out, const lk_lock *l,
                           const lk_lock_config *config)
{
  const lk_mem *mem = &l->lease->mem;
  const lk_multilock_plan *p = l->source.plan;
  const lk_multilock_config as_listed = {.size = sizeof as_listed,
                                         .keep_order = true};
  lk_multilock_part *parts = lk__mem_new(mem, p->count * sizeof *parts);

  *out = NULL;
  if (parts == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < p->count; i++)
    parts[i] =
        (lk_multilock_part){.path = p->parts[i].dir,
                            .side = multilock_side_of(l, p->parts[i].role)};
  int err = lk_multilock_new(out, l->lease->client, parts, p->count, config,
                             &as_listed);

  lk__mem_free(mem, parts);
  return err;
}

/* Each part gets the options of the lock, except its path and its role. */
static void multilock_use_plan(lk_lock *l, lk_multilock_plan *p)
{
  l->source.make = multilock_acquisition_make;
  l->source.plan = p;
  l->source.clone = multilock_clone;
  p->fail_on_expiry = l->options.contender.fail_on_expiry;
  for (size_t i = 0; i < p->count; i++) {
    const char *dir = p->parts[i].dir;
    const lk_role *role = p->parts[i].role;

    p->parts[i] = l->options.contender;
    p->parts[i].dir = dir;
    if (role != NULL)
      p->parts[i].role = role;
    /* A contender ends with its session. Then the acquisition begins again as a
     * whole, unless the caller's fail_on_expiry is set. */
    p->parts[i].fail_on_expiry = true;
    p->parts[i].peek = false; /* a transaction creates the nodes first */
  }
}

int lk_multilock_new(lk_lock **out, lk_client *client,
                     const lk_multilock_part *parts, size_t count,
                     const lk_lock_config *config,
                     const lk_multilock_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_multilock_config);
  lk_multilock_config multilock_config;
  lk_lock_config lock_config;
  int err = lk__lock_config_copy(client, &lock_config, config);

  *out = NULL;
  if (err == 0)
    err = lk__client_copy_options(client, &sized, &multilock_config, options);
  if (err != 0)
    return err;
  const lk_layout_rules *rules = lk__layout_rules(lock_config.layout);

  err = multilock_check_parts(rules, parts, count);
  if (err != 0)
    return err;
  lk_multilock_plan *p =
      multilock_plan_new(lk_client_mem(client), rules, parts, count);

  if (p == NULL)
    return LK_ERR_NO_MEMORY;
  if (!multilock_config.keep_order)
    qsort(p->parts, count, sizeof *p->parts, multilock_compare_paths);
  err = multilock_remove_duplicates(p) ? 0 : LK_ERR_BAD_ARGUMENT;
  /* The handle has the path of the first part. */
  if (err == 0)
    err = lk__lock_make(out, client, p->parts[0].dir, &lock_config,
                        LK_MULTILOCK_MUTEX);
  if (err != 0)
    lk__mem_free(lk_client_mem(client), p);
  else
    multilock_use_plan(*out, p);
  return err;
}

/* ---- queries ------------------------------------------------------------- */

/* The contender for the part at `path`, or NULL. */
static const lk_contender *multilock_find_contender(const lk_lock *l,
                                                    const char *path)
{
  const lk_acquisition *a = l->acquisition;

  for (size_t i = 0; a != NULL && i < a->count; i++) {
    if (strcmp(a->parts[i]->own.dir, path) == 0)
      return a->parts[i];
  }
  return NULL;
}

uint64_t lk_multilock_token(const lk_lock *l, const char *path)
{
  const lk_contender *ct = lk__lock_holds(l) && !lk__lock_is_forked(l)
                               ? multilock_find_contender(l, path)
                               : NULL;

  return ct == NULL ? 0 : lk__contender_token(ct);
}

const char *lk_multilock_node(const lk_lock *l, const char *path)
{
  const lk_contender *ct =
      lk__lock_is_forked(l) ? NULL : multilock_find_contender(l, path);

  return ct != NULL && ct->own.state == LK_OWN_CREATED ? ct->own.path : NULL;
}
