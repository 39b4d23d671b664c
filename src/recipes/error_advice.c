/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/error_advice.h"

bool lk__error_is_loss_behind_server(const lk_client *c, int err)
{
  /* If the client itself has lost its connection, the request has completed
   * without a reply. */
  return (err == LK_ERR_CONNECTION_LOSS || err == LK_ERR_IN_DOUBT) &&
         lk_client_reply(c) != NULL;
}

lk_advice lk__error_advice(const lk_client *c, int err)
{
  return lk__error_is_loss_behind_server(c, err)
             ? LK_ADVICE_GIVE_UP
             : lk__error_meaning(err).request;
}

lk_advice lk__error_cleanup_advice(const lk_client *c, int err)
{
  return lk__error_is_loss_behind_server(c, err)
             ? LK_ADVICE_RETRY_LATER
             : lk__error_meaning(err).cleanup;
}

int lk__error_of_unsent(int err)
{
  return err == LK_ERR_CLOSED ? LK_ERR_NOT_SENT : err;
}

bool lk__transaction_was_ordered(const lk_client *c)
{
  const lk_reply *reply = lk_client_reply(c);

  return reply != NULL && reply->evidence == LK_EVIDENCE_COMMIT;
}
