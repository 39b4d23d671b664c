/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model.h"

#include <stdlib.h>

/**
 * @file
 * One-shot watches, as many as one of a connection, a path and a kind. A watch
 * that an exists left on a missing node is one of data.
 */

struct sim_watch {
  sim_conn *conn;
  const sim_path *path;
  enum sim_watch_kind kind;
  sim_watch *next; /* on its path */
  sim_watch *prev;
  sim_watch *next_of; /* of its connection */
  sim_watch *prev_of;
};

static sim_watch **place(sim_watches *w, const sim_path *p,
                         enum sim_watch_kind kind)
{
  size_t cap = w->cap[kind];

  if (p->number >= cap) {
    size_t more = cap == 0 ? 256 : cap;

    while (more <= p->number)
      more *= 2;
    w->at[kind] = realloc(w->at[kind], more * sizeof(sim_watch *));
    memset(w->at[kind] + cap, 0, (more - cap) * sizeof(sim_watch *));
    w->cap[kind] = more;
  }
  return &w->at[kind][p->number];
}

static sim_watch *first(const sim_watches *w, const sim_path *p,
                        enum sim_watch_kind kind)
{
  return p->number < w->cap[kind] ? w->at[kind][p->number] : NULL;
}

static sim_watch *find(sim_conn *c, const sim_path *p, enum sim_watch_kind kind)
{
  sim_watch *x = first(&c->server->watches, p, kind);

  while (x != NULL && x->conn != c)
    x = x->next;
  return x;
}

void sim_watch_set(sim_conn *c, const sim_path *p, enum sim_watch_kind kind)
{
  sim_watches *w = &c->server->watches;
  sim_watch *x = w->spare;

  if (c->closed || find(c, p, kind) != NULL)
    return;
  if (x == NULL)
    x = lk__arena_take(&c->server->ensemble->arena, 1, sizeof *x);
  else
    w->spare = x->next;
  sim_watch **at = place(w, p, kind);

  *x = (sim_watch){
      .conn = c, .path = p, .kind = kind, .next = *at, .next_of = c->watches};
  if (*at != NULL)
    (*at)->prev = x;
  *at = x;
  if (c->watches != NULL)
    c->watches->prev_of = x;
  c->watches = x;
  w->count++;
}

static void drop(sim_watch *x)
{
  sim_watches *w = &x->conn->server->watches;

  *(x->prev == NULL ? place(w, x->path, x->kind) : &x->prev->next) = x->next;
  if (x->next != NULL)
    x->next->prev = x->prev;
  *(x->prev_of == NULL ? &x->conn->watches : &x->prev_of->next_of) = x->next_of;
  if (x->next_of != NULL)
    x->next_of->prev_of = x->prev_of;
  x->next = w->spare;
  w->spare = x;
  w->count--;
}

bool sim_watch_unset(sim_conn *c, const sim_path *p, enum sim_watch_kind kind)
{
  sim_watch *x = p == NULL ? NULL : find(c, p, kind);

  if (x == NULL)
    return false;
  drop(x);
  return true;
}

void sim_watches_drop(sim_conn *c)
{
  while (c->watches != NULL)
    drop(c->watches);
}

void sim_watches_free(sim_watches *w)
{
  for (int kind = 0; kind < SIM_WATCH_KINDS; kind++)
    free(w->at[kind]);
  *w = (sim_watches){0};
}

/* ---- firing ------------------------------------------------------------- */

/* A connection that may not read the node is told nothing, and its watch is
 * gone all the same. */
static void fire(sim_server *s, const sim_node *n, enum sim_watch_kind kind,
                 int32_t type)
{
  sim_watch *x;

  while ((x = first(&s->watches, n->key, kind)) != NULL) {
    sim_conn *c = x->conn;

    drop(x);
    /* One event for both kinds. */
    if (type == LK_EVENT_DELETED && kind == SIM_WATCH_DATA)
      sim_watch_unset(c, n->key, SIM_WATCH_CHILD);
    if ((n->perms & LK_PERM_READ) != 0)
      sim_serve_event(c, type, n->key);
  }
}

void sim_watches_created(sim_server *s, const sim_node *n)
{
  fire(s, n, SIM_WATCH_DATA, LK_EVENT_CREATED);
  fire(s, n->parent, SIM_WATCH_CHILD, LK_EVENT_CHILDREN);
}

void sim_watches_deleted(sim_server *s, const sim_node *n)
{
  fire(s, n, SIM_WATCH_DATA, LK_EVENT_DELETED);
  fire(s, n, SIM_WATCH_CHILD, LK_EVENT_DELETED);
  fire(s, n->parent, SIM_WATCH_CHILD, LK_EVENT_CHILDREN);
}

void sim_watches_data_set(sim_server *s, const sim_node *n)
{
  fire(s, n, SIM_WATCH_DATA, LK_EVENT_CHANGED);
}
