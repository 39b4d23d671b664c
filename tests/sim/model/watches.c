/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file Watches. A connection has at most one watch for each path and kind
 * (data or children), and in newer servers mode. exists on a missing node sets
 * a data watch. addWatch sets a watch of each kind.
 */

struct sim_watch {
  sim_conn *conn;
  const sim_path *path;
  enum sim_watch_kind kind;
  enum sim_watch_mode mode;
  sim_watch *next; /* in the list of its path */
  sim_watch *prev;
  sim_watch *next_of_conn; /* in the list of its connection */
  sim_watch *prev_of_conn;
};

/* The place of the first watch on a path. */
static sim_watch **watch_list(sim_watches *w, const sim_path *p,
                              enum sim_watch_kind kind)
{
  size_t cap = w->cap[kind];

  if (p->number >= cap) {
    size_t more = cap == 0 ? 256 : cap;

    while (more <= p->number)
      more *= 2;
    w->of_path[kind] = realloc(w->of_path[kind], more * sizeof(sim_watch *));
    memset(w->of_path[kind] + cap, 0, (more - cap) * sizeof(sim_watch *));
    w->cap[kind] = more;
  }
  return &w->of_path[kind][p->number];
}

static sim_watch *first_watch(const sim_watches *w, const sim_path *p,
                              enum sim_watch_kind kind)
{
  return p->number < w->cap[kind] ? w->of_path[kind][p->number] : NULL;
}

/* Finds a watch that a new one with this mode would replace. */
static sim_watch *find_watch(sim_conn *c, const sim_path *p,
                             enum sim_watch_kind kind, enum sim_watch_mode mode)
{
  bool any_mode = mode == SIM_WATCH_ANY_MODE ||
                  !c->server->has[SERVER_WATCH_MODES_ARE_SEPARATE];
  sim_watch *x = first_watch(&c->server->watches, p, kind);

  while (x != NULL && (x->conn != c || (!any_mode && x->mode != mode)))
    x = x->next;
  return x;
}

static void set_mode(sim_watch *x, enum sim_watch_mode mode)
{
  size_t *nrecursive = &x->conn->server->watches.recursive[x->kind];

  if (x->mode == SIM_WATCH_RECURSIVE)
    (*nrecursive)--;
  x->mode = mode;
  if (mode == SIM_WATCH_RECURSIVE)
    (*nrecursive)++;
}

static sim_watch *add_watch(sim_conn *c, const sim_path *p,
                            enum sim_watch_kind kind)
{
  sim_watches *w = &c->server->watches;
  sim_watch **list = watch_list(w, p, kind), *x = w->spare;

  if (x == NULL)
    x = lk__arena_take(&c->server->ensemble->arena, 1, sizeof *x);
  else
    w->spare = x->next;
  *x = (sim_watch){.conn = c,
                   .path = p,
                   .kind = kind,
                   .mode = SIM_WATCH_ONCE,
                   .next = *list,
                   .next_of_conn = c->watches};
  if (*list != NULL)
    (*list)->prev = x;
  *list = x;
  if (c->watches != NULL)
    c->watches->prev_of_conn = x;
  c->watches = x;
  w->count++;
  return x;
}

void sim_watch_set(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                   enum sim_watch_mode mode)
{
  if (c->closed)
    return;
  sim_watch *x = find_watch(c, p, kind, mode);

  if (x == NULL)
    x = add_watch(c, p, kind);
  set_mode(x, mode);
}

static void remove_watch(sim_watch *x)
{
  sim_watches *w = &x->conn->server->watches;

  set_mode(x, SIM_WATCH_ONCE); /* it no longer counts as recursive */
  if (x->prev == NULL)
    *watch_list(w, x->path, x->kind) = x->next;
  else
    x->prev->next = x->next;
  if (x->next != NULL)
    x->next->prev = x->prev;
  if (x->prev_of_conn == NULL)
    x->conn->watches = x->next_of_conn;
  else
    x->prev_of_conn->next_of_conn = x->next_of_conn;
  if (x->next_of_conn != NULL)
    x->next_of_conn->prev_of_conn = x->prev_of_conn;
  x->next = w->spare;
  w->spare = x;
  w->count--;
}

bool sim_watch_remove(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                      enum sim_watch_mode mode)
{
  sim_watch *x = p == NULL ? NULL : find_watch(c, p, kind, mode);

  if (x == NULL)
    return false;
  for (; x != NULL; x = find_watch(c, p, kind, mode))
    remove_watch(x);
  return true;
}

bool sim_watch_exists(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                      enum sim_watch_mode mode)
{
  const bool *has = c->server->has;
  bool of_all =
      has[SERVER_PERSISTENT_WATCHES] && !has[SERVER_WATCH_MODES_ARE_SEPARATE];

  if (p == NULL)
    return false;
  return of_all ? first_watch(&c->server->watches, p, kind) != NULL
                : find_watch(c, p, kind, mode) != NULL;
}

size_t sim_watches_of_conn(const sim_conn *c, enum sim_watch_kind kind)
{
  size_t count = 0;

  for (const sim_watch *x = c->watches; x != NULL; x = x->next_of_conn) {
    if (x->kind == kind)
      count++;
  }
  return count;
}

void sim_watches_remove_of_conn(sim_conn *c)
{
  while (c->watches != NULL)
    remove_watch(c->watches);
}

void sim_watches_free(sim_watches *w)
{
  for (int kind = 0; kind < SIM_WATCH_KINDS; kind++)
    free(w->of_path[kind]);
  *w = (sim_watches){0};
}

/* ---- sending events ----------------------------------------------------- */

/* Sends an event to a connection, unless the connection has received the event
 * already or its client may not read the node. */
static void notify(sim_conn *c, const sim_node *n, int32_t type)
{
  sim_server *s = c->server;

  if (c->last_event == s->watches.events)
    return;
  c->last_event = s->watches.events;
  if (!s->has[SERVER_EVENTS_NEED_READ] ||
      sim_access_allows(n->access, c->ids, LK_PERM_READ))
    sim_serve_event(c, type, n->key,
                    s->has[SERVER_EVENTS_HAVE_ZXIDS] ? s->tree.zxid
                                                     : SIM_NO_ZXID);
}

/* Sends the event to the recursive watches on the nodes above `n`. */
static void fire_recursive_above(sim_server *s, const sim_node *n,
                                 enum sim_watch_kind kind, int32_t type)
{
  const sim_path *p = n->key->parent;

  for (; p != NULL && s->watches.recursive[kind] > 0; p = p->parent) {
    for (sim_watch *x = first_watch(&s->watches, p, kind); x != NULL;
         x = x->next) {
      if (x->mode == SIM_WATCH_RECURSIVE)
        notify(x->conn, n, type);
    }
  }
}

static void fire_watches(sim_server *s, const sim_node *n,
                         enum sim_watch_kind kind, int32_t type)
{
  sim_watch *next;

  for (sim_watch *x = first_watch(&s->watches, n->key, kind); x != NULL;
       x = next) {
    sim_conn *c = x->conn;

    next = x->next;
    if (x->mode == SIM_WATCH_RECURSIVE && type == LK_EVENT_CHILDREN)
      continue;
    if (x->mode == SIM_WATCH_ONCE)
      remove_watch(x);
    notify(c, n, type);
  }
  if (type != LK_EVENT_CHILDREN)
    fire_recursive_above(s, n, kind, type);
}

void sim_watches_created(sim_server *s, const sim_node *n)
{
  s->watches.events++;
  fire_watches(s, n, SIM_WATCH_DATA, LK_EVENT_CREATED);
  s->watches.events++;
  fire_watches(s, n->parent, SIM_WATCH_CHILD, LK_EVENT_CHILDREN);
}

/* A connection with watches of both kinds receives one event. */
void sim_watches_deleted(sim_server *s, const sim_node *n)
{
  s->watches.events++;
  fire_watches(s, n, SIM_WATCH_DATA, LK_EVENT_DELETED);
  fire_watches(s, n, SIM_WATCH_CHILD, LK_EVENT_DELETED);
  s->watches.events++;
  fire_watches(s, n->parent, SIM_WATCH_CHILD, LK_EVENT_CHILDREN);
}

void sim_watches_data_set(sim_server *s, const sim_node *n)
{
  s->watches.events++;
  fire_watches(s, n, SIM_WATCH_DATA, LK_EVENT_CHANGED);
}
