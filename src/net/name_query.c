/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/name_query.h"

#include <stdio.h>
#include <string.h>

enum { INITIAL_CAPACITY = 4 };

lk_name_query *lk__name_query_new(const lk_mem *mem, lk_link *ended,
                                  const char *host)
{
  size_t size = strlen(host) + 1;
  lk_name_query *q = lk__mem_new(mem, sizeof *q + size);

  if (q == NULL)
    return NULL;
  q->mem = mem;
  q->ended = ended;
  memcpy(q->host, host, size);
  lk__list_init(&q->link);
  lk__list_init(&q->lookups);
  return q;
}

void lk__name_query_free(lk_name_query *q)
{
  const lk_mem *mem = q->mem;

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
  if (q->count == q->capacity) {
    size_t capacity = q->capacity == 0 ? INITIAL_CAPACITY : 2 * q->capacity;
    lk_address *list = lk__mem_resize(q->mem, q->list, capacity * sizeof *list);

    if (list == NULL) {
      q->no_memory = true;
      return;
    }
    q->list = list;
    q->capacity = capacity;
  }
  q->list[q->count++] = a;
}

void lk__name_query_complete(lk_name_query *q, const char *why)
{
  if (why == NULL)
    why = q->no_memory ? "out of memory" : "no address";
  /* The lookups get this text only if there is no address. */
  snprintf(q->why, sizeof q->why, "resolve %.80s: %s", q->host, why);
  lk__list_remove(&q->link);
  lk__list_add(q->ended, &q->link);
}
