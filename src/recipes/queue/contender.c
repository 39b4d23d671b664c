/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender.h"

void lk__contender_ref(lk_contender *ct)
{
  ct->refs++;
}

void lk__contender_unref(lk_contender *ct)
{
  lk_session_lease *lease = ct->lease;

  if (--ct->refs > 0)
    return;
  if (ct->downgrade.writer != NULL)
    lk__contender_unref(ct->downgrade.writer);
  lk__own_node_candidates_free(&ct->candidates, &lease->mem);
  lk__predecessors_free(&ct->predecessors, &lease->mem);
  lk__mem_free(&lease->mem, ct);
  lk__lease_unref(lease);
}

/* ---- queries ------------------------------------------------------------ */

lk_bytes lk__contender_data(const lk_contender *ct)
{
  return ct->own.data == NULL ? ct->config->data
                              : lk_bytes_of(ct->own.data, ct->own.data_len);
}

lk_client *lk__contender_client(const lk_contender *ct)
{
  return ct->lease->client;
}

uint64_t lk__contender_connection(const lk_contender *ct)
{
  return lk_client_connection(ct->lease->client);
}

bool lk__contender_holds(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_HELD || ct->state == LK_CONTENDER_UNSURE;
}

uint64_t lk__contender_token(const lk_contender *ct)
{
  return ct->downgrade.writer_token != 0 ? ct->downgrade.writer_token
                                         : ct->own.token;
}

lk_contender *lk__contender_next_of_client(const lk_contender *ct,
                                           const lk_contender *after)
{
  lk_lease_user *u =
      lk__lease_next_user(ct->lease, after == NULL ? NULL : &after->lease_user);

  return u == NULL ? NULL : LK_OWNER(u, lk_contender, lease_user);
}

/* ---- notices ------------------------------------------------------------ */

void lk__contender_notify(lk_contender *ct, const lk_notice *notice)
{
  if (ct->callbacks != NULL)
    ct->callbacks->notice(ct->callbacks_arg, notice);
}

void lk__contender_notify_position(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = ct->predecessors.count,
                      .node = ct->predecessors.head_path};

  if (ct->wait.reported_position == ct->predecessors.count)
    return;
  ct->wait.reported_position = ct->predecessors.count;
  lk__contender_notify(ct, &notice);
}

/* ---- watches ------------------------------------------------------------ */

void lk__contender_cancel_wait_watch(lk_contender *ct)
{
  const bool on_server = true;

  if (ct->wait.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->wait.watch, on_server);
  ct->wait.watch = NULL;
}

void lk__contender_cancel_watches(lk_contender *ct)
{
  bool is_foreign =
      lk__contender_is_single_node(ct) && ct->own.state != LK_OWN_CREATED;

  /* A watch on the own node need not be removed from the server: the node is
   * about to be deleted. A watch on another node would remain there. */
  if (ct->own.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->own.watch, is_foreign);
  ct->own.watch = NULL;
  ct->own.watched_on = 0;
  lk__contender_cancel_wait_watch(ct);
}
