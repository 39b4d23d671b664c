/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <stdio.h>
#include <string.h>

struct lk_resolver {
  const lk_mem *mem;
  lk_name_service *names;
  lk_link asked; /* queries under way */
  lk_link ended; /* to be handed out */
};

int lk__resolver_new(lk_resolver **out, struct ev_loop *loop, const lk_mem *mem)
{
  lk_resolver *r = lk__mem_new(mem, sizeof *r);

  *out = r;
  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  r->mem = mem;
  lk__list_init(&r->asked);
  lk__list_init(&r->ended);

  int err = lk__name_service_new(&r->names, loop, mem);

  if (err != 0) {
    lk__mem_free(mem, r);
    *out = NULL;
  }
  return err;
}

static void drop(lk_name_query *q)
{
  const lk_mem *mem = q->resolver->mem;

  while (!lk__list_empty(&q->lookups))
    lk__list_remove(q->lookups.next);
  lk__list_remove(&q->link);
  lk__mem_free(mem, q->list);
  lk__mem_free(mem, q);
}

void lk__resolver_free(lk_resolver *r, bool forked)
{
  if (r == NULL)
    return;
  lk__name_service_free(r->names, forked);
  lk__list_move(&r->ended, &r->asked);
  while (!lk__list_empty(&r->ended))
    drop(LK_OWNER(r->ended.next, lk_name_query, link));
  lk__mem_free(r->mem, r);
}

static lk_name_query *find(lk_resolver *r, const char *host)
{
  for (lk_link *l = r->asked.next; l != &r->asked; l = l->next) {
    lk_name_query *q = LK_OWNER(l, lk_name_query, link);

    if (strcmp(q->host, host) == 0)
      return q;
  }
  return NULL;
}

static lk_name_query *make(lk_resolver *r, const char *host)
{
  size_t size = strlen(host) + 1;
  lk_name_query *q = lk__mem_new(r->mem, sizeof *q + size);

  if (q == NULL)
    return NULL;
  q->resolver = r;
  memcpy(q->host, host, size);
  lk__list_init(&q->lookups);
  lk__list_add(&r->asked, &q->link);
  return q;
}

bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host)
{
  lk_name_query *q = find(r, host);
  bool fresh = q == NULL;

  if (fresh)
    q = make(r, host);
  if (q == NULL)
    return false;
  lk__list_add(&q->lookups, &l->link);
  if (fresh)
    lk__name_service_query(r->names, q);
  return true;
}

void lk__lookup_cancel(lk_lookup *l)
{
  lk__list_remove(&l->link);
}

static void hand_out(lk_name_query *q)
{
  while (!lk__list_empty(&q->lookups)) {
    lk_lookup *l = LK_OWNER(q->lookups.next, lk_lookup, link);

    lk__list_remove(&l->link);
    l->done(l, q->list, q->count, q->count > 0 ? NULL : q->why);
  }
}

void lk__resolver_deliver(lk_resolver *r)
{
  if (lk__list_empty(&r->ended))
    return;
  while (!lk__list_empty(&r->ended)) {
    lk_name_query *q = LK_OWNER(r->ended.next, lk_name_query, link);

    hand_out(q);
    drop(q);
  }
  if (lk__list_empty(&r->asked))
    lk__name_service_idle(r->names);
}

static bool known(const lk_name_query *q, const lk_address *a)
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
  if (known(q, &a))
    return;
  if (q->count == q->cap) {
    size_t cap = q->cap == 0 ? 4 : 2 * q->cap;
    lk_address *list =
        lk__mem_resize(q->resolver->mem, q->list, cap * sizeof *list);

    q->starved = list == NULL;
    if (list == NULL)
      return;
    q->list = list;
    q->cap = cap;
  }
  q->list[q->count++] = a;
}

void lk__name_query_complete(lk_name_query *q, const char *trouble)
{
  if (trouble == NULL)
    trouble = q->starved ? "out of memory" : "no address";
  snprintf(q->why, sizeof q->why, "resolve %.80s: %s", q->host, trouble);
  lk__list_remove(&q->link);
  lk__list_add(&q->resolver->ended, &q->link);
}
