/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

#include "sync/call.h"

static void request_unref(lk_sync_request *r)
{
  lk_sync_client *c = r->call.client;

  pthread_mutex_lock(&c->mutex);
  r->refs--;
  bool unused = r->refs == 0;

  pthread_mutex_unlock(&c->mutex);
  if (!unused)
    return;
  lk_sync_result_free(r->result);
  lk__blocking_call_destroy(&r->call);
  lk__mem_free(&c->mem, r);
}

static void request_free_watch(lk_sync_request *r)
{
  lk__sync_watch_discard(r->watch);
  r->watch = NULL;
}

/* ---- the thread of the handle -------------------------------------------- */

/* A request that waits for a connection is cancelled, which completes the call.
   The client completes a sent one later, and its result is not used. */
static void interrupt_request(lk_blocking_call *b, int err)
{
  lk_sync_request *r = LK_OWNER(b, lk_sync_request, call);

  if (err == LK_ERR_CANCELLED &&
      lk_request_cancel(b->client->client, &r->handle) == 0)
    return;
  if (r->watch != NULL)
    (void)lk_watch_remove(b->client->client, r->watch->watch, NULL, NULL);
  request_free_watch(r);
  lk__blocking_call_complete(b, err);
}

static void begin_request(lk_blocking_call *b)
{
  lk_sync_request *r = LK_OWNER(b, lk_sync_request, call);
  int err = lk__blocking_call_refusal(b);

  r->options.deadline_ms =
      b->deadline_ms == INT64_MAX ? LK_NO_LIMIT : b->deadline_ms;
  if (r->watch != NULL)
    r->options.watch = &r->watch->watch;
  if (err == 0)
    err = r->start(r, &r->options);
  if (err != 0) {
    request_free_watch(r);
    lk__blocking_call_complete(b, err);
    return;
  }
  r->refs++; /* the mutex is not needed: the other thread waits */
  lk__blocking_call_allow_interrupt(b, interrupt_request);
  if (r->has_own_timer)
    lk__blocking_call_start_timer(b);
}

bool lk__sync_request_is_awaited(const lk_sync_request *r)
{
  return lk__blocking_call_is_interruptible(&r->call);
}

void lk__sync_request_complete(lk_sync_request *r, int err)
{
  bool watch_is_set =
      err == 0 || (r->watches_missing_node && err == LK_ERR_NO_NODE);

  if (lk__sync_request_is_awaited(r)) {
    if (!watch_is_set)
      request_free_watch(r);
    lk__blocking_call_complete(&r->call, err);
  }
  request_unref(r);
}

lk_sync_result *lk__sync_request_result(lk_sync_request *r, size_t size,
                                        int *err)
{
  if (r->result_out == NULL)
    return NULL;
  if (r->result == NULL || !lk__result_fits(r->result, size)) {
    lk_sync_result_free(r->result);
    r->result = lk__result_new(&r->call.client->mem, size);
  }
  if (r->result == NULL)
    *err = LK_ERR_NO_MEMORY;
  return r->result;
}

/* ---- callbacks of the usual requests ------------------------------------- */

void lk__sync_on_done(lk_client *client, int err, void *arg)
{
  (void)client;
  lk__sync_request_complete(arg, err);
}

void lk__sync_on_stat(lk_client *client, int err, const lk_stat *stat,
                      void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r))
    r->stat = *stat;
  lk__sync_request_complete(r, err);
}

int64_t lk__sync_reply_zxid(const lk_client *client)
{
  const lk_reply *reply = lk_client_reply(client);

  return reply == NULL ? 0 : reply->zxid;
}

void lk__sync_on_created(lk_client *client, int err, const char *path,
                         const lk_stat *stat, void *arg)
{
  lk_sync_request *r = arg;

  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_path_size(path), &err);

    if (result != NULL) {
      lk__result_set_path(result, path, stat);
      result->zxid = lk__sync_reply_zxid(client);
    }
  }
  lk__sync_request_complete(r, err);
}

void lk__sync_on_get(lk_client *client, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_data_size(data), &err);

    if (result != NULL)
      lk__result_set_data(result, data, stat);
  }
  lk__sync_request_complete(r, err);
}

void lk__sync_on_children(lk_client *client, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_names_size(names, count), &err);

    if (result != NULL)
      lk__result_set_names(result, names, count, stat);
  }
  lk__sync_request_complete(r, err);
}

/* ---- the caller ---------------------------------------------------------- */

/* `are_defaults`: `call` has the defaults of the client, and a request for
   which one of them is not possible does without it. */
static void request_set_options(lk_sync_request *r, const lk_sync_call *call,
                                bool are_defaults)
{
  r->options = (lk_call){.size = sizeof r->options,
                         .repeat = call->repeat,
                         .until_disconnect = call->until_disconnect,
                         .offline = call->offline};
  if (!r->sends_several)
    r->options.handle = &r->handle;
  if (are_defaults && (r->is_not_repeated || r->sends_several))
    r->options.repeat = false;
  if (are_defaults && r->sends_several)
    r->options.offline = LK_OFFLINE_WAIT;
  if (call->on_event != NULL)
    r->options.on_event = lk__sync_watch_event;
}

/* Allocate all that the reply needs and whose size is known before the request
   is sent. */
static int request_allocate(lk_sync_request *r, const lk_sync_call *call)
{
  lk_sync_client *c = r->call.client;

  if (r->result_out != NULL && r->result_room > 0) {
    r->result = lk__result_new(&c->mem, r->result_room);
    if (r->result == NULL)
      return LK_ERR_NO_MEMORY;
  }
  if (call->on_event == NULL)
    return 0;
  r->watch = lk__sync_watch_new(c, call);
  r->options.watch_arg = r->watch;
  if (r->watch == NULL)
    return LK_ERR_NO_MEMORY;
  r->watch->is_persistent = r->is_persistent;
  return 0;
}

/* Whether a reply was stored in the result. A result that request_allocate()
   has made stays empty if no reply comes. */
static bool result_has_content(const lk_sync_result *r)
{
  return r != NULL && (r->path != NULL || r->names != NULL ||
                       r->results != NULL || r->zxid != 0);
}

static void request_give_result(lk_sync_request *r, int err,
                                const lk_sync_call *call)
{
  if (r->result_out != NULL && (err == 0 || result_has_content(r->result))) {
    *r->result_out = r->result;
    r->result = NULL;
  }
  if (r->stat_out != NULL && err == 0)
    *r->stat_out = r->stat;
  if (call->watch != NULL)
    *call->watch = r->watch;
}

static lk_sync_request *request_new(lk_sync_client *c,
                                    const lk_sync_request *from,
                                    const lk_sync_call *call, bool are_defaults,
                                    int *err)
{
  lk_sync_request *r = lk__mem_new(&c->mem, sizeof *r);

  if (r == NULL) {
    *err = LK_ERR_NO_MEMORY;
    return NULL;
  }
  *r = *from;
  r->refs = 1;
  request_set_options(r, call, are_defaults);
  *err = lk__blocking_call_init(&r->call, c, call);
  if (*err == 0)
    return r;
  lk__mem_free(&c->mem, r);
  return NULL;
}

/* lk__sync_request_do() after it has entered the handle. */
static int request_send_and_wait(lk_sync_client *c, const lk_sync_request *from,
                                 const lk_sync_call *call, bool are_defaults)
{
  int err;
  lk_sync_request *r = request_new(c, from, call, are_defaults, &err);

  if (r == NULL)
    return err;
  err = request_allocate(r, call);
  if (err == 0)
    err = lk__blocking_call_wait(&r->call, begin_request);
  /* The handle is being freed, and has not taken the call any more. */
  if (!r->call.is_completed)
    request_free_watch(r);
  request_give_result(r, err, call);
  request_unref(r);
  return err;
}

int lk__sync_request_do(lk_sync_client *c, const lk_sync_request *from,
                        const lk_sync_call *call)
{
  int cancel_state;
  lk_sync_call copy;
  bool are_defaults = call == NULL;

  if (from->result_out != NULL)
    *from->result_out = NULL;
  int copy_err = lk__sync_copy_call(c, &copy, call);

  if (copy_err == 0 && copy.watch != NULL)
    *copy.watch = NULL;
  int err = lk__sync_enter(c, &cancel_state);

  if (err != 0)
    return err;
  err = copy_err != 0 ? copy_err
                      : request_send_and_wait(c, from, &copy, are_defaults);
  lk__sync_leave(c, cancel_state);
  return err;
}
