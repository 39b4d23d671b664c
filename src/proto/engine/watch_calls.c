/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Setting and cancelling watches. A server before 3.9 has only one watch for
 * each path of a connection, and a one-shot watch replaces a persistent one. So
 * where a persistent watch is on a path, the client does not register one-shot
 * watches: the persistent watch "covers" them, and they get its events. When
 * the covering watch ends, or has replaced one-shot watches on the server, a
 * setWatches with the last zxid registers the one-shot watches. Its events
 * report the changes that were missed. A persistent watch covers nothing while
 * its own setWatches is throttled (set_watches.h).
 */

#include "proto/engine/calls.h"
#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_calls.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

/* If the one-shot watches of `kind` are no longer covered, note that. Returns
 * whether they must be registered now. */
static bool note_uncovered(const lk_client *c, lk_watched *on,
                           lk_watch_kind kind)
{
  if (!on->covered[kind] ||
      lk__watched_covers(&c->watches, on, kind, LK_BY_SENT_REQUESTS))
    return false;
  on->covered[kind] = false;
  /* Missing watches are left to the next setWatches of set_watches.c. The
   * one that is under way does not count: a removeWatches behind it may remove
   * them. */
  if (on->missing_after[kind] != LK_REGISTERED) {
    on->asked[kind] = false;
    return false;
  }
  return !lk__list_empty(&on->kinds[kind]);
}

/* A setWatches under way that registers the watches of some kinds on one path.
 */
typedef struct watch_repair {
  lk_watched *on; /* the path; the repair has a reference */
  int64_t zxid;
  bool kinds[LK_ONE_SHOT_KINDS]; /* whether the setWatches registers the
                                    watches of the kind */
} watch_repair;

static void mark_repair_missing(const watch_repair *repair)
{
  for (int i = 0; i < LK_ONE_SHOT_KINDS; i++) {
    if (repair->kinds[i])
      lk__watched_mark_missing(repair->on, (lk_watch_kind)i, repair->zxid);
  }
}

/* Queue the setWatches. false: no memory. */
static bool queue_repair(lk_client *c, const watch_repair *repair)
{
  lk_bytes path = lk_bytes_of(repair->on->path, repair->on->map.len);
  struct lk_set_watches_request r = {.relative_zxid = repair->zxid};
  lk_vec *lists[] = {&r.data, &r.exist, &r.child};
  watch_repair *copy = lk__mem_new(&c->mem, sizeof *copy);
  lk_call_spec spec = {.op = LK_OPCODE_SET_WATCHES,
                       .rec = &lk__set_watches_request_record,
                       .value = &r,
                       .arg = copy};

  if (copy == NULL)
    return false;
  *copy = *repair;
  for (int i = 0; i < LK_ONE_SHOT_KINDS; i++)
    *lists[i] = lk__vec_of(&path, repair->kinds[i] ? 1 : 0);
  if (lk__request_queue(c, &spec) != 0) {
    lk__mem_free(&c->mem, copy);
    return false;
  }
  lk__watched_ref(repair->on);
  return true;
}

/* Register watches that are no longer covered. Without a connection there is
 * nothing to do, since each new connection registers all watches. If there is
 * no memory, the client reconnects, which registers these watches, too. */
static void repair_uncovered(lk_client *c, lk_watched *on)
{
  watch_repair repair = {.on = on, .zxid = c->session.last_zxid};
  bool any = false;

  if (c->connection.phase != LK_PHASE_LIVE || c->close.begun)
    return;
  for (int i = 0; i < LK_ONE_SHOT_KINDS; i++) {
    repair.kinds[i] = note_uncovered(c, on, (lk_watch_kind)i);
    any = any || repair.kinds[i];
  }
  if (!any || queue_repair(c, &repair))
    return;
  mark_repair_missing(&repair);
  c->set_watches.failed = true;
  lk__client_wake(c);
}

void lk__watch_repair_completed(lk_client *c, void *repair_of_request, int err)
{
  watch_repair *repair = repair_of_request;

  if (err != 0)
    mark_repair_missing(repair);
  if (err == LK_ERR_THROTTLED)
    lk__set_watches_retry_later(c);
  lk__watched_unref(&c->watches, repair->on);
  lk__mem_free(&c->mem, repair);
}

/* A removeWatches for a persistent watch removes all watches of the path on the
 * server, also those of requests that were sent before it and have no reply
 * yet. */
static void mark_removed(lk_watched *on)
{
  for (int i = 0; i < LK_ONE_SHOT_KINDS; i++)
    on->covered[i] = true; /* so that repair_uncovered() registers them */
  lk__watched_mark_all_bare(on);
}

/* The types of watches in a removeWatches request. */
enum { CHILDREN = 1, DATA = 2, ANY = 3 };

static int32_t remove_type(lk_watch_kind kind)
{
  if (lk__watch_stays(kind))
    return ANY;
  return kind == LK_WATCH_KIND_CHILD ? CHILDREN : DATA;
}

/* Send a removeWatches, unless another watch of the client needs the server's
 * watch. If none is sent, events arrive for which the client has no watch, and
 * are ignored. */
static void remove_on_server(lk_client *c, const lk_watch *w)
{
  struct lk_path_type_request r = {.type = remove_type(w->kind)};
  lk_call_spec spec = {.op = LK_OPCODE_REMOVE_WATCHES,
                       .rec = &lk__path_type_request_record,
                       .value = &r,
                       .chroot = "", /* w->on->path has the chroot already */
                       .path = w->on->path};

  if (c->connection.phase == LK_PHASE_LIVE && lk__request_refusal(c) == 0 &&
      lk__request_support_error(c, spec.op) == 0 && lk__watch_is_removable(w)) {
    if (lk__request_queue(c, &spec) == 0 && lk__watch_stays(w->kind))
      mark_removed(w->on);
  }
}

/* Drop a watch. One-shot watches that it covered may have to be registered. */
static void drop_watch(lk_client *c, lk_watch *w)
{
  lk_watched *on = w->on;

  lk__watched_ref(on);
  lk__watch_drop(&c->watches, w);
  repair_uncovered(c, on);
  lk__watched_unref(&c->watches, on);
}

/* A `bare` one-shot watch may be covered again by a persistent watch that was
 * requested later. That watch does not report earlier changes, so the one-shot
 * watches are registered once more by a setWatches behind it. */
static void reregister_behind(lk_client *c, lk_watched *on, lk_watch_kind kind)
{
  if (!lk__watched_covers(&c->watches, on, kind, LK_BY_SENT_REQUESTS))
    return; /* repair_uncovered() registers them */
  lk__watched_mark_missing(on, kind, c->session.last_zxid);
  lk__set_watches_retry_later(c);
}

static void make_watch_stand(lk_client *c, lk_watch *w, lk_watch_kind kind)
{
  bool bare = w->bare;

  lk__watch_stand(&c->watches, w, kind);
  if (bare)
    reregister_behind(c, w->on, kind);
  /* On the server a recursive watch replaces child watches, whose events it
   * does not report. */
  if (kind == LK_WATCH_KIND_RECURSIVE)
    w->on->covered[LK_WATCH_KIND_CHILD] = true;
  repair_uncovered(c, w->on);
}

void lk__watch_request_completed(lk_client *c, lk_watch *w, int32_t op, int err)
{
  bool node_is_absent = op == LK_OPCODE_EXISTS && err == LK_ERR_NO_NODE;
  bool stands = err == 0 || node_is_absent;
  /* An addWatch that has timed out will still be executed by the server. */
  bool timed_out = op == LK_OPCODE_ADD_WATCH && err == LK_ERR_DEADLINE;

  if (stands && w->cb != NULL) {
    make_watch_stand(c, w, node_is_absent ? LK_WATCH_KIND_EXIST : w->kind);
    return;
  }
  if ((stands && w->remove_at_reply) || timed_out)
    remove_on_server(c, w);
  if (!stands && lk__watch_stays(w->kind) && !w->unsent)
    lk__watched_mark_covered_bare(w->on);
  drop_watch(c, w);
}

void lk_watch_cancel(lk_client *c, lk_watch *handle, bool on_server)
{
  lk_watch *w = lk__watch_of(&c->watches, handle);

  if (w == NULL || w->cb == NULL)
    return; /* it has ended, or its last event is being reported */
  /* Whether the watch was taken out of its list. It is then about to get its
   * last event, and the server has no watch. */
  bool taken = lk__list_empty(&w->link);

  w->cb = NULL;
  if (!taken && !w->standing) {
    w->remove_at_reply = on_server; /* its request has no reply yet */
    return;
  }
  lk__client_begin_call(c);
  if (!taken && on_server)
    remove_on_server(c, w);
  drop_watch(c, w);
  lk__client_end_call(c);
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
