/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/address_list.h"

#include <string.h>

bool lk__address_list_set_host(lk_address_list *a, const lk_mem *mem,
                               const char *host)
{
  if (a->host != NULL && strcmp(a->host, host) == 0)
    return true;

  char *copy = lk__mem_text(mem, host);

  if (copy == NULL)
    return false;
  lk__mem_free(mem, a->host);
  a->host = copy;
  a->count = 0;
  return true;
}

/* A random number below `count`. */
static size_t random_below(size_t count, lk_fork_check *random_source)
{
  uint32_t number;

  lk__fork_check_random(random_source, &number, sizeof number);
  return number % count;
}

const lk_address *lk__address_pick(const lk_address *list, size_t count,
                                   lk_fork_check *random_source)
{
  return &list[random_below(count, random_source)];
}

static void address_list_swap(lk_address_list *a, size_t i, size_t k)
{
  lk_listed_address saved = a->list[i];

  a->list[i] = a->list[k];
  a->list[k] = saved;
}

static void address_list_shuffle(lk_address_list *a,
                                 lk_fork_check *random_source)
{
  for (size_t i = a->count; i > 1; i--)
    address_list_swap(a, random_below(i, random_source), i - 1);
}

/* NULL: it is not in the list. */
static lk_listed_address *address_list_find(const lk_address_list *a,
                                            const lk_address *address)
{
  for (size_t i = 0; i < a->count; i++)
    if (lk__address_equal(&a->list[i].address, address))
      return &a->list[i];
  return NULL;
}

bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random_source)
{
  lk_listed_address *copy = lk__mem_new(mem, count * sizeof *copy);

  if (copy == NULL)
    return false;
  for (size_t i = 0; i < count; i++) {
    const lk_listed_address *before = address_list_find(a, &list[i]);

    copy[i].address = list[i];
    copy[i].tried = before != NULL && before->tried;
  }
  lk__mem_free(mem, a->list);
  a->list = copy;
  a->count = count;
  address_list_shuffle(a, random_source);
  return true;
}

void lk__address_list_begin_pass(lk_address_list *a)
{
  for (size_t i = 0; i < a->count; i++)
    a->list[i].tried = false;
}

lk_listed_address *lk__address_list_next(lk_address_list *a, int family)
{
  lk_listed_address *other_family = NULL, *last_used = NULL;

  for (size_t i = 0; i < a->count; i++) {
    lk_listed_address *e = &a->list[i];

    if (e->tried)
      continue;
    if (lk__address_equal(&e->address, &a->last_used))
      last_used = e;
    else if (e->address.any.sa_family == family)
      return e;
    else if (other_family == NULL)
      other_family = e;
  }
  return other_family != NULL ? other_family : last_used;
}

void lk__address_list_note_untried(lk_address_list *a,
                                   const lk_address *address)
{
  lk_listed_address *e = address_list_find(a, address);

  if (e != NULL)
    e->tried = false;
}

size_t lk__address_list_count_untried(const lk_address_list *a)
{
  size_t count = 0;

  for (size_t i = 0; i < a->count; i++)
    if (!a->list[i].tried)
      count++;
  return count;
}

void lk__address_list_free(lk_address_list *a, const lk_mem *mem)
{
  lk__mem_free(mem, a->list);
  lk__mem_free(mem, a->host);
}
