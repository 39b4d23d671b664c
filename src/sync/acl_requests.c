/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* Permissions and identities: latchkey/acl.h. */

static void on_acl(lk_client *client, int err, const lk_acls *acl,
                   const lk_stat *stat, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_acl_size(acl), &err);

    if (result != NULL)
      lk__result_set_acl(result, acl, stat);
  }
  lk__sync_request_complete(r, err);
}

static void on_identities(lk_client *client, int err, const lk_identity *ids,
                          size_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result =
        lk__sync_request_result(r, lk__result_ids_size(ids, count), &err);

    if (result != NULL)
      lk__result_set_ids(result, ids, count);
  }
  lk__sync_request_complete(r, err);
}

static int start_auth(lk_sync_request *r, const lk_call *call)
{
  if (call->repeat || call->on_event != NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk_add_auth(lk__sync_client_of(r), r->scheme, r->data,
                     lk__sync_on_done, r);
}

static int start_get_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_get_acl(lk__sync_client_of(r), r->path, call, on_acl, r);
}

static int start_set_acl(lk_sync_request *r, const lk_call *call)
{
  return lk_set_acl(lk__sync_client_of(r), r->path, r->acl, r->version, call,
                    lk__sync_on_stat, r);
}

static int start_who_am_i(lk_sync_request *r, const lk_call *call)
{
  return lk_who_am_i(lk__sync_client_of(r), call, on_identities, r);
}

int lk_sync_add_auth(lk_sync_client *c, const char *scheme, lk_bytes auth,
                     const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_auth,
                                   .has_own_timer = true,
                                   .scheme = scheme,
                                   .data = auth};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_get_acl(lk_sync_client *c, lk_sync_result **out, const char *path,
                    const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_get_acl, .path = path, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_set_acl(lk_sync_client *c, lk_stat *out, const char *path,
                    const lk_acls *acl, int32_t version,
                    const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_set_acl,
                                   .path = path,
                                   .acl = acl,
                                   .version = version,
                                   .stat_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_who_am_i(lk_sync_client *c, lk_sync_result **out,
                     const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_who_am_i, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}
