/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/handle.h"

#include "sim/world/allocate.h"
#include "sim/world/coverage.h"
#include "sim/world/lock_kinds.h"
#include "sim/world/lock_styles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static sim_checker *checker_of(const sim_handle *h)
{
  return h->process->world->checker;
}

#define TRACE(h, ...) \
  SIM_TRACE(&(h)->process->world->trace, (h)->name, __VA_ARGS__)

static void report_fact(sim_handle *h, sim_fact_type type, int err)
{
  sim_report_fact(checker_of(h),
                  &(sim_fact){.type = type, .err = err, .handle = h});
}

static void report_stray_callback(sim_handle *h, const char *why)
{
  TRACE(h, "unexpected callback: %s", why);
  sim_report_fact(
      checker_of(h),
      &(sim_fact){.type = SIM_STRAY_CALLBACK, .handle = h, .why = why});
}

static void call_actor(sim_handle *h, sim_callback callback, int err,
                       const lk_lock_event *event)
{
  if (!h->freeing)
    h->on_callback(h, (int)callback, err, event);
}

/* ---- acquire ------------------------------------------------------------ */

static void note_granted(sim_handle *h)
{
  if (h->is_reentry)
    return;
  h->count = 1;
  h->unsure = false;
  sim_checker_note_granted(checker_of(h), h);
}

static void decrease_count(sim_handle *h)
{
  if (--h->count == 0)
    h->held.count = 0;
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  TRACE(h, "%s%s", err == 0 ? "holds" : "acquire fails: ",
        err == 0 ? "" : lk_error_name(err));
  if (l != h->lock || !h->acquiring || h->in_acquire)
    report_stray_callback(h, h->in_acquire ? "an acquire ends in its call"
                                           : "an acquire ends twice");
  h->acquiring = false;
  h->in_acquire = false;
  if (err == 0)
    note_granted(h);
  else if (h->is_reentry && err == LK_ERR_CANCELLED && h->cancelling)
    decrease_count(h); /* the cancel has undone the re-entry */
  report_fact(h, SIM_ACQUIRE_ENDED, err);
  call_actor(h, SIM_CALLBACK_ACQUIRED, err, NULL);
}

static bool is_waiting_for_grant(const sim_handle *h)
{
  return h->acquiring && !h->is_reentry;
}

static bool layout_has_downgrades(const sim_handle *h)
{
  return h->process->world->style->layout == LK_LAYOUT_CURATOR;
}

/* Whether the next acquire is an lk_lock_try(): every other try is. */
static bool next_needs_connection(const sim_handle *h, int64_t timeout_ms)
{
  return timeout_ms == SIM_TRY && h->acquire_number % 2 == 0;
}

/* The error that the acquire must return, by what both sides of the lock
 * want and hold. */
static int expected_acquire_err(const sim_handle *h, bool needs_connection)
{
  bool is_connected = lk_client_state(h->process->client) == LK_STATE_CONNECTED;
  int connection_err =
      needs_connection && !is_connected ? LK_ERR_NOT_CONNECTED : 0;
  const sim_handle *other = h->other;
  bool is_downgrade = h->places[0].shares && layout_has_downgrades(h);

  if (h->lost || h->acquiring)
    return LK_ERR_STATE;
  if (sim_holds(h))
    return h->kind == SIM_SEMAPHORE ? LK_ERR_DEADLOCK : 0;
  if (other == NULL)
    return connection_err;
  if (is_waiting_for_grant(other))
    return LK_ERR_STATE;
  if (sim_holds(other) && !is_downgrade)
    return LK_ERR_DEADLOCK;
  return connection_err;
}

static int try_lock(sim_handle *h)
{
  return h->needs_connection
             ? lk_lock_try(h->lock, on_acquired, h)
             : lk_lock_try_until(h->lock, LK_NO_LIMIT, on_acquired, h);
}

/* Every other acquire of a limited time gives its deadline, which is the same.
 */
static int acquire_lock(sim_handle *h, int64_t timeout_ms)
{
  bool by_deadline = timeout_ms > 0 && h->acquire_number % 2 == 0;

  if (timeout_ms == SIM_TRY)
    return try_lock(h);
  return by_deadline
             ? lk_lock_acquire_until(h->lock, h->acquire_called_ms + timeout_ms,
                                     on_acquired, h)
             : lk_lock_acquire(h->lock, timeout_ms, on_acquired, h);
}

/* Every other release says that its deletes have no time limit, as it is. */
static int release_lock(sim_handle *h, lk_lock_cb done)
{
  return h->acquire_number % 2 == 0
             ? lk_lock_release_until(h->lock, LK_NO_LIMIT, done, h)
             : lk_lock_release(h->lock, done, h);
}

int sim_handle_acquire(sim_handle *h, int64_t timeout_ms)
{
  bool needs_connection = next_needs_connection(h, timeout_ms);
  sim_fact f = {.type = SIM_ACQUIRE_CALLED,
                .handle = h,
                .expected_err = expected_acquire_err(h, needs_connection)};
  sim_world *w = h->process->world;
  bool was_acquiring = h->acquiring; /* then the call must be refused */

  TRACE(h, "acquires, %" PRId64 " ms", timeout_ms);
  if (!was_acquiring) {
    h->is_reentry = sim_holds(h);
    if (!h->is_reentry)
      h->acquire_number++;
    h->timeout_ms = timeout_ms;
    h->needs_connection = needs_connection;
    h->acquire_called_ms = sim_process_clock(h->process);
    h->acquire_called_us = w->agenda.now_us;
    sim_checker_note_acquire_called(checker_of(h), h);
    if (h->is_reentry)
      h->count++;
    h->in_acquire = true;
  }
  f.err = acquire_lock(h, timeout_ms);
  if (!was_acquiring) {
    h->acquire_returned_ms = sim_process_clock(h->process);
    /* on_acquired() may have been called, and have cleared in_acquire */
    h->acquiring = f.err == 0 && h->in_acquire;
    h->in_acquire = false;
    if (f.err == 0)
      h->accepted_acquires++;
    else if (h->is_reentry)
      h->count--;
  }
  sim_report_fact(checker_of(h), &f);
  return f.err;
}

/* `acquires_before`: the number of accepted acquires before the call. */
static void report_cancelled(sim_handle *h, uint64_t acquires_before)
{
  if (h->lock == NULL) /* a callback of the call has freed it */
    return;
  bool is_outstanding = h->acquiring && h->accepted_acquires == acquires_before;

  report_fact(h, SIM_CANCEL_RETURNED, is_outstanding ? LK_ERR_STATE : 0);
}

void sim_handle_cancel(sim_handle *h)
{
  bool was_cancelling = h->cancelling;
  uint64_t acquires_before = h->accepted_acquires;

  TRACE(h, "cancels");
  h->cancelling = true;
  lk_lock_cancel(h->lock);
  h->cancelling = was_cancelling;
  report_cancelled(h, acquires_before);
}

static void forget_nodes(sim_handle *h)
{
  h->releasing_nodes.count = 0;
  h->held.count = 0;
  h->count = 0;
}

void sim_handle_reset(sim_handle *h)
{
  bool was_resetting = h->resetting;
  uint64_t acquires_before = h->accepted_acquires;

  TRACE(h, "is reset, count %zu", h->count);
  sim_coverage_milestone(SIM_MILESTONE_RESET);
  forget_nodes(h);
  h->lost = false;
  h->unsure = false;
  h->resetting = true;
  lk_lock_reset(h->lock);
  h->resetting = was_resetting;
  report_cancelled(h, acquires_before);
}

/* ---- release ------------------------------------------------------------ */

static void on_released(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  TRACE(h, "release completes: %s", err == 0 ? "0" : lk_error_name(err));
  if (l != h->lock || !h->releasing)
    report_stray_callback(h, "a release ends twice");
  h->releasing = false;
  report_fact(h, SIM_RELEASE_ENDED, err);
  call_actor(h, SIM_CALLBACK_RELEASED, err, NULL);
}

static int expected_release_err(const sim_handle *h, bool with_callback)
{
  if (h->lost)
    return LK_ERR_LOST;
  if (h->count == 0)
    return LK_ERR_NOT_HELD;
  return with_callback && h->releasing ? LK_ERR_STATE : 0;
}

/* Called before lk_lock_release(), which may invoke callbacks. */
static void note_release(sim_handle *h, bool with_callback)
{
  bool is_last = h->count == 1; /* the release deletes the nodes */

  if (with_callback)
    h->releasing_nodes = is_last ? h->held : (sim_nodes){.count = 0};
  if (h->lost) {
    h->lost = false;
    h->held.count = 0;
    h->count = 0;
  } else {
    decrease_count(h);
  }
  if (with_callback)
    h->releasing = true;
}

int sim_handle_release(sim_handle *h, bool with_callback)
{
  int expected = expected_release_err(h, with_callback);
  sim_fact f = {
      .type = SIM_RELEASE_CALLED, .handle = h, .expected_err = expected};

  TRACE(h, "releases, count %zu", h->count);
  h->in_release = true;
  bool awaits_callback = with_callback && expected == 0;

  if (expected == 0 || expected == LK_ERR_LOST)
    note_release(h, awaits_callback);
  f.err = release_lock(h, with_callback ? on_released : NULL);
  h->in_release = false;
  if (h->lock != NULL)
    sim_report_fact(checker_of(h), &f);
  return f.err;
}

/* ---- while held --------------------------------------------------------- */

/* The handle of the side that an event is about. Both sides of a read-write
 * lock have the handle of the write side as their callback argument. */
static sim_handle *handle_of_side(sim_handle *h, const lk_lock *l)
{
  return h->other != NULL && h->other->lock == l ? h->other : h;
}

static void on_event(lk_lock *l, const lk_lock_event *e, void *arg)
{
  static const char *const names[] = {[LK_LOCK_EVENT_WAITING] = "WAITING",
                                      [LK_LOCK_EVENT_PLACE_LOST] = "PLACE_LOST",
                                      [LK_LOCK_EVENT_SUSPENDED] = "SUSPENDED",
                                      [LK_LOCK_EVENT_UNSURE] = "UNSURE",
                                      [LK_LOCK_EVENT_RENEWED] = "HELD",
                                      [LK_LOCK_EVENT_LOST] = "LOST",
                                      [LK_LOCK_EVENT_MIXED_QUEUE] =
                                          "MIXED_QUEUE",
                                      [LK_LOCK_EVENT_UNWATCHED] = "UNWATCHED",
                                      [LK_LOCK_EVENT_REVOKED] = "REVOKED"};
  sim_handle *h = handle_of_side(arg, l);

  TRACE(h, "event %s%s%s", names[e->type], e->err == 0 ? "" : ", ",
        e->err == 0 ? "" : lk_error_name(e->err));
  if (l != h->lock || h->freeing)
    report_stray_callback(h, "an event for a handle that is freed");
  if (e->type == LK_LOCK_EVENT_UNSURE)
    h->unsure = true;
  else if (e->type == LK_LOCK_EVENT_RENEWED)
    h->unsure = false;
  sim_report_fact(
      checker_of(h),
      &(sim_fact){.type = SIM_LOCK_EVENT, .handle = h, .lock_event = e});
  if (e->type == LK_LOCK_EVENT_LOST)
    h->lost = true;
  call_actor(h, SIM_CALLBACK_EVENT, e->err, e);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  TRACE(h, "verify completes: %s", err == 0 ? "0" : lk_error_name(err));
  if (l != h->lock || !h->verifying)
    report_stray_callback(h, "a verify ends twice");
  h->verifying = false;
  report_fact(h, SIM_VERIFY_ENDED, err);
  call_actor(h, SIM_CALLBACK_VERIFIED, err, NULL);
}

int sim_handle_verify(sim_handle *h)
{
  bool was_verifying = h->verifying;
  int err;

  TRACE(h, "verifies");
  h->verifying = true;
  err = lk_lock_verify(h->lock, on_verified, h);
  if (err != 0)
    h->verifying = was_verifying;
  return err;
}

/* A guarded write and the nodes that guard it. It may complete after its handle
 * is freed. */
typedef struct guarded_write {
  sim_handle *h;
  sim_nodes nodes;
  char data[SIM_ENTRY_DATA];
} guarded_write;

static void on_written(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  guarded_write *g = arg;
  sim_handle *h = g->h;

  (void)c;
  (void)results;
  (void)count;
  TRACE(h, "guarded write completes: %s", err == 0 ? "0" : lk_error_name(err));
  h->guarded_writes--;
  sim_report_fact(checker_of(h), &(sim_fact){.type = SIM_GUARDED_WRITE_ENDED,
                                             .err = err,
                                             .handle = h,
                                             .nodes = &g->nodes,
                                             .data = g->data});
  if (h->lock != NULL)
    call_actor(h, SIM_CALLBACK_WRITTEN, err, NULL);
}

int sim_handle_write(sim_handle *h)
{
  guarded_write *g = sim_checker_allocate(checker_of(h), sizeof *g);
  lk_op op;
  int err;

  *g = (guarded_write){.h = h, .nodes = h->held};
  snprintf(g->data, sizeof g->data, "%s.g%" PRIu64, h->name,
           h->process->world->agenda.done);
  op = lk_op_set(SIM_REQUEST_DIR "/guarded", lk_text(g->data), -1);
  TRACE(h, "writes %s", g->data);
  h->guarded_writes++;
  err = lk_lock_guarded_multi(h->lock, &op, 1, NULL, on_written, g);
  if (err != 0)
    h->guarded_writes--;
  return err;
}

/* ---- setup and end ------------------------------------------------------ */

static sim_handle *handle_init(sim_process *p, const char *name,
                               const sim_lock_request *wanted,
                               sim_on_callback on_callback, void *arg)
{
  sim_handle *h = sim_checker_new_handle(p->world->checker, p);

  snprintf(h->name, sizeof h->name, "%s", name);
  h->kind = wanted->kind;
  h->nplaces = wanted->nplaces;
  memcpy(h->places, wanted->places, sizeof h->places);
  h->backwards = wanted->backwards;
  h->permits = wanted->take;
  h->on_callback = on_callback;
  h->arg = arg;
  return h;
}

static void add_read_side(sim_handle *h, const sim_lock_request *wanted)
{
  char name[sizeof h->name];

  snprintf(name, sizeof name, "%.8s.r", h->name);
  h->other = handle_init(h->process, name, wanted, h->on_callback, h->arg);
  h->other->other = h;
}

sim_handle *sim_handle_new(sim_process *p, const char *name,
                           const sim_lock_request *wanted,
                           lk_session_lease *lease,
                           const lk_lock_config *options,
                           sim_on_callback on_callback, void *arg)
{
  sim_handle *h = handle_init(p, name, wanted, on_callback, arg);
  lk_lock_config config = *options;

  if (wanted->kind == SIM_RWLOCK)
    add_read_side(h, wanted);
  config.size = sizeof config;
  config.on_event = on_event;
  config.arg = h;
  config.data = lk_text(h->name);
  h->lease = lease;
  h->max_queue = config.max_queue;
  if (h->other != NULL) {
    h->other->max_queue = h->max_queue;
    h->other->lease = lease;
  }
  sim_make_lock(h, &config);
  return h;
}

static void begin_handle_free(sim_handle *h)
{
  TRACE(h, "is freed, count %zu", h->count);
  h->freeing = true;
  forget_nodes(h);
}

static void end_handle_free(sim_handle *h)
{
  if (h->acquiring || h->releasing || h->verifying)
    report_stray_callback(h, "not called back when it was freed");
  h->lock = NULL;
  sim_checker_note_handle_freed(checker_of(h), h);
}

void sim_handle_free(sim_handle *h)
{
  sim_handle *other = h->other;

  begin_handle_free(h);
  if (other != NULL)
    begin_handle_free(other);
  sim_free_lock(h);
  end_handle_free(h);
  if (other != NULL)
    end_handle_free(other);
}
