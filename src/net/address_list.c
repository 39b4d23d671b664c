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
  lk_address saved = a->list[i];

  a->list[i] = a->list[k];
  a->list[k] = saved;
}

static void address_list_shuffle(lk_address_list *a,
                                 lk_fork_check *random_source)
{
  for (size_t i = a->count; i > 1; i--)
    address_list_swap(a, random_below(i, random_source), i - 1);
}

/* The next attempt then tries another address, if there is one. */
static void address_list_move_last_used_to_end(lk_address_list *a)
{
  for (size_t i = 0; i < a->count; i++) {
    if (lk__address_equal(&a->list[i], &a->last_used)) {
      address_list_swap(a, i, a->count - 1);
      return;
    }
  }
}

bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random_source)
{
  lk_address *copy = lk__mem_resize(mem, a->list, count * sizeof *copy);

  if (copy == NULL)
    return false;
  memcpy(copy, list, count * sizeof *copy);
  a->list = copy;
  a->count = count;
  address_list_shuffle(a, random_source);
  address_list_move_last_used_to_end(a);
  return true;
}

const lk_address *lk__address_list_use(lk_address_list *a, uint32_t attempt)
{
  a->last_used = a->list[attempt % a->count];
  return &a->last_used;
}

void lk__address_list_free(lk_address_list *a, const lk_mem *mem)
{
  lk__mem_free(mem, a->list);
  lk__mem_free(mem, a->host);
}
