/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/request.h"

/* The servers of the ensemble: latchkey/ensemble.h. */

static int start_config(lk_sync_request *r, const lk_call *call)
{
  return lk_get_config(lk__sync_client_of(r), call, lk__sync_on_get, r);
}

static int start_reconfig(lk_sync_request *r, const lk_call *call)
{
  return lk_reconfig(lk__sync_client_of(r), r->change, call, lk__sync_on_get,
                     r);
}

int lk_sync_get_config(lk_sync_client *c, lk_sync_result **out,
                       const lk_sync_call *call)
{
  const lk_sync_request request = {.start = start_config, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}

int lk_sync_reconfig(lk_sync_client *c, lk_sync_result **out,
                     const lk_reconfiguration *change, const lk_sync_call *call)
{
  const lk_sync_request request = {
      .start = start_reconfig, .change = change, .result_out = out};

  return lk__sync_request_do(c, &request, call);
}
