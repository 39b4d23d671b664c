/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* The roster of a group or of an election, read once. subscribe.c has the
   subscription. */

static void on_roster(lk_client *client, int err,
                      const lk_roster_entry *entries, size_t count, void *arg)
{
  lk_sync_request *r = arg;

  (void)client;
  if (err == 0 && lk__sync_request_is_awaited(r)) {
    lk_sync_result *result = lk__sync_request_result(
        r, lk__result_entries_size(entries, count), &err);

    if (result != NULL)
      lk__result_set_entries(result, entries, count);
  }
  lk__sync_request_complete(r, err);
}

static int start_roster_get(lk_sync_request *r, const lk_call *call)
{
  return lk_roster_get(lk__sync_client_of(r), r->path, r->roster, call,
                       on_roster, r);
}

int lk_sync_roster_get(lk_sync_client *c, lk_sync_result **out,
                       const char *path, const lk_roster_config *config,
                       const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_roster_get,
                                   .path = path,
                                   .roster = config,
                                   .result_out = out};

  return lk__sync_request_do(c, &request, call);
}
