/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/name_service.h"

struct lk_resolver {
  const lk_mem *mem;
  lk_name_service *service;
  lk_link running; /* queries under way */
  lk_link ended;   /* queries whose lookups are to be completed */
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

static lk_name_query *query_new(lk_resolver *r, const char *host)
{
  size_t size = strlen(host) + 1;
  lk_name_query *q = lk__mem_new(r->mem, sizeof *q + size);

  if (q == NULL)
    return NULL;
  q->resolver = r;
  memcpy(q->host, host, size);
  lk__list_init(&q->lookups);
  lk__list_add(&r->running, &q->link);
  return q;
}

static void query_free(lk_name_query *q)
{
  const lk_mem *mem = q->resolver->mem;

  while (!lk__list_empty(&q->lookups))
    lk__list_remove(q->lookups.next);
  lk__list_remove(&q->link);
  lk__mem_free(mem, q->list);
  lk__mem_free(mem, q);
}

static bool query_has_address(const lk_name_query *q, const lk_address *a)
{
  for (size_t i = 0; i < q->count; i++)
    if (lk__address_equal(&q->list[i], a))
      return true;
  return false;
}

void lk__name_query_add_address(lk_name_query *q,
                                const struct sockaddr *address)
{
  lk_address a;

  if (!lk__address_copy(&a, address))
    return;
  lk__address_set_port(&a, 0);
  if (query_has_address(q, &a))
    return;
  if (q->count == q->cap) {
    size_t cap = q->cap == 0 ? 4 : 2 * q->cap;
    lk_address *list =
        lk__mem_resize(q->resolver->mem, q->list, cap * sizeof *list);

    q->no_memory = list == NULL;
    if (list == NULL)
      return;
    q->list = list;
    q->cap = cap;
  }
  q->list[q->count++] = a;
}

void lk__name_query_complete(lk_name_query *q, const char *why)
{
  if (why == NULL)
    why = q->no_memory ? "out of memory" : "no address";
  snprintf(q->why, sizeof q->why, "resolve %.80s: %s", q->host, why);
  lk__list_remove(&q->link);
  lk__list_add(&q->resolver->ended, &q->link);
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

int lk__resolver_new(lk_resolver **out, lk_loop *loop, const lk_mem *mem)
{
  lk_resolver *r = lk__mem_new(mem, sizeof *r);

  *out = r;
  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  r->mem = mem;
  lk__list_init(&r->running);
  lk__list_init(&r->ended);

  int err = lk__name_service_new(&r->service, loop, mem);

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
  lk__list_move(&r->ended, &r->running);
  while (!lk__list_empty(&r->ended))
    query_free(LK_OWNER(r->ended.next, lk_name_query, link));
  lk__mem_free(r->mem, r);
}

bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host)
{
  lk_name_query *q = query_find(r, host);
  bool is_new = q == NULL;

  if (is_new)
    q = query_new(r, host);
  if (q == NULL)
    return false;
  lk__list_add(&q->lookups, &l->link);
  if (is_new)
    lk__name_service_query(r->service, q);
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
    query_free(q);
  }
  if (lk__list_empty(&r->running))
    lk__name_service_idle(r->service);
}
