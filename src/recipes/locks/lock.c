/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/locks/lock.h"

#include "base/acl.h"
#include "base/mem.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/lease_deadline.h"

/* ---- options ------------------------------------------------------------- */

/* Only plain names can have a prefix. */
static bool layout_is_valid(const lk_lock_config *config)
{
  const lk_layout_rules *rules = lk__layout_rules(config->layout);

  if (rules == NULL)
    return false;
  return rules->has_prefix ? lk__plain_prefix_is_valid(config->prefix)
                           : config->prefix == NULL;
}

int lk__lock_config_copy(const lk_client *c, lk_lock_config *out,
                         const lk_lock_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_lock_config);

  return lk__client_copy_options(c, &sized, out, config);
}

static bool path_is_root(const char *path)
{
  return strcmp(path, "/") == 0;
}

/* In the root, beside all other nodes, names must have a prefix that the caller
 * can choose. */
static bool layout_fits_root(const lk_lock_config *config)
{
  return lk__layout_rules(config->layout)->has_prefix &&
         (config->prefix == NULL || config->prefix[0] != '\0');
}

/* Check path and options: 0, LK_ERR_BAD_ARGUMENT, LK_ERR_BAD_PATH. */
static int lock_options_check(const char *path, const lk_lock_config *config)
{
  if (lk__is_revocation(config->data) || !layout_is_valid(config))
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0 ||
      (path_is_root(path) && !layout_fits_root(config)))
    return LK_ERR_BAD_PATH;
  return 0;
}

/* The role that contenders of `side` have in the queue. */
static const lk_role *lock_options_role(const lk_lock_options *o,
                                        lk_multilock_side side)
{
  const lk_role *role = o->rules->roles[side];

  return role == NULL ? &o->plain.role : role;
}

/* A copy of `data`. It is a byte longer, so that there is one of no data. */
static char *copy_data(const lk_mem *mem, lk_bytes data)
{
  char *to = lk__mem_new(mem, data.len + 1);

  if (to != NULL && data.len > 0)
    memcpy(to, data.at, data.len);
  return to;
}

static bool is_copied(const void *copy, const void *original)
{
  return copy != NULL || original == NULL;
}

/* Copy path and options to `o`, which is zeroed. false: no memory; the caller
 * must then call lock_options_free() for the copies made so far. */
static bool lock_options_init(lk_lock_options *o, const lk_mem *mem,
                              const char *path, const lk_lock_config *config,
                              lk_multilock_side side)
{
  const lk_acls *parent =
      config->parent_acl == NULL ? config->acl : config->parent_acl;

  o->path = lk__mem_text(mem, path);
  o->data = copy_data(mem, config->data);
  if (config->prefix != NULL)
    o->prefix = lk__mem_text(mem, config->prefix);
  if (config->acl != NULL)
    o->acl = lk__acls_copy(mem, config->acl);
  if (parent != NULL)
    o->parent_acl = lk__acls_copy(mem, parent);
  o->layout = config->layout;
  o->rules = lk__layout_rules(config->layout);
  lk__plain_names_init(&o->plain, o->prefix);
  o->contender = (lk_contender_config){
      .machine = &lk__queue_machine,
      .role = lock_options_role(o, side),
      .identity = o->rules->identity,
      .dir = path_is_root(path) ? "" : o->path,
      .data = lk_bytes_of(o->data, config->data.len),
      .acl = o->acl,
      .parent_acl = o->parent_acl,
      .persistent_parents = config->persistent_parents || !o->rules->containers,
      .unsure_when_suspended = config->unsure_when_suspended,
      .fail_on_expiry = config->fail_on_expiry,
      .revocable = config->revocable,
      .max_queue = config->max_queue,
      .peek = config->peek};
  return o->path != NULL && o->data != NULL &&
         is_copied(o->prefix, config->prefix) &&
         is_copied(o->acl, config->acl) && is_copied(o->parent_acl, parent);
}

static void lock_options_free(lk_lock_options *o, const lk_mem *mem)
{
  lk__mem_free(mem, o->path);
  lk__mem_free(mem, o->data);
  lk__mem_free(mem, o->prefix);
  lk__mem_free(mem, o->acl);
  lk__mem_free(mem, o->parent_acl);
}

/* ---- callbacks of the user ----------------------------------------------- */

/* Free a handle that has no acquisition. */
static void lock_destroy(lk_lock *l)
{
  lk_session_lease *lease = l->lease;

  lock_options_free(&l->options, &lease->mem);
  lk__mem_free(&lease->mem, l->source.plan);
  lk__mem_free(&lease->mem, l);
  lk__client_unref(lease->client);
}

void lk__lock_enter(lk_lock *l)
{
  l->callbacks_running++;
}

void lk__lock_leave(lk_lock *l)
{
  if (--l->callbacks_running == 0 && l->freeing)
    lock_destroy(l);
}

/* Report an event to the user. */
static void lock_notify(lk_lock *l, const lk_lock_event *event)
{
  lk__lock_enter(l);
  if (l->on_event != NULL && !l->freeing)
    l->on_event(l, event, l->arg);
  lk__lock_leave(l);
}

void lk__completion_set(lk_completion *completion, lk_lock_cb done, void *arg)
{
  *completion = (lk_completion){.done = done, .arg = arg, .pending = true};
}

void lk__lock_complete(lk_lock *l, lk_completion *completion, int err)
{
  lk_completion copy = *completion; /* the callback may set it anew */

  completion->pending = false;
  if (copy.pending && copy.done != NULL)
    copy.done(l, err, copy.arg);
}

void lk__lock_complete_verify(lk_lock *l, int err)
{
  if (l->verifying != NULL)
    l->verifying->lock = NULL;
  l->verifying = NULL;
  lk__lock_enter(l);
  lk__lock_complete(l, &l->verify, err);
  lk__lock_leave(l);
}

/* A callback may have lost or released the lock and begun a new acquire. That
 * acquire does not reenter, and is not completed here. */
void lk__lock_complete_reentry(lk_lock *l, int err)
{
  if (l->acquire_reenters)
    lk__lock_complete(l, &l->acquire, err);
}

void lk__lock_complete_without_reply(lk_lock *l, int acquire_err)
{
  lk_timer_stop(l->lease->client, &l->timers.next_turn);
  lk__lock_complete_reentry(l, acquire_err);
  if (l->released == NULL)
    lk__lock_complete(l, &l->release, 0);
}

/* ---- the acquisition ----------------------------------------------------- */

bool lk__lock_holds(const lk_lock *l)
{
  return l->acquisition != NULL && lk__acquisition_holds(l->acquisition);
}

bool lk__lock_is_forked(const lk_lock *l)
{
  return lk__client_is_forked(l->lease->client);
}

void lk__lock_start_timer(lk_lock *l, lk_timer *t, int64_t in_ms)
{
  lk_session_lease *lease = l->lease;

  lk_timer_start(lease->client, t, lk_client_clock(lease->client) + in_ms);
}

static void lock_stop_timer(lk_lock *l, lk_timer *t)
{
  lk_timer_stop(l->lease->client, t);
}

lk_acquisition *
lk__lock_make_contender(lk_lock *l, const lk_acquisition_callbacks *callbacks)
{
  lk_contender *ct =
      lk__contender_new(l->lease, &l->options.contender, callbacks, l);

  return ct == NULL ? NULL : &ct->acquisition;
}

/* The acquire is over: it has no deadline any more, and, if it is a try, does
 * not depend on the connection any more. */
static void lock_lift_limits(lk_lock *l)
{
  lock_stop_timer(l, &l->timers.acquire);
  lk_client_detach(l->lease->client, &l->try_listener);
}

lk_acquisition *lk__lock_detach_acquisition(lk_lock *l)
{
  lk_acquisition *a = l->acquisition;

  l->acquisition = NULL;
  lock_lift_limits(l);
  return a;
}

void lk__lock_stop_acquisition(lk_acquisition *a)
{
  a->kind->stop(a, LK_NO_GONE_REPORT);
}

void lk__lock_stop_acquisition_and_report(lk_acquisition *a)
{
  a->kind->stop(a, LK_GONE_REPORT);
}

void lk__lock_give_up(lk_lock *l, int err)
{
  lk_acquisition *a = lk__lock_detach_acquisition(l);

  lk__lock_enter(l);
  if (a != NULL)
    lk__lock_stop_acquisition(a);
  lk__lock_complete(l, &l->acquire, err);
  lk__lock_leave(l);
}

/* The released acquisition continues its cleanup by itself, and does not invoke
 * a callback any more. */
static void lock_forget_released(lk_lock *l)
{
  if (l->released != NULL)
    l->released->kind->remove_callbacks(l->released);
  l->released = NULL;
  lock_stop_timer(l, &l->timers.release);
}

/* ---- limits of calls ----------------------------------------------------- */

/* The connection, or the session, is lost during a try. When the client ends,
 * its lease has ended the try before. */
static void on_state_during_try(lk_client *c, lk_state state, int err,
                                void *arg)
{
  (void)c;
  (void)err;
  if (state == LK_STATE_SUSPENDED || state == LK_STATE_EXPIRED)
    lk__lock_give_up(arg, LK_ERR_NOT_CONNECTED);
}

static void on_acquire_timeout(lk_client *c, void *arg)
{
  (void)c;
  lk__lock_give_up(arg, LK_ERR_DEADLINE);
}

static void on_release_timeout(lk_client *c, void *arg)
{
  lk_lock *l = arg;

  (void)c;
  lk__lock_enter(l);
  lock_forget_released(l);
  lk__lock_complete(l, &l->release, LK_ERR_DEADLINE);
  lk__lock_leave(l);
}

static void on_next_turn(lk_client *c, void *arg)
{
  lk_lock *l = arg;

  (void)c;
  lk__lock_enter(l);
  lk__lock_complete_without_reply(l, 0);
  lk__lock_leave(l);
}

/* ---- creation ------------------------------------------------------------ */

static int mutex_clone(lk_lock **out, const lk_lock *l,
                       const lk_lock_config *config)
{
  return lk_lock_new(out, l->lease->client, l->options.path, config);
}

int lk__lock_make(lk_lock **out, lk_client *c, const char *path,
                  const lk_lock_config *config, lk_multilock_side side)
{
  *out = NULL;
  int err = lock_options_check(path, config);

  if (err != 0)
    return err;
  if (!lk__layout_has_side(lk__layout_rules(config->layout), side))
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *lease = lk__lease_get_or_new(c);
  lk_lock *l = lease == NULL ? NULL : lk__mem_new(&lease->mem, sizeof *l);

  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  l->lease = lease;
  lk__client_ref(lease->client);
  l->timers.acquire = (lk_timer){.fire = on_acquire_timeout, .arg = l};
  l->timers.release = (lk_timer){.fire = on_release_timeout, .arg = l};
  l->timers.next_turn = (lk_timer){.fire = on_next_turn, .arg = l};
  l->try_listener = (lk_listener){
      .size = sizeof(lk_listener), .state = on_state_during_try, .arg = l};
  l->source.make = lk__lock_make_contender;
  l->source.clone = side == LK_MULTILOCK_MUTEX ? mutex_clone : NULL;
  l->on_event = config->on_event;
  l->arg = config->arg;
  if (!lock_options_init(&l->options, &lease->mem, path, config, side)) {
    lock_destroy(l);
    return LK_ERR_NO_MEMORY;
  }
  *out = l;
  return 0;
}

lk_lock_config lk__lock_config_of(const lk_lock *l)
{
  const lk_lock_options *o = &l->options;
  const lk_contender_config *ct = &o->contender;

  return (lk_lock_config){.size = sizeof(lk_lock_config),
                          .data = ct->data,
                          .acl = o->acl,
                          .parent_acl = o->parent_acl,
                          .persistent_parents = ct->persistent_parents,
                          .unsure_when_suspended = ct->unsure_when_suspended,
                          .fail_on_expiry = ct->fail_on_expiry,
                          .revocable = ct->revocable,
                          .max_queue = ct->max_queue,
                          .peek = ct->peek,
                          .layout = o->layout,
                          .prefix = o->prefix};
}

int lk_lock_new(lk_lock **out, lk_client *client, const char *path,
                const lk_lock_config *config)
{
  lk_lock_config options;
  int err = lk__lock_config_copy(client, &options, config);

  *out = NULL;
  if (err != 0)
    return err;
  return lk__lock_make(out, client, path, &options, LK_MULTILOCK_MUTEX);
}

int lk_lock_clone(lk_lock **out, const lk_lock *l, lk_lock_event_cb on_event,
                  void *arg)
{
  lk_lock_config config = lk__lock_config_of(l);

  *out = NULL;
  if (l->source.clone == NULL)
    return LK_ERR_BAD_ARGUMENT;
  config.on_event = on_event;
  config.arg = arg;
  return l->source.clone(out, l, &config);
}

/* ---- events of the acquisition ------------------------------------------- */

static void on_acquire_granted(void *arg)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lock_lift_limits(l);
  l->count = 1;
  lk__lock_complete(l, &l->acquire, 0);
  lk__lock_leave(l);
}

static void on_acquire_ended(void *arg, int err)
{
  lk_lock *l = arg;

  (void)lk__lock_detach_acquisition(l);
  l->start_err = err;
  lk__lock_enter(l);
  lk__lock_complete(l, &l->acquire, err);
  lk__lock_leave(l);
}

static void on_lock_lost(void *arg, int err)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = LK_LOCK_EVENT_LOST, .err = err};

  lk__lock_enter(l);
  (void)lk__lock_detach_acquisition(l);
  l->lost = true;
  lock_notify(l, &event);
  lk__lock_complete_verify(l, LK_ERR_LOST);
  lk__lock_complete_without_reply(l, LK_ERR_LOST);
  lk__lock_leave(l);
}

static void on_node_gone(void *arg, int err)
{
  lk_lock *l = arg;

  lk__lock_enter(l);
  lock_stop_timer(l, &l->timers.release);
  l->released = NULL;
  lk__lock_complete(l, &l->release, err);
  lk__lock_leave(l);
}

/* The event by which a notice is reported. */
static lk_lock_event_type lock_event_type(lk_notice_type type)
{
  switch (type) {
  case LK_NOTICE_WAITING: return LK_LOCK_EVENT_WAITING;
  case LK_NOTICE_PLACE_LOST: return LK_LOCK_EVENT_PLACE_LOST;
  case LK_NOTICE_MIXED_QUEUE: return LK_LOCK_EVENT_MIXED_QUEUE;
  case LK_NOTICE_SUSPENDED: return LK_LOCK_EVENT_SUSPENDED;
  case LK_NOTICE_UNSURE: return LK_LOCK_EVENT_UNSURE;
  case LK_NOTICE_LEASE_PROVEN: return LK_LOCK_EVENT_RENEWED;
  case LK_NOTICE_REVOKED: return LK_LOCK_EVENT_REVOKED;
  case LK_NOTICE_UNWATCHED: return LK_LOCK_EVENT_UNWATCHED;
  case LK_NOTICE_COUNTER_NEAR_END: break; /* on_notice() logs it instead */
  }
  return LK_LOCK_EVENT_UNWATCHED;
}

/* The mark of a notice that is reported only once; NULL: it is reported each
 * time. */
static bool *lock_reported_mark(lk_lock *l, lk_notice_type type)
{
  switch (type) {
  case LK_NOTICE_MIXED_QUEUE: return &l->reported.mixed_queue;
  case LK_NOTICE_UNWATCHED: return &l->reported.unwatched;
  case LK_NOTICE_COUNTER_NEAR_END: return &l->reported.counter_near_end;
  case LK_NOTICE_WAITING:
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_SUSPENDED:
  case LK_NOTICE_UNSURE:
  case LK_NOTICE_LEASE_PROVEN:
  case LK_NOTICE_REVOKED: break;
  }
  return NULL;
}

static void on_notice(void *arg, const lk_notice *notice)
{
  lk_lock *l = arg;
  lk_lock_event event = {.type = lock_event_type(notice->type),
                         .err = notice->err,
                         .position = notice->position,
                         .node = notice->node,
                         .deadline_ms = notice->deadline_ms};
  bool *reported = lock_reported_mark(l, notice->type);

  if (reported != NULL) {
    if (*reported)
      return;
    *reported = true;
  }
  if (notice->type == LK_NOTICE_COUNTER_NEAR_END)
    lk_client_log(l->lease->client, LK_LOG_WARNING, LK_ERR_SEQ_UNSAFE,
                  "a queue's sequence counter is past half of its range: let "
                  "the queue run empty and delete its directory");
  else
    lock_notify(l, &event);
}

const lk_acquisition_callbacks lk__lock_callbacks = {
    .granted = on_acquire_granted,
    .ended = on_acquire_ended,
    .lost = on_lock_lost,
    .notice = on_notice,
    .gone = on_node_gone,
};

/* ---- queries ------------------------------------------------------------- */

/* A forked child holds nothing: the session is its parent's. */
static bool lock_is_held_here(const lk_lock *l)
{
  return lk__lock_holds(l) && !lk__lock_is_forked(l);
}

lk_lock_state lk_lock_get_state(const lk_lock *l)
{
  if (lk__lock_is_forked(l))
    return LK_LOCK_IDLE;
  if (l->acquisition == NULL)
    return l->lost ? LK_LOCK_LOST : LK_LOCK_IDLE;
  if (!lk__lock_holds(l))
    return LK_LOCK_ACQUIRING;
  return lk__acquisition_is_unsure(l->acquisition) ? LK_LOCK_UNSURE
                                                   : LK_LOCK_HELD;
}

bool lk_lock_ok(const lk_lock *l)
{
  return lk_lock_get_state(l) == LK_LOCK_HELD &&
         lk_client_clock(l->lease->client) <
             lk__acquisition_deadline(l->acquisition);
}

int64_t lk_lock_deadline(const lk_lock *l)
{
  return lock_is_held_here(l) ? lk__acquisition_deadline(l->acquisition)
                              : LK_NO_LEASE;
}

uint64_t lk_lock_token(const lk_lock *l)
{
  return lock_is_held_here(l) ? lk__acquisition_token(l->acquisition) : 0;
}

const char *lk_lock_node(const lk_lock *l)
{
  return l->acquisition == NULL || lk__lock_is_forked(l)
             ? NULL
             : lk__acquisition_node_path(l->acquisition);
}

const char *lk_lock_path(const lk_lock *l)
{
  return l->options.path;
}

size_t lk_lock_count(const lk_lock *l)
{
  return lk__lock_is_forked(l) ? 0 : l->count;
}

/* ---- texts --------------------------------------------------------------- */

const char *lk_lock_state_text(lk_lock_state state)
{
  switch (state) {
  case LK_LOCK_IDLE: return "idle";
  case LK_LOCK_ACQUIRING: return "acquiring";
  case LK_LOCK_HELD: return "held";
  case LK_LOCK_UNSURE: return "unsure";
  case LK_LOCK_LOST: return "lost";
  }
  return "unknown state";
}

const char *lk_lock_event_text(lk_lock_event_type type)
{
  switch (type) {
  case LK_LOCK_EVENT_WAITING: return "waiting";
  case LK_LOCK_EVENT_PLACE_LOST: return "place lost";
  case LK_LOCK_EVENT_SUSPENDED: return "suspended";
  case LK_LOCK_EVENT_UNSURE: return "unsure";
  case LK_LOCK_EVENT_RENEWED: return "renewed";
  case LK_LOCK_EVENT_LOST: return "lost";
  case LK_LOCK_EVENT_MIXED_QUEUE: return "mixed queue";
  case LK_LOCK_EVENT_UNWATCHED: return "unwatched";
  case LK_LOCK_EVENT_REVOKED: return "revoked";
  }
  return "unknown event";
}

/* ---- end ----------------------------------------------------------------- */

static void lock_complete_ended(lk_lock *l)
{
  lk__lock_complete(l, &l->ended_acquire, LK_ERR_CLOSED);
  lk__lock_complete(l, &l->ended_release, LK_ERR_CLOSED);
}

/* Cancel and release everything. The callbacks of the ended calls are invoked
 * last: a call that one of them begins is not completed here. One of them can
 * free the lock; then the others are invoked before lk_lock_free() returns. */
static void lock_cancel_all(lk_lock *l)
{
  lock_complete_ended(l); /* those of a reset that has called this callback */

  lk_acquisition *a = lk__lock_detach_acquisition(l);

  l->ended_acquire = l->acquire;
  l->ended_release = l->release;
  lock_stop_timer(l, &l->timers.next_turn);
  l->acquire.pending = false;
  l->release.pending = false;
  l->lost = false;
  l->count = 0;
  lock_forget_released(l);
  if (a != NULL)
    lk__lock_stop_acquisition(a);
  lk__lock_complete_verify(l, LK_ERR_CLOSED);
  lock_complete_ended(l);
}

void lk_lock_reset(lk_lock *l)
{
  if (l->freeing)
    return;
  lk__lock_enter(l);
  lock_cancel_all(l);
  lk__lock_leave(l);
}

void lk_lock_free(lk_lock *l)
{
  if (l == NULL || l->freeing)
    return;
  lk__lock_enter(l);
  l->freeing = true;
  lock_cancel_all(l);
  lk__lock_leave(l);
}
