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
  object *o = arg;

  if (l != o->lock)
    o = o->partner;
  print_line(o->name, "lock %s err=%s position=%zu node=%s deadline=%" PRId64,
             event_word(event->type), error_word(event->err), event->position,
             event->node == NULL ? "none" : event->node, event->deadline_ms);
}

object *option_owner(const command *cmd)
{
  const char *owner = option(cmd, "client");
  object *client = object_find(owner == NULL ? "" : owner);

  if (client == NULL)
    print_line(cmd->tag, "refused=no_such_client");
  return client;
}

lk_lock_config option_lock(const command *cmd, object *o)
{
  return (lk_lock_config){
      .size = sizeof(lk_lock_config),
      .data = option_bytes(cmd, "data"),
      .acl = option_acl(cmd, "acl"),
      .parent_acl = option_acl(cmd, "parent_acl"),
      .persistent_parents = option_number(cmd, "persistent", 0) != 0,
      .unsure_when_suspended = option_number(cmd, "unsure_early", 0) != 0,
      .revocable = option_number(cmd, "revocable", 0) != 0,
      .fail_on_expiry = option_number(cmd, "fail_on_expiry", 0) != 0,
      .max_queue = (size_t)option_number(cmd, "max_queue", 0),
      .peek = option_number(cmd, "peek", 0) != 0,
      .announce = option_number(cmd, "announce", 0) != 0,
      .layout = (lk_layout)option_number(cmd, "layout", 0),
      .prefix = option(cmd, "prefix"),
      .on_event = on_event,
      .arg = o,
  };
}

static void execute_lock(const command *cmd, object *none)
{
  object *client = option_owner(cmd), *o;

  (void)none;
  if (client == NULL)
    return;
  o = object_new(cmd->name);
  lk_lock_config config = option_lock(cmd, o);
  int err = lk_lock_new(&o->lock, client->client, option_path(cmd), &config);

  o->client = client->client;
  if (err != 0)
    object_forget(o);
  print_line(cmd->tag, err == 0 ? "err=%s" : "refused=%s", error_word(err));
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

  report_refusal(
      cmd,
      lk_lock_acquire(o->lock, option_number(cmd, "wait", -1), on_done, tag),
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
  void *tag = option_number(cmd, "wait", 1) != 0 ? copy_tag(cmd) : NULL;
  int err = lk_lock_release_until(o->lock, LK_NO_LIMIT,
                                  tag == NULL ? NULL : on_done, tag);

  if (err == 0 && tag == NULL)
    print_line(cmd->tag, "err=0");
  report_refusal(cmd, err, tag);
}

/* Release and acquire without returning to the loop. */
static void execute_reacquire(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  int err = lk_lock_release(o->lock, NULL, NULL);

  if (err == 0)
    err =
        lk_lock_acquire(o->lock, option_number(cmd, "wait", -1), on_done, tag);
  report_refusal(cmd, err, tag);
}

static void execute_verify(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);

  report_refusal(cmd, lk_lock_verify(o->lock, on_done, tag), tag);
}

static void on_guarded(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *tag)
{
  (void)c;
  print_line(tag, "err=%s count=%zu version=%" PRId32, error_word(err), count,
             count > 0 && results[0].stat != NULL ? results[0].stat->version
                                                  : -1);
  free(tag);
}

static void execute_guarded(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  lk_op op = lk_op_set(option_path(cmd), option_bytes(cmd, "data"),
                       (int32_t)option_number(cmd, "version", -1));

  report_refusal(
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

/* ---- many turns at once ------------------------------------------------- */

typedef struct cycle {
  void *tag;
  long long left;
  int64_t wait_ms;
  uint64_t token;
  unsigned counts[3]; /* granted, timed out, failed */
} cycle;

static void cycle_continue(lk_lock *l, cycle *y);

static void on_cycle_acquired(lk_lock *l, int err, void *arg)
{
  cycle *y = arg;

  if (err == 0) {
    if (lk_lock_token(l) <= y->token)
      print_line(y->tag, "token went backwards");
    y->token = lk_lock_token(l);
    y->counts[0]++;
    lk_lock_release(l, NULL, NULL);
  } else {
    y->counts[err == LK_ERR_DEADLINE || err == LK_ERR_BUSY ? 1 : 2]++;
  }
  cycle_continue(l, y);
}

static void cycle_continue(lk_lock *l, cycle *y)
{
  int err = 0;

  if (y->left-- > 0 &&
      (err = lk_lock_acquire(l, y->wait_ms, on_cycle_acquired, y)) == 0)
    return;
  print_line(y->tag, "err=%s granted=%u missed=%u failed=%u", error_word(err),
             y->counts[0], y->counts[1], y->counts[2]);
  free(y->tag);
  free(y);
}

/* Acquire and release `turns` times. */
static void execute_cycle(const command *cmd, object *o)
{
  cycle *y = calloc(1, sizeof *y);

  if (y == NULL)
    abort();
  y->tag = copy_tag(cmd);
  y->left = option_number(cmd, "turns", 1);
  y->wait_ms = option_number(cmd, "wait", -1);
  cycle_continue(o->lock, y);
}

const verb lock_verbs[] = {
    {"lock", execute_lock},           {"acquire", execute_acquire},
    {"cancel", execute_cancel},       {"release", execute_release},
    {"reacquire", execute_reacquire}, {"verify", execute_verify},
    {"guarded", execute_guarded},     {"inspect", execute_inspect},
    {"cycle", execute_cycle},         {NULL, NULL},
};
