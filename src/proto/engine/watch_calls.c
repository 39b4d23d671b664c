/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Setting and cancelling watches. A server before 3.9 has only one watch for
 * each path of a connection, and a one-shot watch replaces a persistent one. So
 * where a persistent watch is on a path, a read does not set a watch on the
 * server: the one-shot watch is kept in the client alone, and gets the events
 * of the persistent watch. It ends (LK_EVENT_ENDED) when the server has no
 * watch for it any more:
 *
 * - The persistent watch is removed from the server: remove_on_server(). That
 *   removes all watches of the path, those of earlier requests, too.
 * - The addWatch that it relied on has failed: make_watch_stand().
 * - A recursive watch, added or registered again, has replaced a child watch,
 *   whose events it does not report. Or a persistent watch was added while the
 *   one-shot watch was not registered after a reconnect. Both:
 *   lk__watched_end_replaced().
 * - The connection is lost: lk__watches_take_disconnected(). A setWatches can
 *   have both watches, and registers the persistent one last. But several
 *   requests change the order if one is throttled, and a recursive watch
 *   replaces child watches in any order.
 *
 * So no setWatches contains both a one-shot and a persistent watch of one path.
 */

#include "proto/engine/calls.h"
#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_calls.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

/* The types of watches in a removeWatches request. */
enum { CHILDREN = 1, DATA = 2, ANY = 3 };

static int32_t remove_type(lk_watch_kind kind)
{
  if (lk__watch_stays(kind))
    return ANY;
  return kind == LK_WATCH_KIND_CHILD ? CHILDREN : DATA;
}

/* Send a removeWatches, unless another watch of the client needs the server's
 * watch, or the watch has ended with its connection (LK_ERR_STATE). If none is
 * sent, events arrive for which the client has no watch, and are ignored. */
static int remove_on_server(lk_client *c, const lk_watch *w, lk_done_cb done,
                            void *arg)
{
  struct lk_path_type_request r = {.type = remove_type(w->kind)};
  lk_call_spec spec = {.op = LK_OPCODE_REMOVE_WATCHES,
                       .rec = &lk__path_type_request_record,
                       .value = &r,
                       .chroot = "", /* w->on->path has the chroot already */
                       .path = w->on->path,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__request_refusal(c);

  if (err == 0 &&
      (c->connection.phase != LK_PHASE_LIVE || !lk__watch_is_removable(w)))
    err = LK_ERR_STATE;
  if (err == 0)
    err = lk__request_support_error(c, spec.op);
  if (err == 0)
    err = lk__request_queue(c, &spec);
  if (err == 0 && lk__watch_stays(w->kind))
    lk__watched_end_removed(&c->watches, w->on);
  return err;
}

/* Persistent watches that stand now were requested before `w`, because replies
 * come in the order of the requests. So if one serves `w`, it has done so since
 * the server executed the request of `w`. */
static void make_watch_stand(lk_client *c, lk_watch *w, lk_watch_kind kind)
{
  lk__watch_stand(&c->watches, w, kind);
  if (w->relies && !lk__watched_serves(w->on, kind))
    lk__watch_end(&c->watches, w);
}

void lk__watch_request_completed(lk_client *c, lk_watch *w, int32_t op, int err)
{
  bool node_is_absent = op == LK_OPCODE_EXISTS && err == LK_ERR_NO_NODE;
  bool stands = err == 0 || node_is_absent;
  /* An addWatch that has timed out will still be executed by the server. */
  bool timed_out = op == LK_OPCODE_ADD_WATCH && err == LK_ERR_DEADLINE;

  if (stands && lk__watch_stays(w->kind))
    lk__watched_end_replaced(&c->watches, w->on, w->kind);
  if (stands && w->cb != NULL) {
    make_watch_stand(c, w, node_is_absent ? LK_WATCH_KIND_EXIST : w->kind);
    return;
  }
  if (timed_out)
    lk__watched_end_removed(&c->watches, w->on);
  if ((stands && w->remove_at_reply) || timed_out)
    (void)remove_on_server(c, w, NULL, NULL);
  lk__watch_drop(&c->watches, w);
}

/* The watch of a handle; NULL: it has ended, or its last event is being
 * reported. */
static lk_watch *watch_to_cancel(lk_client *c, lk_watch *handle)
{
  lk_watch *w = lk__watch_of(&c->watches, handle);

  return w == NULL || w->cb == NULL ? NULL : w;
}

/* Whether the watch was taken out of its list. It is then about to get its last
 * event, and the server has no watch. */
static bool watch_was_taken(const lk_watch *w)
{
  return lk__list_empty(&w->link);
}

/* Whether the request that sets the watch has no reply yet. */
static bool watch_is_pending(const lk_watch *w)
{
  return !watch_was_taken(w) && !w->standing;
}

void lk_watch_cancel(lk_client *c, lk_watch *handle)
{
  lk_watch *w = watch_to_cancel(c, handle);

  if (w == NULL)
    return;
  w->cb = NULL;
  if (!watch_is_pending(w))
    lk__watch_drop(&c->watches, w);
}

int lk_watch_remove(lk_client *c, lk_watch *handle, lk_done_cb done, void *arg)
{
  lk_watch *w = watch_to_cancel(c, handle);

  if (w == NULL)
    return LK_ERR_STATE;
  w->cb = NULL;
  if (watch_is_pending(w)) {
    w->remove_at_reply = true;
    return LK_ERR_STATE;
  }
  lk__client_begin_call(c);
  int err =
      watch_was_taken(w) ? LK_ERR_STATE : remove_on_server(c, w, done, arg);

  lk__watch_drop(&c->watches, w);
  lk__client_end_call(c);
  return err;
}

int lk_add_watch(lk_client *c, const char *path, lk_watch_mode mode,
                 const lk_call *call, lk_done_cb done, void *arg)
{
  struct lk_add_watch_request r = {.mode = (int32_t)mode};
  lk_call_spec spec = {.op = LK_OPCODE_ADD_WATCH,
                       .path = path,
                       .kind = mode == LK_WATCH_RECURSIVE
                                   ? LK_WATCH_KIND_RECURSIVE
                                   : LK_WATCH_KIND_PERSISTENT,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_watch_options(c, &spec, call);

  if (err != 0)
    return err;
  if (spec.call == NULL || spec.call->on_event == NULL ||
      (mode != LK_WATCH_PERSISTENT && mode != LK_WATCH_RECURSIVE))
    return LK_ERR_BAD_ARGUMENT;
  if (!lk__path_valid(path, LK_PATH_OF_NODE))
    return LK_ERR_BAD_PATH;
  spec.path = lk__path_rest(c->hosts.chroot, path, LK_PATH_OF_NODE);
  spec.chroot = c->hosts.chroot;
  lk_watched *on;

  err = lk__request_refusal(c);
  if (err == 0)
    err = lk__request_find_watched(c, &spec, &on);
  if (err != 0)
    return err;
  lk_watch_kind other_kind = spec.kind == LK_WATCH_KIND_RECURSIVE
                                 ? LK_WATCH_KIND_PERSISTENT
                                 : LK_WATCH_KIND_RECURSIVE;

  if (on != NULL && lk__watched_has(on, other_kind, LK_ANY_WATCH))
    return LK_ERR_WATCH_MODE;
  return lk__call_send(c, &spec, &lk__add_watch_request_record, &r);
}
