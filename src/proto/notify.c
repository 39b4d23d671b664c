/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine.h"
#include "proto/path.h"

void lk__notify(lk_client *c, lk_link *list, lk_event_type type, int err)
{
  while (!lk__list_empty(list)) {
    lk_watch *w = LK_OWNER(list->next, lk_watch, link);
    const lk_watched *on = w->on;
    lk_watch_cb cb = w->cb;
    lk_event event = {.type = type,
                      .path =
                          lk__path_strip(c->hosts.chroot, c->hosts.chroot_len,
                                         lk_bytes_of(on->path, on->map.len)),
                      .err = err};

    lk__list_remove(&w->link);
    w->cb = NULL; /* from now on cancelling it is nothing */
    cb(c, w, &event, w->arg);
    lk__watch_drop(&c->watches, w);
  }
}

/* Not being able to say it is no harm: an event for nobody is ignored. */
static void remove_on_server(lk_client *c, const lk_watch *w)
{
  struct lk_path_type_request r = {.type = w->kind == LK_WATCH_CHILD ? 1 : 2};
  lk_ask ask = {.op = LK_OPCODE_REMOVE_WATCHES,
                .rec = &lk__path_type_request_record,
                .value = &r,
                .chroot = "", /* watches have it in their paths */
                .path = w->on->path};

  if (c->phase == LK_PHASE_LIVE && lk__request_refusal(c) == 0 &&
      lk__watch_alone(w))
    (void)lk__request_queue(c, &ask);
}

void lk__notify_settle(lk_client *c, lk_watch *w, int32_t op, int err)
{
  bool missing = op == LK_OPCODE_EXISTS && err == LK_ERR_NO_NODE;
  bool stands = err == 0 || missing;

  if (stands && w->cb != NULL) {
    lk__watch_stand(&c->watches, w, missing ? LK_WATCH_EXIST : w->kind);
    return;
  }
  if (stands && w->remove)
    remove_on_server(c, w);
  lk__watch_drop(&c->watches, w);
}

void lk_watch_cancel(lk_client *c, lk_watch *w, bool on_server)
{
  if (w->cb == NULL)
    return;
  w->cb = NULL;
  if (!w->standing) {
    w->remove = on_server; /* once its request has been answered */
    return;
  }
  if (on_server)
    remove_on_server(c, w);
  lk__watch_drop(&c->watches, w);
}
