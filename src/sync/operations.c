/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* ---- what comes back ----------------------------------------------------- */

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

static int64_t zxid_of(const lk_client *client)
{
  const lk_reply *answer = lk_client_reply(client);

  return answer == NULL ? 0 : answer->zxid;
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
      result->zxid = zxid_of(client);
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

static void on_multi(lk_client *client, int err, const lk_op_result *parts,
                     size_t count, void *arg)
{
  lk_sync_request *r = arg;

  if ((err == 0 || count > 0) && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_parts_size(parts, count), &err);

    if (result != NULL) {
      lk__result_set_parts(result, parts, count);
      result->zxid = zxid_of(client);
    }
  }
  lk__sync_request_complete(r, err);
}

/* ---- what is asked ------------------------------------------------------- */

static int ask_create(lk_sync_request *r, const lk_call *call)
{
  return lk_create2(lk__sync_client_of(r), r->path, r->data, r->acl, r->flags,
                    call, lk__sync_on_created, r);
}

static int ask_delete(lk_sync_request *r, const lk_call *call)
{
  return lk_delete(lk__sync_client_of(r), r->path, r->version, call,
                   lk__sync_on_done, r);
}

static int ask_exists(lk_sync_request *r, const lk_call *call)
{
  return lk_exists(lk__sync_client_of(r), r->path, call, lk__sync_on_stat, r);
}

static int ask_get(lk_sync_request *r, const lk_call *call)
{
  return lk_get(lk__sync_client_of(r), r->path, call, lk__sync_on_get, r);
}

static int ask_set(lk_sync_request *r, const lk_call *call)
{
  return lk_set(lk__sync_client_of(r), r->path, r->data, r->version, call,
                lk__sync_on_stat, r);
}

static int ask_children(lk_sync_request *r, const lk_call *call)
{
  return lk_get_children(lk__sync_client_of(r), r->path, call,
                         lk__sync_on_children, r);
}

static int ask_sync(lk_sync_request *r, const lk_call *call)
{
  return lk_sync(lk__sync_client_of(r), r->path, call, lk__sync_on_done, r);
}

static int ask_multi(lk_sync_request *r, const lk_call *call)
{
  if (r->holder != NULL && r->holder->handle == NULL)
    return LK_ERR_CLOSED; /* the lock was freed meanwhile */
  return r->holder == NULL ? lk_multi(lk__sync_client_of(r), r->ops, r->count,
                                      call, on_multi, r)
                           : lk_lock_guarded(r->holder->handle, r->ops,
                                             r->count, call, on_multi, r);
}

static int ask_auth(lk_sync_request *r, const lk_call *call)
{
  if (call->repeat || call->on_event != NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk_add_auth(lk__sync_client_of(r), r->scheme, r->data,
                     lk__sync_on_done, r);
}

/* ---- the calls ----------------------------------------------------------- */

int lk_sync_create(lk_sync_client *c, lk_sync_result **out, const char *path,
                   lk_bytes data, const lk_acls *acl, int flags,
                   const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_create,
                                .path = path,
                                .data = data,
                                .acl = acl,
                                .flags = flags};

  return lk__sync_request(c, &what, call, lk__result_create_room(path), out,
                          NULL);
}

int lk_sync_delete(lk_sync_client *c, const char *path, int32_t version,
                   const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_delete, .path = path, .version = version};

  return lk__sync_request(c, &what, call, 0, NULL, NULL);
}

int lk_sync_exists(lk_sync_client *c, lk_stat *out, const char *path,
                   const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_exists, .path = path, .until_made = true};

  return lk__sync_request(c, &what, call, 0, NULL, out);
}

int lk_sync_get(lk_sync_client *c, lk_sync_result **out, const char *path,
                const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_get, .path = path};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_set(lk_sync_client *c, lk_stat *out, const char *path,
                lk_bytes data, int32_t version, const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_set, .path = path, .data = data, .version = version};

  return lk__sync_request(c, &what, call, 0, NULL, out);
}

int lk_sync_get_children(lk_sync_client *c, lk_sync_result **out,
                         const char *path, const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_children, .path = path};

  return lk__sync_request(c, &what, call, 0, out, NULL);
}

int lk_sync_sync(lk_sync_client *c, const char *path, const lk_sync_call *call)
{
  const lk_sync_request what = {.ask = ask_sync, .path = path};

  return lk__sync_request(c, &what, call, 0, NULL, NULL);
}

int lk__sync_multi(lk_sync_client *c, lk_sync_result **out, lk_holder *holder,
                   const lk_op *ops, size_t count, const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_multi, .ops = ops, .count = count, .holder = holder};

  if (out != NULL)
    *out = NULL;
  if (ops == NULL && count > 0)
    return LK_ERR_BAD_ARGUMENT;
  return lk__sync_request(c, &what, call, lk__result_multi_room(ops, count),
                          out, NULL);
}

int lk_sync_multi(lk_sync_client *c, lk_sync_result **out, const lk_op *ops,
                  size_t count, const lk_sync_call *call)
{
  return lk__sync_multi(c, out, NULL, ops, count, call);
}

int lk_sync_add_auth(lk_sync_client *c, const char *scheme, lk_bytes auth,
                     const lk_sync_call *call)
{
  const lk_sync_request what = {
      .ask = ask_auth, .untimed = true, .scheme = scheme, .data = auth};

  return lk__sync_request(c, &what, call, 0, NULL, NULL);
}
