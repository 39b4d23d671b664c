/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/queue/own_node_candidates.h"
#include "recipes/queue/queue_position.h"
#include "recipes/queue/sequence_limit.h"

void lk__own_node_candidates_free(lk_own_node_candidates *s, const lk_mem *mem)
{
  lk__mem_free(mem, s->numbers);
  *s = (lk_own_node_candidates){0};
}

/* If the token is known, the name is known as well, and only the node of that
 * name can be the own one. */
static bool name_may_be_own(const lk_own_node *own, lk_bytes name)
{
  const char *own_name = lk__own_node_name(own);

  return own->token == 0 || (name.len == strlen(own_name) &&
                             memcmp(name.at, own_name, name.len) == 0);
}

int lk__own_node_candidates_set(lk_own_node_candidates *s, const lk_mem *mem,
                                const lk_own_node *own, const lk_bytes *names,
                                size_t count)
{
  int64_t number;

  lk__own_node_candidates_free(s, mem);
  s->numbers = lk__mem_new(mem, count * sizeof *s->numbers);
  if (s->numbers == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    if (lk__name_has_base(names[i], lk__own_node_base(own), &number) &&
        name_may_be_own(own, names[i]))
      s->numbers[s->count++] = number;
  }
  lk__numbers_sort(s->numbers, s->count);
  s->total = s->next = s->count;
  /* The numbers are sorted: if the first and the last are in range, all are. */
  s->in_order = s->count > 0 && lk__sequence_is_in_range(s->numbers[0]) &&
                lk__sequence_is_in_range(s->numbers[s->count - 1]);
  return 0;
}

bool lk__own_node_candidates_rewind(lk_own_node_candidates *s)
{
  if (s->found || s->err != 0 || !s->saw_revoked || s->takes_revoked)
    return false;
  s->takes_revoked = true;
  s->rest_is_older = false;
  s->count = s->next = s->total;
  return true;
}
