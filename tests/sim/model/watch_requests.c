/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/reads.h"

/**
 * @file Requests about watches: setWatches after a reconnect, addWatch,
 * removeWatches, checkWatches.
 */

/* The lists of setWatches, and those that only setWatches2 has. */
enum list {
  LIST_DATA,
  LIST_EXIST,
  LIST_CHILD,
  SET_WATCHES_LISTS,
  LIST_PERSISTENT = SET_WATCHES_LISTS,
  LIST_RECURSIVE,
  SET_WATCHES2_LISTS
};

/* Sends the event that the client has missed after the zxid `since`, or
 * registers the one-shot watch. */
static void reregister_watch(sim_conn *c, lk_bytes path, int64_t since,
                             enum list list)
{
  const sim_node *n = sim_node_at(c, path);
  int32_t missed = 0;

  if (list == LIST_EXIST)
    missed = n == NULL ? 0 : LK_EVENT_CREATED;
  else if (n == NULL)
    missed = LK_EVENT_DELETED;
  else if (list == LIST_DATA && n->stat.mzxid > since)
    missed = LK_EVENT_CHANGED;
  else if (list == LIST_CHILD && n->stat.pzxid > since)
    missed = LK_EVENT_CHILDREN;
  if (missed != 0 && n != NULL &&
      c->server->has[SERVER_MISSED_EVENTS_NEED_READ] &&
      !sim_access_allows(n->access, c->ids, LK_PERM_READ))
    return;
  if (missed != 0)
    sim_serve_event(c, missed, sim_watched_path(c, path), SIM_NO_ZXID);
  else
    sim_watch_set(c, sim_watched_path(c, path),
                  list == LIST_CHILD ? SIM_WATCH_CHILD : SIM_WATCH_DATA,
                  SIM_WATCH_ONCE);
}

/* Sets a persistent or a recursive watch. */
static void add_persistent_watch(sim_conn *c, lk_bytes path,
                                 enum sim_watch_mode mode)
{
  sim_watch_set(c, sim_watched_path(c, path), SIM_WATCH_DATA, mode);
  sim_watch_set(c, sim_watched_path(c, path), SIM_WATCH_CHILD, mode);
}

/* Whether a list is null, or has an entry that cannot be a path. */
static bool lists_are_invalid(const lk_vec *lists, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const lk_bytes *paths = lists[i].items;

    if (paths == NULL)
      return true;
    for (size_t k = 0; k < lists[i].count; k++) {
      if (paths[k].at == NULL || sim_has_nul(paths[k]))
        return true;
    }
  }
  return false;
}

void sim_set_watches(sim_read_request *r, lk_reader *in)
{
  struct lk_set_watches2_request q = {.one_shot = {0}};
  bool is_set_watches2 = r->op == LK_OPCODE_SET_WATCHES2;
  int err =
      is_set_watches2
          ? lk__record_decode(&lk__set_watches2_request_record, &q, in,
                              &r->c->server->ensemble->scratch)
          : lk__record_decode(&lk__set_watches_request_record, &q.one_shot, in,
                              &r->c->server->ensemble->scratch);
  int nlists = is_set_watches2 ? SET_WATCHES2_LISTS : SET_WATCHES_LISTS;
  const lk_vec lists[SET_WATCHES2_LISTS] = {q.one_shot.data, q.one_shot.exist,
                                            q.one_shot.child, q.persistent,
                                            q.recursive};

  if (err != 0 || lists_are_invalid(lists, (size_t)nlists)) {
    sim_reply_without_body(r, LK_ERR_MARSHALLING);
    return;
  }
  for (int list = 0; list < nlists; list++) {
    const lk_bytes *paths = lists[list].items;

    for (size_t i = 0; i < lists[list].count; i++) {
      if (list == LIST_PERSISTENT)
        add_persistent_watch(r->c, paths[i], SIM_WATCH_PERSISTENT);
      else if (list == LIST_RECURSIVE)
        add_persistent_watch(r->c, paths[i], SIM_WATCH_RECURSIVE);
      else
        reregister_watch(r->c, paths[i], q.one_shot.relative_zxid,
                         (enum list)list);
    }
  }
  sim_reply_without_body(r, 0);
}

static void write_no_error(lk_writer *w, const void *arg)
{
  (void)arg;
  lk__writer_int(w, 0);
}

void sim_add_watch(sim_read_request *r, lk_reader *in)
{
  struct lk_add_watch_request q;

  if (lk__record_decode(&lk__add_watch_request_record, &q, in, NULL) != 0 ||
      q.path.at == NULL || sim_has_nul(q.path) ||
      q.mode < SIM_WATCH_PERSISTENT || q.mode > SIM_WATCH_RECURSIVE) {
    sim_reply_without_body(r, LK_ERR_MARSHALLING);
    return;
  }
  add_persistent_watch(r->c, q.path, (enum sim_watch_mode)q.mode);
  sim_serve(r->c, r->xid, 0, write_no_error, NULL);
}

/* Whether there is a watch of this kind: of this client for removeWatches,
 * which removes it; of any client for checkWatches. */
static bool remove_or_check(const sim_read_request *r, lk_bytes path,
                            enum sim_watch_kind kind, enum sim_watch_mode mode)
{
  sim_path *p = sim_watched_path(r->c, path);

  return r->op == LK_OPCODE_CHECK_WATCHES
             ? sim_watch_exists(r->c, p, kind, mode)
             : sim_watch_remove(r->c, p, kind, mode);
}

/* The types of watches in removeWatches and checkWatches. */
enum watch_type { CHILDREN = 1, DATA, ANY, PERSISTENT, RECURSIVE };

static enum sim_watch_mode mode_of(const sim_server *s, int32_t type)
{
  if (type == ANY || !s->has[SERVER_WATCH_MODES_ARE_SEPARATE])
    return SIM_WATCH_ANY_MODE;
  switch (type) {
  case PERSISTENT: return SIM_WATCH_PERSISTENT;
  case RECURSIVE: return SIM_WATCH_RECURSIVE;
  default: return SIM_WATCH_ONCE;
  }
}

void sim_remove_watches(sim_read_request *r, lk_reader *in)
{
  const sim_server *s = r->c->server;
  int last_type = s->has[SERVER_WATCH_MODES_ARE_SEPARATE] ? RECURSIVE : ANY;
  struct lk_path_type_request q;

  if (lk__record_decode(&lk__path_type_request_record, &q, in, NULL) != 0 ||
      q.path.at == NULL || sim_has_nul(q.path) || q.type < CHILDREN ||
      q.type > last_type) {
    sim_reply_without_body(r, LK_ERR_MARSHALLING);
    return;
  }
  enum sim_watch_mode mode = mode_of(s, q.type);
  bool child_found =
      q.type != DATA && remove_or_check(r, q.path, SIM_WATCH_CHILD, mode);
  bool data_found =
      q.type != CHILDREN && remove_or_check(r, q.path, SIM_WATCH_DATA, mode);

  sim_reply_without_body(r, child_found || data_found ? 0 : LK_ERR_NO_WATCHER);
}
