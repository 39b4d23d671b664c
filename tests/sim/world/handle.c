/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/handle.h"

#include "sim/world/allocate.h"
#include "sim/world/lock_kinds.h"
#include "sim/world/lock_styles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static sim_checker *judge_of(const sim_handle *h)
{
  return h->process->world->checker;
}

#define SAY(h, ...) \
  SIM_TRACE(&(h)->process->world->trace, (h)->name, __VA_ARGS__)

static void tell(sim_handle *h, sim_fact_type type, int err)
{
  sim_checker_tell(judge_of(h),
                   &(sim_fact){.type = type, .err = err, .handle = h});
}

static void stray(sim_handle *h, const char *why)
{
  SAY(h, "is called back: %s", why);
  sim_checker_tell(judge_of(h),
                   &(sim_fact){.type = SIM_STRAY, .handle = h, .why = why});
}

static void call_actor(sim_handle *h, sim_news news, int err,
                       const lk_lock_event *event)
{
  if (!h->freeing)
    h->react(h, (int)news, err, event);
}

/* ---- acquire ------------------------------------------------------------ */

static void take_grant(sim_handle *h)
{
  if (h->again)
    return;
  h->count = 1;
  h->unsure = false;
  sim_checker_grants(judge_of(h), h);
}

/* The count goes down; at 0 it holds no more. */
static void count_down(sim_handle *h)
{
  if (--h->count == 0)
    h->held.count = 0;
}

static void on_got(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  SAY(h, "%s%s", err == 0 ? "holds" : "does not get it: ",
      err == 0 ? "" : lk_error_name(err));
  if (l != h->lock || !h->wants || h->calling)
    stray(h,
          h->calling ? "an acquire ends in its call" : "an acquire ends twice");
  h->wants = false;
  h->calling = false;
  if (err == 0)
    take_grant(h);
  else if (h->again && err == LK_ERR_CANCELLED && h->cancelling)
    count_down(h);
  tell(h, SIM_GOT, err);
  call_actor(h, SIM_NEWS_GOT, err, NULL);
}

static bool is_acquiring(const sim_handle *h)
{
  return h->wants && !h->again;
}

static bool knows_downgrades(const sim_handle *h)
{
  return h->process->world->style->layout == LK_LAYOUT_CURATOR;
}

/* By what it and its other side want and hold. */
static int acquire_should_be(const sim_handle *h)
{
  const sim_handle *o = h->other;

  if (h->lost || h->wants)
    return LK_ERR_STATE;
  if (sim_holds(h))
    return h->kind == SIM_SEMAPHORE ? LK_ERR_DEADLOCK : 0;
  if (o == NULL)
    return 0;
  if (is_acquiring(o))
    return LK_ERR_STATE;
  if (!sim_holds(o))
    return 0;
  return h->places[0].shares && knows_downgrades(h) ? 0 : LK_ERR_DEADLOCK;
}

int sim_handle_acquire(sim_handle *h, int64_t timeout_ms)
{
  sim_fact f = {
      .type = SIM_WANTED, .handle = h, .should = acquire_should_be(h)};
  sim_world *w = h->process->world;
  bool wanted = h->wants;

  SAY(h, "acquires, %" PRId64 " ms", timeout_ms);
  if (!wanted) {
    h->again = sim_holds(h);
    h->acquire += !h->again;
    h->timeout_ms = timeout_ms;
    h->asked_ms = sim_process_clock(h->process);
    h->asked_us = w->agenda.now_us;
    sim_checker_asks(judge_of(h), h);
    h->count += h->again;
    h->calling = true;
  }
  f.err = lk_lock_acquire(h->lock, timeout_ms, on_got, h);
  if (!wanted)
    h->called_ms = sim_process_clock(h->process);
  if (!wanted) {
    h->wants = f.err == 0 && h->calling;
    h->calling = false;
    h->asks += f.err == 0;
    h->count -= f.err != 0 && h->again;
  }
  sim_checker_tell(judge_of(h), &f);
  return f.err;
}

void sim_handle_cancel(sim_handle *h)
{
  bool outer = h->cancelling;
  uint64_t asks = h->asks;

  SAY(h, "cancels");
  h->cancelling = true;
  lk_lock_cancel(h->lock);
  h->cancelling = outer;
  if (h->lock != NULL)
    tell(h, SIM_CANCELLED, h->wants && h->asks == asks);
}

/* ---- release ------------------------------------------------------------ */

static void on_released(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  SAY(h, "has released: %s", err == 0 ? "0" : lk_error_name(err));
  if (l != h->lock || !h->releases)
    stray(h, "a release ends twice");
  h->releases = false;
  tell(h, SIM_RELEASED, err);
  call_actor(h, SIM_NEWS_RELEASED, err, NULL);
}

static int should_be(const sim_handle *h, bool with_callback)
{
  if (h->lost)
    return LK_ERR_LOST;
  if (h->count == 0)
    return LK_ERR_NOT_HELD;
  return with_callback && h->releases ? LK_ERR_STATE : 0;
}

/* As the handle has it when the release was called, before what it calls. */
static void take_release(sim_handle *h, bool with_callback)
{
  if (with_callback)
    h->given = h->count == 1 ? h->held : (sim_nodes){.count = 0};
  if (h->lost) {
    h->lost = false;
    h->held.count = 0;
    h->count = 0;
  } else {
    count_down(h);
  }
  if (with_callback)
    h->releases = true;
}

int sim_handle_release(sim_handle *h, bool with_callback)
{
  int should = should_be(h, with_callback);
  sim_fact f = {.type = SIM_LET_GO, .handle = h, .should = should};

  SAY(h, "releases, counts %zu", h->count);
  h->letting = true;
  if (should == 0 || should == LK_ERR_LOST)
    take_release(h, with_callback && should == 0);
  f.err = lk_lock_release(h->lock, with_callback ? on_released : NULL, h);
  h->letting = false;
  if (h->lock != NULL)
    sim_checker_tell(judge_of(h), &f);
  return f.err;
}

/* ---- while it holds ----------------------------------------------------- */

/* Both sides of a read-write lock have the argument of the first. */
static sim_handle *side_of(sim_handle *h, const lk_lock *l)
{
  return h->other != NULL && h->other->lock == l ? h->other : h;
}

static void on_event(lk_lock *l, const lk_lock_event *e, void *arg)
{
  static const char *const names[] = {"WAITING",     "PLACE_LOST", "SUSPENDED",
                                      "UNSURE",      "HELD",       "LOST",
                                      "MIXED_QUEUE", "UNWATCHED",  "REVOKED"};
  sim_handle *h = side_of(arg, l);

  SAY(h, "is told %s%s%s", names[e->type], e->err == 0 ? "" : ", ",
      e->err == 0 ? "" : lk_error_name(e->err));
  if (l != h->lock || h->freeing)
    stray(h, "an event for a handle that is freed");
  if (e->type == LK_LOCK_EVENT_UNSURE || e->type == LK_LOCK_EVENT_RENEWED)
    h->unsure = e->type == LK_LOCK_EVENT_UNSURE;
  sim_checker_tell(judge_of(h),
                   &(sim_fact){.type = SIM_TOLD, .handle = h, .told = e});
  if (e->type == LK_LOCK_EVENT_LOST)
    h->lost = true;
  call_actor(h, SIM_NEWS_EVENT, e->err, e);
}

static void on_verified(lk_lock *l, int err, void *arg)
{
  sim_handle *h = arg;

  SAY(h, "is verified: %s", err == 0 ? "0" : lk_error_name(err));
  if (l != h->lock || !h->verifies)
    stray(h, "a verify ends twice");
  h->verifies = false;
  tell(h, SIM_VERIFIED, err);
  call_actor(h, SIM_NEWS_VERIFIED, err, NULL);
}

int sim_handle_verify(sim_handle *h)
{
  bool verified = h->verifies;
  int err;

  SAY(h, "verifies");
  h->verifies = true;
  err = lk_lock_verify(h->lock, on_verified, h);
  if (err != 0)
    h->verifies = verified;
  return err;
}

/* A guarded write: it outlives its handle. */
typedef struct guarded {
  sim_handle *h;
  sim_nodes nodes;
  char data[SIM_ENTRY_DATA];
} guarded;

static void on_written(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  guarded *g = arg;
  sim_handle *h = g->h;

  (void)c;
  (void)results;
  (void)count;
  SAY(h, "has written: %s", err == 0 ? "0" : lk_error_name(err));
  h->guards--;
  sim_checker_tell(judge_of(h), &(sim_fact){.type = SIM_GUARDED,
                                            .err = err,
                                            .handle = h,
                                            .nodes = &g->nodes,
                                            .data = g->data});
  if (h->lock != NULL)
    call_actor(h, SIM_NEWS_WRITTEN, err, NULL);
}

int sim_handle_write(sim_handle *h)
{
  guarded *g = sim_checker_take(judge_of(h), sizeof *g);
  lk_op op;
  int err;

  *g = (guarded){.h = h, .nodes = h->held};
  snprintf(g->data, sizeof g->data, "%s.g%" PRIu64, h->name,
           h->process->world->agenda.done);
  op = lk_op_set(SIM_RAW "/guarded", lk_text(g->data), -1);
  SAY(h, "writes %s", g->data);
  h->guards++;
  err = lk_lock_guarded_multi(h->lock, &op, 1, NULL, on_written, g);
  h->guards -= err != 0;
  return err;
}

/* ---- life --------------------------------------------------------------- */

static sim_handle *new_handle(sim_process *p, const char *name,
                              const sim_wish *wish, sim_react react, void *arg)
{
  sim_handle *h = sim_checker_handle(p->world->checker, p);

  snprintf(h->name, sizeof h->name, "%s", name);
  h->kind = wish->kind;
  h->nseats = wish->nseats;
  memcpy(h->places, wish->places, sizeof h->places);
  h->backwards = wish->backwards;
  h->take = wish->take;
  h->react = react;
  h->arg = arg;
  return h;
}

static void add_other(sim_handle *h, const sim_wish *wish)
{
  char name[sizeof h->name];

  snprintf(name, sizeof name, "%.8s.r", h->name);
  h->other = new_handle(h->process, name, wish, h->react, h->arg);
  h->other->other = h;
}

sim_handle *sim_handle_new(sim_process *p, const char *name,
                           const sim_wish *wish, lk_session_lease *lease,
                           const lk_lock_config *options, sim_react react,
                           void *arg)
{
  sim_handle *h = new_handle(p, name, wish, react, arg);
  lk_lock_config config = *options;

  if (wish->kind == SIM_RWLOCK)
    add_other(h, wish);
  config.size = sizeof config;
  config.on_event = on_event;
  config.arg = h;
  config.data = lk_text(h->name);
  h->lease = lease;
  h->local = config.local_queue;
  h->most = config.max_queue;
  if (h->other != NULL) {
    h->other->most = h->most;
    h->other->lease = lease;
  }
  sim_make_lock(h, &config);
  return h;
}

static void begin_free(sim_handle *h)
{
  SAY(h, "is freed, counts %zu", h->count);
  h->freeing = true;
  h->given.count = 0;
  h->held.count = 0;
  h->count = 0;
}

static void end_free(sim_handle *h)
{
  if (h->wants || h->releases || h->verifies)
    stray(h, "not called back when it was freed");
  h->lock = NULL;
  sim_checker_forget(judge_of(h), h);
}

void sim_handle_free(sim_handle *h)
{
  sim_handle *other = h->other;

  begin_free(h);
  if (other != NULL)
    begin_free(other);
  sim_free_lock(h);
  end_free(h);
  if (other != NULL)
    end_free(other);
}
