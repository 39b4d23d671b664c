/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/list.h"

#include "support/wire.h"

#include <stdlib.h>

lk_buf *list_begin(list *l, int32_t op)
{
  if (l->bytes.mem == NULL)
    l->bytes = wire_buf();
  if (l->count == l->room) {
    l->room = l->room * 2 + 16;
    l->items = realloc(l->items, l->room * sizeof *l->items);
    if (l->items == NULL)
      abort();
  }
  l->items[l->count] = (struct list_item){op, lk__buf_len(&l->bytes), 0};
  return &l->bytes;
}

void list_end(list *l)
{
  struct list_item *item = &l->items[l->count++];

  item->len = lk__buf_len(&l->bytes) - item->at;
}

lk_bytes list_at(const list *l, size_t i)
{
  const struct list_item *item = &l->items[i];

  return item->len == 0
             ? lk_bytes_of("", 0)
             : lk_bytes_of(lk__buf_bytes(&l->bytes) + item->at, item->len);
}

void list_drop_last(list *l)
{
  l->bytes.end -= l->items[--l->count].len;
}

void list_empty(list *l)
{
  lk__buf_consume(&l->bytes, lk__buf_len(&l->bytes));
  l->count = 0;
}

void list_free(list *l)
{
  lk__buf_free(&l->bytes);
  free(l->items);
}

static int compare_items(const list *a, size_t i, const list *b, size_t k)
{
  lk_bytes x = list_at(a, i), y = list_at(b, k);

  if (a->items[i].op != b->items[k].op)
    return a->items[i].op - b->items[k].op;
  if (x.len != y.len)
    return x.len > y.len ? 1 : -1;
  return memcmp(x.at, y.at, x.len);
}

/* Insertion sort, in which only items with opcode `op` change places. */
void list_sort_runs(list *l, int32_t op)
{
  for (size_t i = 1; i < l->count; i++) {
    for (size_t k = i;
         k > 0 && l->items[k].op == op && l->items[k - 1].op == op &&
         compare_items(l, k, l, k - 1) < 0;
         k--) {
      struct list_item item = l->items[k];

      l->items[k] = l->items[k - 1];
      l->items[k - 1] = item;
    }
  }
}

size_t list_first_difference(const list *a, const list *b)
{
  size_t i = 0;

  while (i < a->count && i < b->count && compare_items(a, i, b, i) == 0)
    i++;
  return i;
}
