/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/queue.h"
#include "recipes/semaphore/permit_limit.h"
#include "recipes/semaphore/permit_nodes.h"
#include "recipes/semaphore/semaphore_acquisition.h"

/* Queue node and permit nodes are created in one write, which is wasted if a
 * predecessor exists. After so many wasted writes in a row, the queue node is
 * created alone. */
enum { MAX_WASTED_WRITES = 3 };

static lk_semaphore_acquisition *semaphore_of_joint(lk_joint_acquisition *joint)
{
  return (lk_semaphore_acquisition *)(void *)joint;
}

/* ---- release ----------------------------------------------------------- */

static void semaphore_drop_queue_node(lk_semaphore_acquisition *s)
{
  lk_contender *ct = s->queue_node;
  const bool report_gone = false;

  s->queue_node = NULL;
  s->is_first = false;
  if (ct == NULL)
    return;
  bool has_ended = ct->callbacks == NULL;

  if (!has_ended)
    lk__contender_stop(ct, report_gone);
  lk__contender_unref(ct);
}

static void semaphore_before_stop(lk_joint_acquisition *joint)
{
  lk__permit_limit_forget(semaphore_of_joint(joint));
}

/* The queue node is deleted after the permit nodes. While the queue node
 * exists, other clients wait in the queue and do not count permit nodes. So
 * none of them counts a permit node that is about to be deleted. */
static void semaphore_after_stop(lk_joint_acquisition *joint)
{
  semaphore_drop_queue_node(semaphore_of_joint(joint));
}

static void semaphore_begin(lk_acquisition *a);

static void semaphore_begin_again(lk_semaphore_acquisition *s, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  if (!lk__joint_begins_again_after_loss(&s->joint, err)) {
    lk__joint_end(&s->joint, err);
    return;
  }
  lk__joint_ref(&s->joint);
  lk__permit_nodes_drop(s);
  semaphore_drop_queue_node(s);
  s->reported_first = false;
  lk__joint_notify(&s->joint, &notice);
  if (!s->joint.over)
    semaphore_begin(&s->joint.acquisition);
  lk__joint_unref(&s->joint);
}

static void semaphore_try_grant(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  if (!s->is_first || a->count < s->plan->take ||
      (s->plan->limit_path != NULL && (!s->limit.known || s->limit.changed)))
    return;
  if (!lk__acquisition_try_grant(&s->joint.acquisition))
    return;
  semaphore_drop_queue_node(s);
  lk__permit_limit_forget(s);
  if (s->joint.callbacks != NULL)
    s->joint.callbacks->granted(s->joint.callbacks_arg);
  lk__joint_notify_revoked(&s->joint);
}

/* The last contender, which counts the permit nodes; NULL: it does not exist
 * yet. */
static lk_contender *counting_contender(const lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  return a->count == s->plan->take ? a->parts[a->count - 1] : NULL;
}

/* Whether the last contender has found no more permit nodes than the limit. */
static bool has_counted(const lk_semaphore_acquisition *s)
{
  const lk_contender *ct = counting_contender(s);

  return ct != NULL && lk__contender_holds(ct);
}

/* The limit was read. A grant awaits this if the limit was not known, or if it
 * has changed after the count had succeeded. If the limit differs from the one
 * that was counted with, the permit nodes are then deleted and created again.
 * If no grant awaits it, the last contender lists again. */
static void semaphore_set_limit(lk_semaphore_acquisition *s, int32_t limit)
{
  bool is_same = limit == s->plan->limit;
  bool was_read_again = s->limit.changed;
  bool grant_awaits_limit =
      !s->limit.known || (was_read_again && has_counted(s));

  s->plan->limit = limit;
  s->limit.known = true;
  s->limit.changed = false;
  if (is_same && (grant_awaits_limit || was_read_again)) {
    semaphore_try_grant(s);
  } else if (grant_awaits_limit && s->joint.acquisition.count > 0) {
    lk__permit_nodes_drop(s);
    if (s->is_first)
      lk__permit_nodes_create(s);
  } else if (counting_contender(s) != NULL) {
    lk__contender_limit_changed(counting_contender(s));
  }
}

/* ---- callbacks of the queue node ----------------------------------------- */

/* Notify the owner, once, that only permits are missing: position 1. */
static void semaphore_notify_first(lk_semaphore_acquisition *s)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING, .position = 1};

  if (!s->is_first || s->reported_first)
    return;
  s->reported_first = true;
  lk__joint_notify(&s->joint, &notice);
}

/* Whether the last contender has found more permit nodes than the limit. */
static bool count_was_too_high(const lk_semaphore_acquisition *s)
{
  const lk_contender *ct = counting_contender(s);

  return ct != NULL && ct->wait.reported_position > 0;
}

static void queue_node_granted(void *arg)
{
  lk_semaphore_acquisition *s = arg;

  lk__joint_ref(&s->joint);
  s->is_first = true;
  if (!s->had_predecessors)
    *s->plan->wasted_writes = 0;
  if (s->joint.acquisition.count == 0)
    lk__permit_nodes_create(s);
  if (!s->joint.over && count_was_too_high(s))
    semaphore_notify_first(s);
  lk__joint_unref(&s->joint);
}

static void semaphore_failed(lk_semaphore_acquisition *s, int err)
{
  if (err == LK_ERR_BUSY && !s->is_first && s->joint.acquisition.count > 0)
    (*s->plan->wasted_writes)++;
  if (err == LK_ERR_SESSION_EXPIRED)
    semaphore_begin_again(s, err);
  else
    lk__joint_end(&s->joint, err);
}

static void queue_node_ended(void *arg, int err)
{
  semaphore_failed(arg, err);
}

static void queue_node_lost(void *arg, int err)
{
  lk_semaphore_acquisition *s = arg;

  if (!lk__joint_was_granted(&s->joint))
    semaphore_begin_again(s, err);
}

static void queue_node_on_notice(void *arg, const lk_notice *notice)
{
  lk_semaphore_acquisition *s = arg;

  lk__joint_ref(&s->joint);
  switch (notice->type) {
  case LK_NOTICE_WAITING:
    s->had_predecessors = true;
    if (s->joint.acquisition.count > 0) {
      lk__permit_nodes_drop(s); /* predecessors take their permits first */
      (*s->plan->wasted_writes)++;
    }
    lk__joint_notify(&s->joint, notice);
    break;
  case LK_NOTICE_PLACE_LOST:
    lk__permit_nodes_drop(s);
    lk__joint_notify(&s->joint, notice);
    break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED:
  case LK_NOTICE_COUNTER_NEAR_END: lk__joint_notify(&s->joint, notice); break;
  case LK_NOTICE_SUSPENDED:
  case LK_NOTICE_UNSURE:
  case LK_NOTICE_REVOKED:
  case LK_NOTICE_LEASE_PROVEN: break; /* the permit nodes report these */
  }
  lk__joint_unref(&s->joint);
}

/* Nothing to do: the owner is notified when the permit nodes are gone. */
static void queue_node_gone(void *arg, int err)
{
  (void)arg;
  (void)err;
}

static const lk_acquisition_callbacks queue_node_callbacks = {
    .granted = queue_node_granted,
    .ended = queue_node_ended,
    .lost = queue_node_lost,
    .notice = queue_node_on_notice,
    .gone = queue_node_gone};

static void semaphore_create_queue_node(lk_semaphore_acquisition *s)
{
  s->queue_node = lk__contender_new(s->joint.lease, &s->plan->queue_node,
                                    &queue_node_callbacks, s);
  if (s->queue_node == NULL) {
    lk__joint_end(&s->joint, LK_ERR_NO_MEMORY);
    return;
  }
  lk__contender_ref(s->queue_node); /* until semaphore_drop_queue_node() */
  lk__contender_begin(s->queue_node);
}

/* ---- functions of lk_acquisition_kind ------------------------------------ */

static void semaphore_begin(lk_acquisition *a)
{
  lk_semaphore_acquisition *s = (lk_semaphore_acquisition *)(void *)a;

  lk__joint_ref(&s->joint);
  int err = lk__permit_limit_read(s);

  if (err != 0)
    lk__joint_end(&s->joint, err);
  else
    semaphore_create_queue_node(s);
  if (!s->joint.over && lk__lease_is_online(s->joint.lease) &&
      *s->plan->wasted_writes < MAX_WASTED_WRITES)
    lk__permit_nodes_create(s);
  lk__joint_unref(&s->joint);
}

static void semaphore_joint_try_grant(lk_joint_acquisition *joint)
{
  semaphore_try_grant(semaphore_of_joint(joint));
}

static const lk_semaphore_reports reports = {
    .limit_read = semaphore_set_limit,
    .contender_granted = semaphore_try_grant,
    .failed = semaphore_failed,
    .lost = semaphore_begin_again,
    .waiting = semaphore_notify_first,
};

static const lk_joint_kind semaphore_kind = {
    .acquisition = {.begin = semaphore_begin,
                    .stop = lk__joint_stop,
                    .remove_callbacks = lk__joint_remove_callbacks,
                    .ref = lk__joint_ref_acquisition,
                    .unref = lk__joint_unref_acquisition},
    .try_grant = semaphore_joint_try_grant,
    .before_stop = semaphore_before_stop,
    .after_stop = semaphore_after_stop};

lk_semaphore_acquisition *
lk__semaphore_acquisition_new(lk_session_lease *lease, lk_semaphore_plan *plan,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg)
{
  lk_semaphore_acquisition *s =
      lk__mem_new(&lease->mem, sizeof *s + lk__joint_room(plan->take));

  if (s == NULL)
    return NULL;
  lk__joint_init(&s->joint, &semaphore_kind, lease, callbacks, arg, s + 1,
                 plan->take);
  s->joint.fail_on_expiry = plan->fail_on_expiry;
  s->plan = plan;
  s->reports = &reports;
  s->limit.pause = (lk_timer){.fire = lk__permit_limit_on_timer, .arg = s};
  return s;
}
