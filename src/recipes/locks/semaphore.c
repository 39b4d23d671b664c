/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/locks/semaphore.h"

#include <stdio.h>

#include <latchkey/semaphore.h>

#include "base/mem.h"
#include "recipes/locks/joint.h"
#include "recipes/locks/lock.h"
#include "recipes/locks/permit_limit.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/queue.h"

/*
 * The acquisition of permits: a queue node in `locks`, and a permit node in
 * `leases` for each permit, each with a contender. The last permit node is
 * created after the others. Its contender lists all permit nodes of the
 * semaphore, and waits until their number is within the limit. The other
 * contenders hold as soon as their nodes exist. The permits are granted when
 * all are held and the queue node is the first of its queue.
 */

/* Queue node and permit nodes are created in one write, which is wasted if a
 * predecessor exists. After so many wasted writes in a row, the queue node is
 * created alone. */
enum { MAX_WASTED_WRITES = 3 };

enum { MAX_PERMITS = 1000000, MAX_TAKE = 1000 };

/* ---- deletion of the nodes ----------------------------------------------- */

static lk_semaphore_acquisition *semaphore_of_part(const lk_joint_part *part)
{
  return (lk_semaphore_acquisition *)(void *)part->joint;
}

static lk_semaphore_acquisition *semaphore_of_joint(lk_joint_acquisition *joint)
{
  return (lk_semaphore_acquisition *)(void *)joint;
}

/* Delete all permit nodes of the acquisition: stop and free their contenders.
 */
static void permit_nodes_drop(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->joint.acquisition;

  lk__joint_stop_parts(&s->joint, LK_NO_GONE_REPORT);
  while (a->count > 0)
    lk__contender_unref(a->parts[--a->count]);
}

static void permit_nodes_drop_last(lk_semaphore_acquisition *s)
{
  lk_acquisition *a = &s->joint.acquisition;
  lk_contender *last = a->parts[--a->count];

  lk__contender_stop(last, LK_NO_GONE_REPORT);
  lk__contender_unref(last);
}

static void semaphore_drop_queue_node(lk_semaphore_acquisition *s)
{
  lk_contender *ct = s->queue_node;

  s->queue_node = NULL;
  s->is_first = false;
  if (ct == NULL)
    return;
  bool has_ended = ct->callbacks == NULL;

  if (!has_ended)
    lk__contender_stop(ct, LK_NO_GONE_REPORT);
  lk__contender_unref(ct);
}

/* ---- grant and end ------------------------------------------------------- */

static void semaphore_begin(lk_acquisition *a);

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

/* Notify the owner, once, that only permits are missing: position 1. */
static void semaphore_notify_first(lk_semaphore_acquisition *s)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING, .position = 1};

  if (!s->is_first || s->reported_first)
    return;
  s->reported_first = true;
  lk__joint_notify(&s->joint, &notice);
}

static void semaphore_begin_again(lk_semaphore_acquisition *s, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  if (!lk__joint_begins_again_after_loss(&s->joint, err)) {
    lk__joint_end(&s->joint, err);
    return;
  }
  lk__joint_ref(&s->joint);
  permit_nodes_drop(s);
  semaphore_drop_queue_node(s);
  s->reported_first = false;
  semaphore_begin(&s->joint.acquisition);
  lk__joint_notify(&s->joint, &notice);
  lk__joint_unref(&s->joint);
}

static void semaphore_failed(lk_semaphore_acquisition *s, int err)
{
  if (err == LK_ERR_BUSY && !s->is_first && s->joint.acquisition.count > 0)
    s->plan->wasted_writes++;
  if (err == LK_ERR_SESSION_EXPIRED)
    semaphore_begin_again(s, err);
  else
    lk__joint_end(&s->joint, err);
}

/* ---- callbacks of the permit nodes' contenders --------------------------- */

static void permit_nodes_create_last(lk_semaphore_acquisition *s);

static bool others_are_held(const lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (i >= a->count || !lk__contender_holds(a->parts[i]))
      return false;
  }
  return true;
}

/* Whether the list of the last contender is newer than all other permit nodes
 * of this acquisition, so that it includes them. */
static bool has_listed_others(const lk_semaphore_acquisition *s,
                              const lk_contender *last)
{
  for (size_t i = 0; i + 1 < s->plan->take; i++) {
    if (s->joint.acquisition.parts[i]->own.token > last->wait.listed_zxid)
      return false;
  }
  return true;
}

/* The last contender has found no more permit nodes than the limit. If the
 * server was busy or a connection was lost, some of our other nodes may not
 * have existed when it listed. Then its count was too low. So its node is
 * deleted, and created again when the others exist. */
static void last_granted(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;
  const lk_contender *last = a->parts[a->count - 1];
  bool others_held = others_are_held(s);

  if (!s->is_first) {
    permit_nodes_drop(s); /* predecessors take their permits first */
  } else if (others_held && has_listed_others(s, last)) {
    semaphore_try_grant(s);
  } else {
    permit_nodes_drop_last(s);
    if (others_held)
      permit_nodes_create_last(s);
  }
}

static void permit_granted(void *arg)
{
  const lk_joint_part *part = arg;
  lk_semaphore_acquisition *s = semaphore_of_part(part);
  size_t take = s->plan->take;

  lk__joint_ref(&s->joint);
  if (part->index + 1 == take)
    last_granted(s);
  else if (s->joint.acquisition.count + 1 == take && others_are_held(s))
    permit_nodes_create_last(s); /* last_granted() had dropped the last */
  else
    semaphore_try_grant(s);
  lk__joint_unref(&s->joint);
}

static void permit_ended(void *arg, int err)
{
  lk_semaphore_acquisition *s = semaphore_of_part(arg);

  semaphore_failed(s, err);
}

static void permit_lost(void *arg, int err)
{
  lk_semaphore_acquisition *s = semaphore_of_part(arg);

  if (lk__joint_was_granted(&s->joint))
    lk__joint_end(&s->joint, err);
  else
    semaphore_begin_again(s, err);
}

/* All contenders are suspended at the same time. Only the notice of the first
 * is passed on, so that the owner gets one. */
static void permit_suspended(const lk_joint_part *part)
{
  if (lk__joint_was_granted(part->joint) && part->index == 0)
    lk__joint_notify_with_deadline(part->joint, LK_NOTICE_SUSPENDED);
}

static void permit_on_notice(void *arg, const lk_notice *notice)
{
  lk_joint_part *part = arg;
  lk_semaphore_acquisition *s = semaphore_of_part(part);
  lk_joint_acquisition *joint = part->joint;

  lk__joint_ref(joint);
  switch (notice->type) {
  case LK_NOTICE_WAITING: semaphore_notify_first(s); break;
  case LK_NOTICE_SUSPENDED: permit_suspended(part); break;
  case LK_NOTICE_UNSURE: lk__joint_part_unsure(joint); break;
  case LK_NOTICE_LEASE_PROVEN: lk__joint_part_proven(joint); break;
  case LK_NOTICE_REVOKED: lk__joint_notify_revoked(joint); break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED: lk__joint_notify(joint, notice); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_COUNTER_NEAR_END: break;
  }
  lk__joint_unref(joint);
}

static const lk_acquisition_callbacks permit_callbacks = {
    .granted = permit_granted,
    .ended = permit_ended,
    .lost = permit_lost,
    .notice = permit_on_notice,
    .gone = lk__joint_part_gone};

/* ---- creation of the permit nodes ---------------------------------------- */

/* false: no memory, and the acquisition has ended. */
static bool permit_nodes_add(lk_semaphore_acquisition *s)
{
  bool is_last = s->joint.acquisition.count + 1 == s->plan->take;

  if (lk__joint_add(&s->joint, is_last ? &s->plan->counting : &s->plan->permit,
                    &permit_callbacks) != NULL)
    return true;
  lk__joint_end(&s->joint, LK_ERR_NO_MEMORY);
  return false;
}

static void permit_nodes_create_last(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;

  if (permit_nodes_add(s))
    lk__contender_begin(a->parts[a->count - 1]);
}

/* Create the permit nodes that the acquisition does not have yet. All
   contenders begin before control returns to the event loop. So their creates
   are sent in one write, and the list of the last contender, which follows,
   includes all of their nodes. */
static void permit_nodes_create(lk_semaphore_acquisition *s)
{
  const lk_acquisition *a = &s->joint.acquisition;
  size_t take = s->plan->take;

  while (a->count < take) {
    if (!permit_nodes_add(s))
      return;
  }
  /* A contender that begins may end the acquisition or drop its nodes. */
  for (size_t i = 0; i < take && a->count == take && !s->joint.over; i++)
    lk__contender_begin(a->parts[i]);
}

/* ---- the limit ----------------------------------------------------------- */

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
void lk__semaphore_set_limit(lk_semaphore_acquisition *s, int32_t limit)
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
    permit_nodes_drop(s);
    if (s->is_first)
      permit_nodes_create(s);
  } else if (counting_contender(s) != NULL) {
    lk__contender_limit_changed(counting_contender(s));
  }
}

/* ---- callbacks of the queue node's contender ----------------------------- */

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
    s->plan->wasted_writes = 0;
  if (s->joint.acquisition.count == 0)
    permit_nodes_create(s);
  if (!s->joint.over && count_was_too_high(s))
    semaphore_notify_first(s);
  lk__joint_unref(&s->joint);
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
      permit_nodes_drop(s); /* predecessors take their permits first */
      s->plan->wasted_writes++;
    }
    lk__joint_notify(&s->joint, notice);
    break;
  case LK_NOTICE_PLACE_LOST:
    permit_nodes_drop(s);
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

/* ---- the acquisition ----------------------------------------------------- */

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
      s->plan->wasted_writes < MAX_WASTED_WRITES)
    permit_nodes_create(s);
  lk__joint_unref(&s->joint);
}

static void semaphore_joint_try_grant(lk_joint_acquisition *joint)
{
  semaphore_try_grant(semaphore_of_joint(joint));
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

static const lk_joint_kind semaphore_kind = {
    .acquisition = {.begin = semaphore_begin,
                    .stop = lk__joint_stop,
                    .remove_callbacks = lk__joint_remove_callbacks,
                    .ref = lk__joint_ref_acquisition,
                    .unref = lk__joint_unref_acquisition},
    .try_grant = semaphore_joint_try_grant,
    .before_stop = semaphore_before_stop,
    .after_stop = semaphore_after_stop};

/* Make an acquisition; `arg` is for the callbacks. NULL: no memory. `plan`
   must stay until the acquisition was stopped, has ended or was lost. */
static lk_semaphore_acquisition *
semaphore_acquisition_new(lk_session_lease *lease, lk_semaphore_plan *plan,
                          const lk_acquisition_callbacks *callbacks, void *arg)
{
  lk_semaphore_acquisition *s =
      lk__mem_new(&lease->mem, sizeof *s + lk__joint_room(plan->take));

  if (s == NULL)
    return NULL;
  lk__joint_init(&s->joint, &semaphore_kind, lease, callbacks, arg, s + 1,
                 plan->take);
  s->joint.fail_on_expiry = plan->fail_on_expiry;
  s->plan = plan;
  s->limit.pause = (lk_timer){.fire = lk__permit_limit_on_timer, .arg = s};
  return s;
}

/* ---- creation of the lock ------------------------------------------------ */

static lk_acquisition *
semaphore_acquisition_make(lk_lock *l,
                           const lk_acquisition_callbacks *callbacks)
{
  lk_semaphore_plan *p = l->source.plan;

  p->queue_node.once = l->options.contender.once;
  p->counting.once = l->options.contender.once;
  lk_semaphore_acquisition *acquisition =
      semaphore_acquisition_new(l->lease, p, callbacks, l);

  return acquisition == NULL ? NULL : &acquisition->joint.acquisition;
}

/* Only Curator's layout has a `limit_path`. With it the number of permits may
 * grow, so `take` may exceed it. */
static bool semaphore_config_is_valid(const lk_semaphore_config *o,
                                      lk_layout layout)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);

  return rules != NULL && rules->permit != NULL && o->permits >= 1 &&
         o->permits <= MAX_PERMITS && o->take >= 0 && o->take <= MAX_TAKE &&
         (o->limit_path != NULL ? layout == LK_LAYOUT_CURATOR
                                : o->take <= o->permits);
}

/* Write `dir` followed by `name` at `*at`, and advance `*at`. */
static const char *semaphore_plan_put_path(char **at, const char *dir,
                                           const char *name)
{
  char *path = *at;

  *at += sprintf(path, "%s%s", dir, name) + 1;
  return path;
}

/* In Curator's layout, queue and permits have directories below `path`. */
static void semaphore_plan_set_curator(lk_semaphore_plan *p, const char *path,
                                       const char *limit)
{
  char *at = p->paths;

  p->queue_node.dir = semaphore_plan_put_path(&at, path, "/locks");
  p->permit.dir = semaphore_plan_put_path(&at, path, "/leases");
  if (limit != NULL)
    p->limit_path = semaphore_plan_put_path(&at, limit, "");
}

/* In kazoo's layout the permits are children of `path`, and the directory of
 * the queue is a sibling of `path`. */
static void semaphore_plan_set_kazoo(lk_semaphore_plan *p, const char *path)
{
  char *at = p->paths;

  p->queue_node.dir = semaphore_plan_put_path(&at, path, "-__lock__");
  p->permit.dir = semaphore_plan_put_path(&at, path, "");
  p->limit_path = p->permit.dir;
  snprintf(p->limit_digits, sizeof p->limit_digits, "%d", (int)p->limit);
  p->limit_text = lk_text(p->limit_digits);
}

static lk_semaphore_plan *semaphore_plan_new(const lk_mem *mem,
                                             const char *path, lk_layout layout,
                                             const lk_semaphore_config *o)
{
  size_t limit_path_size =
      o->limit_path == NULL ? 0 : strlen(o->limit_path) + 1;
  size_t queue_path_size = strlen(path) + sizeof "-__lock__";
  size_t permits_path_size = strlen(path) + sizeof "/leases";
  lk_semaphore_plan *p = lk__mem_new(
      mem, sizeof *p + queue_path_size + permits_path_size + limit_path_size);

  if (p == NULL)
    return NULL;
  p->take = o->take == 0 ? 1 : (size_t)o->take;
  p->permits = o->permits;
  p->limit = o->permits;
  if (layout == LK_LAYOUT_KAZOO)
    semaphore_plan_set_kazoo(p, path);
  else
    semaphore_plan_set_curator(p, path, o->limit_path);
  return p;
}

static lk_contender_config semaphore_contender_config(const lk_lock *l,
                                                      const lk_role *role,
                                                      const char *dir)
{
  lk_contender_config c = l->options.contender;

  c.role = role;
  c.dir = dir;
  /* A contender ends with its session. Then the acquisition begins again as a
   * whole, unless the caller's fail_on_expiry is set. */
  c.fail_on_expiry = true;
  c.peek = false; /* queue and permit nodes are created in one write */
  if (role->is_permit)
    c.max_queue = 0; /* the option is for the queue node */
  return c;
}

static int semaphore_clone(lk_lock **out, const lk_lock *l,
                           const lk_lock_config *config)
{
  const lk_semaphore_plan *p = l->source.plan;
  bool has_limit_path = l->options.layout == LK_LAYOUT_CURATOR;
  const lk_semaphore_config options = {
      .size = sizeof options,
      .permits = p->permits,
      .take = (int32_t)p->take,
      .limit_path = has_limit_path ? p->limit_path : NULL};

  return lk_semaphore_new(out, l->lease->client, lk_lock_path(l), config,
                          &options);
}

static void semaphore_use_plan(lk_lock *l, lk_semaphore_plan *plan)
{
  l->not_reentrant = true;
  l->source.make = semaphore_acquisition_make;
  l->source.plan = plan;
  l->source.clone = semaphore_clone;
  plan->fail_on_expiry = l->options.contender.fail_on_expiry;
  plan->queue_node = semaphore_contender_config(l, l->options.contender.role,
                                                plan->queue_node.dir);
  /* The permit nodes are created later, and their creates prove the lease. */
  plan->queue_node.needs_no_lease = true;
  plan->permit =
      semaphore_contender_config(l, l->options.rules->permit, plan->permit.dir);
  plan->permit.identity = l->options.rules->permit_identity;
  plan->permit.dir_data = plan->limit_text;
  plan->counting = plan->permit;
  plan->counting.limit = &plan->limit;
}

int lk_semaphore_new(lk_lock **out, lk_client *client, const char *path,
                     const lk_lock_config *config,
                     const lk_semaphore_config *options)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_semaphore_config);
  lk_semaphore_config permits;
  lk_lock_config lock_config;
  int err = lk__lock_config_copy(client, &lock_config, config);

  *out = NULL;
  if (err == 0)
    err = lk__client_copy_options(client, &sized, &permits, options);
  if (err != 0)
    return err;
  if (!semaphore_config_is_valid(&permits, lock_config.layout))
    return LK_ERR_BAD_ARGUMENT;
  if (permits.limit_path != NULL && lk_path_check(permits.limit_path) != 0)
    return LK_ERR_BAD_PATH;
  err = lk__lock_make(out, client, path, &lock_config, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  lk_semaphore_plan *p = semaphore_plan_new(lk_client_mem(client), path,
                                            lock_config.layout, &permits);

  if (p == NULL) {
    lk_lock_free(*out);
    *out = NULL;
    return LK_ERR_NO_MEMORY;
  }
  semaphore_use_plan(*out, p);
  return 0;
}
