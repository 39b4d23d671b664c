/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/names.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/own_node_watch.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/request_count.h"

void lk__contender_own_unreadable(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_UNWATCHED};

  if (ct->own.unreadable)
    return;
  lk__own_node_set_unreadable(&ct->own);
  lk__contender_notify(ct, &notice);
}

/* Take the token from a read of the own path. Returns LK_ERR_NO_NODE if the
 * node there is not the own one: it belongs to another session or contender. If
 * contenders share names, the token tells their nodes apart. */
static int own_node_take_stat(lk_contender *ct, const lk_stat *stat)
{
  uint64_t connection = lk__contender_connection(ct);
  lk_own_node *own = &ct->own;

  if (stat->ephemeral_owner != lk_client_session(lk__contender_client(ct)).id)
    return LK_ERR_NO_NODE;
  if (lk__identity_shares_names(own->identity) && own->token != 0 &&
      own->token != (uint64_t)stat->czxid)
    return LK_ERR_NO_NODE;
  lk__own_node_watched(own, connection);
  lk__own_node_set_found(own, (uint64_t)stat->czxid, connection);
  return 0;
}

void lk__contender_note_revocation(lk_contender *ct, const lk_bytes *data)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};

  if (ct->holding.revoked || !lk__is_revocation(*data))
    return;
  ct->holding.revoked = true;
  if (lk__contender_holds(ct))
    lk__contender_notify(ct, &notice);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg);

static void on_own_read(lk_client *c, int err, const lk_bytes *data,
                        const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    if (err != 0)
      ct->own.watch = NULL; /* a read that fails sets no watch */
    else
      err = own_node_take_stat(ct, stat);
    ct->round.own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contender_own_unreadable(ct);
    if (lk__contender_rules(ct)->own_read != NULL)
      lk__contender_rules(ct)->own_read(ct, err);
    else
      lk__contender_continue_if_all_read(ct);
    if (err == 0)
      lk__contender_note_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

int lk__contender_read_own(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own.watch};

  return lk__contender_count_request(
      ct, lk_get(lk__contender_client(ct), ct->own.path, &call, done, ct));
}

int lk__contender_watch_own(lk_contender *ct)
{
  return lk__contender_read_own(ct, on_own_read);
}

int lk__contender_ensure_own_watch(lk_contender *ct)
{
  if (ct->own.watch != NULL || ct->own.unreadable)
    return 0;
  return lk__contender_watch_own(ct);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  lk__own_node_unwatched(&ct->own);
  if (ct->machine->on_foreign_node != NULL && ct->own.state != LK_OWN_CREATED) {
    ct->machine->on_foreign_node(ct, event->type);
  } else if (event->type == LK_EVENT_DELETED) {
    if (lk__contender_rules(ct)->own_deleted != NULL)
      lk__contender_rules(ct)->own_deleted(ct);
    else
      lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (event->type != LK_EVENT_ENDED) { /* the data changed */
    int err = lk__contender_watch_own(ct);

    /* A holder does not fail: the next heartbeat sets its watch again. */
    if (err != 0 && !lk__contender_holds(ct))
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}
