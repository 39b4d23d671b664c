/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/support/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *event_word(lk_lock_event_type type)
{
  switch (type) {
  case LK_LOCK_EVENT_WAITING: return "waiting";
  case LK_LOCK_EVENT_PLACE_LOST: return "place_lost";
  case LK_LOCK_EVENT_SUSPENDED: return "suspended";
  case LK_LOCK_EVENT_UNSURE: return "unsure";
  case LK_LOCK_EVENT_RENEWED: return "held";
  case LK_LOCK_EVENT_LOST: return "lost";
  case LK_LOCK_EVENT_MIXED_QUEUE: return "mixed_queue";
  case LK_LOCK_EVENT_UNWATCHED: return "unwatched";
  case LK_LOCK_EVENT_REVOKED: return "revoked";
  }
  return "unknown";
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  object *o = arg; /* of a read-write lock: the object of the read side */

  if (l != o->lock)
    o = o->partner;
  print_line(o->name, "lock %s err=%s position=%zu node=%s deadline=%" PRId64,
             event_word(event->type), error_word(event->err), event->position,
             event->node == NULL ? "none" : event->node, event->deadline_ms);
}

lk_client *option_client(const command *cmd)
{
  const char *name = option(cmd, "client");
  object *o = object_find(name == NULL ? "" : name);

  if (o == NULL) {
    print_line(cmd->tag, "refused=no_such_client");
    return NULL;
  }
  return o->client;
}

lk_lock_config option_lock(const command *cmd, object *o)
{
  return (lk_lock_config){
      .size = sizeof(lk_lock_config),
      .data = option_bytes(cmd, "data"),
      .acl = option_acl(cmd, "acl"),
      .parent_acl = option_acl(cmd, "parent_acl"),
      .persistent_parents = option_flag(cmd, "persistent"),
      .unsure_when_suspended = option_flag(cmd, "unsure_early"),
      .revocable = option_flag(cmd, "revocable"),
      .fail_on_expiry = option_flag(cmd, "fail_on_expiry"),
      .max_queue = (size_t)option_number(cmd, "max_queue", 0),
      .peek = option_flag(cmd, "peek"),
      .layout = (lk_layout)option_number(cmd, "layout", 0),
      .prefix = option(cmd, "prefix"),
      .on_event = on_event,
      .arg = o,
  };
}

static void execute_lock(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);
  object *o;

  (void)none;
  if (client == NULL)
    return;
  o = object_new(cmd->name);
  lk_lock_config config = option_lock(cmd, o);
  int err = lk_lock_new(&o->lock, client, option_path(cmd), &config);

  o->client = client;
  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

void object_free_lock(object *o)
{
  lk_lock *l = o->lock;

  if (o->rwlock != NULL) {
    lk_rwlock_free(o->rwlock);
    object_forget(o->partner);
  } else {
    lk_lock_free(l);
  }
  object_forget(o);
}

/* `wait_ms` 0: try, with the next connection if there is none. */
static int acquire_or_try(lk_lock *l, int64_t wait_ms, lk_lock_cb done,
                          void *arg)
{
  return wait_ms == 0 ? lk_lock_try_until(l, LK_NO_LIMIT, done, arg)
                      : lk_lock_acquire(l, wait_ms, done, arg);
}

/* Print the result of an acquire, a release or a verify. */
static void on_done(lk_lock *l, int err, void *tag)
{
  const char *node = lk_lock_node(l);

  print_line(tag, "err=%s token=%" PRIu64 " node=%s deadline=%" PRId64,
             error_word(err), lk_lock_token(l), node == NULL ? "none" : node,
             lk_lock_deadline(l));
  free(tag);
}

static void execute_acquire(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);

  report_if_refused(cmd,
                    acquire_or_try(o->lock,
                                   option_number(cmd, "wait", LK_NO_LIMIT),
                                   on_done, tag),
                    tag);
}

static void execute_cancel(const command *cmd, object *o)
{
  lk_lock_cancel(o->lock);
  print_line(cmd->tag, "err=0");
}

/* The release has no time limit, unlike lk_lock_release(), since tests stop
 * servers for a long time. With `wait=0` the command completes at once. */
static void execute_release(const command *cmd, object *o)
{
  bool waits = option_number(cmd, "wait", 1) != 0;
  void *tag = waits ? copy_tag(cmd) : NULL;
  int err =
      lk_lock_release_until(o->lock, LK_NO_LIMIT, waits ? on_done : NULL, tag);

  if (err == 0 && !waits)
    print_line(cmd->tag, "err=0");
  report_if_refused(cmd, err, tag);
}

/* Release and acquire without returning to the loop. */
static void execute_reacquire(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  int err = lk_lock_release(o->lock, NULL, NULL);

  if (err == 0)
    err = lk_lock_acquire(o->lock, option_number(cmd, "wait", LK_NO_LIMIT),
                          on_done, tag);
  report_if_refused(cmd, err, tag);
}

static void execute_verify(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);

  report_if_refused(cmd, lk_lock_verify(o->lock, on_done, tag), tag);
}

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *tag)
{
  int32_t version = -1; /* there is no stat of the node that was set */

  (void)c;
  if (count > 0 && results[0].stat != NULL)
    version = results[0].stat->version;
  print_line(tag, "err=%s count=%zu version=%" PRId32, error_word(err), count,
             version);
  free(tag);
}

static void execute_guarded(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_op op = lk_op_set(option_path(cmd), option_bytes(cmd, "data"),
                       option_version(cmd));

  report_if_refused(
      cmd, lk_lock_guarded_multi(o->lock, &op, 1, NULL, on_guarded, tag), tag);
}

static const char *state_word(lk_lock_state state)
{
  switch (state) {
  case LK_LOCK_IDLE: return "idle";
  case LK_LOCK_ACQUIRING: return "acquiring";
  case LK_LOCK_HELD: return "held";
  case LK_LOCK_UNSURE: return "unsure";
  case LK_LOCK_LOST: return "lost";
  }
  return "unknown";
}

static void execute_inspect(const command *cmd, object *o)
{
  lk_lock *l = o->lock;
  const char *node = lk_lock_node(l);
  bool ok = lk_lock_ok(l);

  print_line(cmd->tag,
             "err=0 state=%s ok=%d deadline=%" PRId64 " token=%" PRIu64
             " node=%s count=%zu",
             state_word(lk_lock_get_state(l)), ok, lk_lock_deadline(l),
             lk_lock_token(l), node == NULL ? "none" : node, lk_lock_count(l));
}

/* ---- repeated acquires --------------------------------------------------- */

typedef struct cycle {
  void *tag;
  long long acquires_left;
  int64_t wait_ms;
  uint64_t last_token;
  unsigned granted, missed, failed; /* missed: busy, or not granted in time */
} cycle;

static void acquire_again_or_report(lk_lock *l, cycle *c);

static void on_cycle_acquired(lk_lock *l, int err, void *arg)
{
  cycle *c = arg;

  if (err == 0) {
    if (lk_lock_token(l) <= c->last_token)
      print_line(c->tag, "token went backwards");
    c->last_token = lk_lock_token(l);
    c->granted++;
    lk_lock_release(l, NULL, NULL);
  } else if (err == LK_ERR_DEADLINE || err == LK_ERR_BUSY) {
    c->missed++;
  } else {
    c->failed++;
  }
  acquire_again_or_report(l, c);
}

static void acquire_again_or_report(lk_lock *l, cycle *c)
{
  int err = 0;

  if (c->acquires_left > 0) {
    c->acquires_left--;
    err = acquire_or_try(l, c->wait_ms, on_cycle_acquired, c);
    if (err == 0)
      return;
  }
  print_line(c->tag, "err=%s granted=%u missed=%u failed=%u", error_word(err),
             c->granted, c->missed, c->failed);
  free(c->tag);
  free(c);
}

/* Acquire and release `turns` times. */
static void execute_cycle(const command *cmd, object *o)
{
  cycle *c = calloc(1, sizeof *c);

  if (c == NULL)
    abort();
  c->tag = copy_tag(cmd);
  c->acquires_left = option_number(cmd, "turns", 1);
  c->wait_ms = option_number(cmd, "wait", LK_NO_LIMIT);
  acquire_again_or_report(o->lock, c);
}

const verb lock_verbs[] = {
    {"lock", execute_lock},           {"acquire", execute_acquire},
    {"cancel", execute_cancel},       {"release", execute_release},
    {"reacquire", execute_reacquire}, {"verify", execute_verify},
    {"guarded", execute_guarded},     {"inspect", execute_inspect},
    {"cycle", execute_cycle},         {NULL, NULL},
};
