/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

static void unref(lk_sync_request *r)
{
  lk_sync_client *c = r->errand.client;

  pthread_mutex_lock(&c->mutex);
  bool last = --r->refs == 0;

  pthread_mutex_unlock(&c->mutex);
  if (!last)
    return;
  lk_sync_result_free(r->result);
  lk__blocking_call_destroy(&r->errand);
  lk__mem_free(&c->mem, r);
}

/* ---- the handle's thread ------------------------------------------------- */

static void drop_watch(lk_sync_request *r)
{
  lk__sync_watch_discard(r->watch);
  r->watch = NULL;
}

/* What the client still has to say will not be heard. */
static void cut(lk_blocking_call *e, int err)
{
  lk_sync_request *r = LK_OWNER(e, lk_sync_request, errand);

  if (r->watch != NULL)
    lk_watch_cancel(e->client->client, r->watch->watch, true);
  drop_watch(r);
  lk__blocking_call_complete(e, err);
}

static void begin(lk_blocking_call *e)
{
  lk_sync_request *r = LK_OWNER(e, lk_sync_request, errand);
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  r->options.deadline_ms =
      e->deadline_ms == INT64_MAX ? LK_NO_LIMIT : e->deadline_ms;
  if (r->watch != NULL)
    r->options.watch = &r->watch->watch;
  if (err == 0)
    err = r->ask(r, &r->options);
  if (err != 0) {
    drop_watch(r);
    lk__blocking_call_complete(e, err);
    return;
  }
  r->refs++; /* nobody else looks at it before the errand ends */
  lk__blocking_call_allow_interrupt(e, cut);
  if (r->untimed)
    lk__blocking_call_start_timer(e);
}

bool lk__sync_request_is_awaited(const lk_sync_request *r)
{
  return lk__blocking_call_is_interruptible(&r->errand);
}

void lk__sync_request_complete(lk_sync_request *r, int err)
{
  bool stands = err == 0 || (r->until_made && err == LK_ERR_NO_NODE);

  if (lk__sync_request_is_awaited(r)) {
    if (!stands)
      drop_watch(r);
    lk__blocking_call_complete(&r->errand, err);
  }
  unref(r);
}

lk_sync_result *lk__sync_request_result(lk_sync_request *r, size_t size,
                                        int *err)
{
  if (!r->wanted)
    return NULL;
  if (r->result == NULL || !lk__result_fits(r->result, size)) {
    lk_sync_result_free(r->result);
    r->result = lk__result_new(&r->errand.client->mem, size);
  }
  if (r->result == NULL)
    *err = LK_ERR_NO_MEMORY;
  return r->result;
}

/* ---- the caller ---------------------------------------------------------- */

static void fill_options(lk_sync_request *r, const lk_sync_call *call)
{
  r->options = (lk_call){.size = sizeof r->options};
  r->options.repeat = call->repeat;
  r->options.until_disconnect = call->until_disconnect;
  if (call->on_event != NULL)
    r->options.on_event = lk__sync_watch_event;
}

/* All memory that is needed, as far as that is known. */
static int equip(lk_sync_request *r, const lk_sync_call *call, size_t room)
{
  lk_sync_client *c = r->errand.client;

  if (r->wanted && room > 0) {
    r->result = lk__result_new(&c->mem, room);
    if (r->result == NULL)
      return LK_ERR_NO_MEMORY;
  }
  if (call->on_event == NULL)
    return 0;
  r->watch = lk__sync_watch_new(c, call);
  r->options.watch_arg = r->watch;
  if (r->watch == NULL)
    return LK_ERR_NO_MEMORY;
  r->watch->stays = r->stays;
  return 0;
}

/* A result without content was made ahead, and nothing came. */
static bool has_content(const lk_sync_result *r)
{
  return r != NULL && (r->path != NULL || r->names != NULL ||
                       r->results != NULL || r->zxid != 0);
}

static void hand_over(lk_sync_request *r, int err, const lk_sync_call *call,
                      lk_sync_result **out, lk_stat *stat)
{
  if (out != NULL && (err == 0 || has_content(r->result))) {
    *out = r->result;
    r->result = NULL;
  }
  if (stat != NULL && err == 0)
    *stat = r->stat;
  if (call->watch != NULL)
    *call->watch = r->watch;
}

static lk_sync_request *new_request(lk_sync_client *c,
                                    const lk_sync_request *what,
                                    const lk_sync_call *call, int *err)
{
  lk_sync_request *r = lk__mem_new(&c->mem, sizeof *r);

  if (r == NULL) {
    *err = LK_ERR_NO_MEMORY;
    return NULL;
  }
  *r = *what;
  r->refs = 1;
  fill_options(r, call);
  *err = lk__blocking_call_init(&r->errand, c, call);
  if (*err == 0)
    return r;
  lk__mem_free(&c->mem, r);
  return NULL;
}

int lk__sync_request(lk_sync_client *c, const lk_sync_request *what,
                     const lk_sync_call *call, size_t room,
                     lk_sync_result **out, lk_stat *stat)
{
  int cancelling, err;

  if (out != NULL)
    *out = NULL;
  lk_sync_call own;
  int wrong = lk__sync_copy_call(c, &own, call);

  if (wrong == 0 && own.watch != NULL)
    *own.watch = NULL;
  err = lk__sync_enter(c, &cancelling);
  if (err != 0)
    return err;
  err = wrong;
  lk_sync_request *r = err == 0 ? new_request(c, what, &own, &err) : NULL;

  if (r != NULL) {
    r->wanted = out != NULL;
    err = equip(r, &own, room);
    if (err == 0)
      err = lk__blocking_call_wait(&r->errand, begin);
    hand_over(r, err, &own, out, stat);
    unref(r);
  }
  lk__sync_leave(c, cancelling);
  return err;
}
