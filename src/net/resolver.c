/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <string.h>

#include "base/mem.h"
#include "net/name_service.h"

struct lk_resolver {
  const lk_mem *mem;
  lk_name_service *service;
  lk_link running; /* outstanding queries */
  lk_link ended;   /* complete queries, for lk__resolver_deliver() */
};

/* ---- queries ------------------------------------------------------------- */

static lk_name_query *query_find(lk_resolver *r, const char *host)
{
  for (lk_link *l = r->running.next; l != &r->running; l = l->next) {
    lk_name_query *q = LK_OWNER(l, lk_name_query, link);

    if (strcmp(q->host, host) == 0)
      return q;
  }
  return NULL;
}

static void query_complete_lookups(lk_name_query *q)
{
  while (!lk__list_empty(&q->lookups)) {
    lk_lookup *l = LK_OWNER(q->lookups.next, lk_lookup, link);

    lk__list_remove(&l->link);
    l->done(l, q->list, q->count, q->count > 0 ? NULL : q->why);
  }
}

/* ---- the resolver -------------------------------------------------------- */

int lk__resolver_new(lk_resolver **out, lk_loop *loop,
                     const lk_fork_check *fork_check, const lk_mem *mem)
{
  lk_resolver *r = lk__mem_new(mem, sizeof *r);

  *out = r;
  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  r->mem = mem;
  lk__list_init(&r->running);
  lk__list_init(&r->ended);

  int err = lk__name_service_new(&r->service, loop, fork_check, mem);

  if (err != 0) {
    lk__mem_free(mem, r);
    *out = NULL;
  }
  return err;
}

void lk__resolver_free(lk_resolver *r, bool forked)
{
  if (r == NULL)
    return;
  lk__name_service_free(r->service, forked);
  lk__list_move(&r->ended, &r->running); /* so one loop frees all queries */
  while (!lk__list_empty(&r->ended))
    lk__name_query_free(LK_OWNER(r->ended.next, lk_name_query, link));
  lk__mem_free(r->mem, r);
}

bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host)
{
  lk_name_query *q = query_find(r, host);
  bool is_new = q == NULL;

  if (is_new)
    q = lk__name_query_new(r->mem, &r->ended, host);
  if (q == NULL)
    return false;
  lk__list_add(&q->lookups, &l->link);
  if (is_new) {
    lk__list_add(&r->running, &q->link);
    if (lk__name_query_needs_no_lookup(q))
      lk__name_query_complete(q, NULL);
    else
      lk__name_service_query(r->service, q);
  }
  return true;
}

void lk__lookup_cancel(lk_lookup *l)
{
  lk__list_remove(&l->link);
}

void lk__resolver_deliver(lk_resolver *r)
{
  if (lk__list_empty(&r->ended))
    return;
  while (!lk__list_empty(&r->ended)) {
    lk_name_query *q = LK_OWNER(r->ended.next, lk_name_query, link);

    query_complete_lookups(q);
    lk__name_query_free(q);
  }
  if (lk__list_empty(&r->running))
    lk__name_service_on_idle(r->service);
}
