/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/name_query.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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

/* ---- localhost ----------------------------------------------------------- */

/* Whether RFC 6761 (section 6.3) reserves the name for loopback addresses. */
static bool is_localhost(const char *host)
{
  static const char name[] = "localhost";
  const size_t name_len = sizeof name - 1;
  size_t len = strlen(host);

  if (len > 0 && host[len - 1] == '.')
    len--; /* the root of the name space, which may be written */
  if (len < name_len)
    return false;
  size_t labels_before = len - name_len;

  return strncasecmp(host + labels_before, name, name_len) == 0 &&
         (labels_before == 0 || host[labels_before - 1] == '.');
}

static void query_add_loopback(lk_name_query *q)
{
  static const char *const literals[] = {"127.0.0.1", "::1"};

  for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
    lk_address a;

    if (lk__address_parse(&a, literals[i]))
      lk__name_query_add_address(q, &a.any);
  }
}

bool lk__name_query_needs_no_lookup(const lk_name_query *q)
{
  return is_localhost(q->host) && access("/etc/hosts", R_OK) != 0;
}

/* The hosts file comes first: an administrator may give localhost one address
   only, as where IPv6 is switched off, or "a.localhost" another one. */
void lk__name_query_complete(lk_name_query *q, const char *why)
{
  if (q->count == 0 && is_localhost(q->host))
    query_add_loopback(q);
  if (why == NULL)
    why = q->no_memory ? "out of memory" : "no address";
  /* The lookups get this text only if there is no address. */
  snprintf(q->why, sizeof q->why, "resolve %.80s: %s", q->host, why);
  lk__list_remove(&q->link);
  lk__list_add(q->ended, &q->link);
}
