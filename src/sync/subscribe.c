/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/blocking_call.h"
#include "sync/result.h"

/**
 * @file
 * Subscriptions for threads: the handle's thread keeps the newest state until a
 * caller takes it.
 */

struct lk_sync_subscription {
  lk_sync_client *client;
  size_t inside; /* calls that wait; under the client's mutex */
  bool children; /* not data */
  lk_subscription_config config;

  /* Of the handle's thread. */
  lk_subscription *told_by; /* NULL: it has ended, or there was no memory */
  bool fresh;               /* nobody has taken what was told */
  int err;
  lk_sync_result *result;
  lk_link waiting; /* of taker */
  char path[];
};

/** A caller that waits for news. */
typedef struct taker {
  lk_blocking_call errand;
  lk_sync_subscription *from;
  lk_link link;
  lk_sync_result *result;
} taker;

/* ---- the handle's thread ------------------------------------------------- */

/* What is final all of them get, and whoever comes later. */
static void hand_out(lk_sync_subscription *s)
{
  while (s->fresh && !lk__list_empty(&s->waiting)) {
    taker *t = LK_OWNER(s->waiting.next, taker, link);

    lk__list_remove(&t->link);
    t->result = s->result;
    s->result = NULL;
    s->fresh = s->told_by == NULL;
    lk__blocking_call_complete(&t->errand, s->err);
  }
}

static bool is_final(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

/* What is lost for want of memory is asked for again by the next caller. */
static void keep(lk_sync_subscription *s, int err, lk_sync_result *result)
{
  lk_sync_result_free(s->result);
  s->result = result;
  s->err = err;
  s->fresh = true;
  if (err == LK_ERR_NO_MEMORY || is_final(err)) {
    lk_subscription_free(s->told_by);
    s->told_by = NULL;
  }
  hand_out(s);
}

static void on_names(lk_subscription *from, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  lk_sync_subscription *s = arg;
  lk_sync_result *r = NULL;

  (void)from;
  if (err == 0) {
    r = lk__result_new(&s->client->mem, lk__result_names_size(names, count));
    if (r != NULL)
      lk__result_set_names(r, names, count, stat);
    else
      err = LK_ERR_NO_MEMORY;
  }
  keep(s, err, r);
}

static void on_data(lk_subscription *from, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_sync_subscription *s = arg;
  lk_sync_result *r = NULL;

  (void)from;
  if (err == 0) {
    r = lk__result_new(&s->client->mem, lk__result_data_size(data));
    if (r != NULL)
      lk__result_set_data(r, data, stat);
    else
      err = LK_ERR_NO_MEMORY;
  }
  keep(s, err, r);
}

static int subscribe(lk_sync_subscription *s)
{
  lk_client *c = s->client->client;

  s->fresh = false;
  return s->children ? lk_subscribe_children(&s->told_by, c, s->path,
                                             &s->config, on_names, s)
                     : lk_subscribe_data(&s->told_by, c, s->path, &s->config,
                                         on_data, s);
}

static void cut(lk_blocking_call *e, int err)
{
  lk__list_remove(&LK_OWNER(e, taker, errand)->link);
  lk__blocking_call_complete(e, err);
}

static void begin_take(lk_blocking_call *e)
{
  taker *t = LK_OWNER(e, taker, errand);
  lk_sync_subscription *s = t->from;
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  if (err == 0 && s->told_by == NULL && !is_final(s->err))
    err = subscribe(s);
  if (err != 0) {
    lk__blocking_call_complete(e, err);
    return;
  }
  lk__list_add(&s->waiting, &t->link);
  lk__blocking_call_allow_interrupt(e, cut);
  lk__blocking_call_start_timer(e);
  hand_out(s);
}

static void end(lk_sync_subscription *s)
{
  lk_subscription_free(s->told_by);
  s->told_by = NULL;
  lk_sync_result_free(s->result);
  s->result = NULL;
  s->err = LK_ERR_CLOSED;
  s->fresh = true;
  hand_out(s);
}

/* ---- callers ------------------------------------------------------------- */

/** One that begins, or ends. */
typedef struct step {
  lk_blocking_call errand;
  lk_sync_subscription *what;
} step;

static void begin_subscribe(lk_blocking_call *e)
{
  int err = lk__blocking_call_refusal(e, lk__blocking_call_clock(e));

  lk__blocking_call_complete(
      e, err == 0 ? subscribe(LK_OWNER(e, step, errand)->what) : err);
}

static void begin_end(lk_blocking_call *e)
{
  end(LK_OWNER(e, step, errand)->what);
  lk__blocking_call_complete(e, 0);
}

static int make(lk_sync_subscription **out, lk_sync_client *c, const char *path,
                const lk_subscription_config *config, bool children)
{
  static const lk_sized what = LK_SIZED(lk_subscription_config);
  lk_subscription_config own;

  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  if (c == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  if (lk__driver_in_child(&c->driver))
    return LK_ERR_FORKED;
  int err = lk__sync_copy_options(c, &what, &own, config);

  if (err != 0)
    return err;
  lk_sync_subscription *s = lk__mem_new(&c->mem, sizeof *s + strlen(path) + 1);
  step begins = {.what = s};

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->client = c;
  s->children = children;
  s->config = own;
  lk__list_init(&s->waiting);
  memcpy(s->path, path, strlen(path));
  err = lk__blocking_call_do(&begins.errand, c, begin_subscribe);

  if (err != 0)
    lk__mem_free(&c->mem, s);
  else
    *out = s;
  return err;
}

int lk_sync_subscribe_children(lk_sync_subscription **out, lk_sync_client *c,
                               const char *path,
                               const lk_subscription_config *config)
{
  return make(out, c, path, config, true);
}

int lk_sync_subscribe_data(lk_sync_subscription **out, lk_sync_client *c,
                           const char *path,
                           const lk_subscription_config *config)
{
  return make(out, c, path, config, false);
}

void lk_sync_subscription_free(lk_sync_subscription *s)
{
  step ends = {.what = s};

  if (s == NULL ||
      lk__blocking_call_do(&ends.errand, s->client, begin_end) != 0)
    return;
  lk__sync_await_calls(s->client, &s->inside);
  lk__mem_free(&s->client->mem, s);
}

static int take(taker *t, lk_sync_client *c, const lk_sync_call *call)
{
  int err = lk__blocking_call_init_from(&t->errand, c, call);

  if (err != 0)
    return err;
  lk__list_init(&t->link);
  err = lk__blocking_call_wait(&t->errand, begin_take);
  lk__blocking_call_destroy(&t->errand);
  return err;
}

int lk_sync_subscription_next(lk_sync_subscription *s, lk_sync_result **out,
                              const lk_sync_call *call)
{
  lk_sync_client *c = s == NULL ? NULL : s->client;
  taker t = {.from = s};
  int cancelling;
  int err =
      lk__sync_enter_object(c, s == NULL ? NULL : &s->inside, &cancelling);

  if (err == 0) {
    err = take(&t, c, call);
    lk__sync_leave_object(c, &s->inside, cancelling);
  }
  if (out != NULL)
    *out = t.result;
  else
    lk_sync_result_free(t.result);
  return err;
}
