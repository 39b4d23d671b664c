/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/queue_position.h"
#include "recipes/queue/sequence_limit.h"

/* ---- order -------------------------------------------------------------- */

/* Sink item `i` of the heap `a` of `n`, largest on top. */
static void heap_sink(int64_t *a, size_t i, size_t n)
{
  int64_t v = a[i];

  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && a[child + 1] > a[child])
      child++;
    if (a[child] <= v)
      break;
    a[i] = a[child];
  }
  a[i] = v;
}

/* In place, since a list may be long and qsort() may allocate. */
void lk__numbers_sort(int64_t *a, size_t n)
{
  for (size_t i = n / 2; i-- > 0;)
    heap_sink(a, i, n);
  while (n > 1) {
    int64_t top = a[0];

    n--;
    a[0] = a[n];
    a[n] = top;
    heap_sink(a, 0, n);
  }
}

/* Number and kind of a name in one integer, ordered by the number. */
static int64_t sort_key_of(const lk_name *n)
{
  return n->number * 64 + (int64_t)n->kind->family * 4 + (int64_t)n->kind->side;
}

static int64_t sort_key_number(int64_t key)
{
  return (key - (key % 64 + 64) % 64) / 64;
}

/* The holder of the write side of a read-write lock creates a READ node with
 * the number of its WRIT node, and perhaps another while the first is being
 * deleted. No other nodes have the same number. */
static bool keys_are_downgrade(int64_t a, int64_t b)
{
  int64_t pair = LK_FAMILY_RW * 4;

  return b % 64 == pair + LK_SIDE_READER && (b == a || b == a + 1);
}

static bool keys_have_duplicates(int64_t *keys, size_t count)
{
  lk__numbers_sort(keys, count);
  for (size_t i = 1; i < count; i++) {
    if (sort_key_number(keys[i]) == sort_key_number(keys[i - 1]) &&
        !keys_are_downgrade(keys[i - 1], keys[i]))
      return true;
  }
  return false;
}

/* ---- position in the queue ---------------------------------------------- */

static void position_insert_nearest(lk_queue_position *p, lk_queue_entry r)
{
  size_t i = p->near_count;

  if (i == LK_KEPT_PREDECESSORS && r.number < p->near[i - 1].number)
    return;
  if (i < LK_KEPT_PREDECESSORS)
    p->near_count++;
  else
    i--;
  for (; i > 0 && p->near[i - 1].number < r.number; i--)
    p->near[i] = p->near[i - 1];
  p->near[i] = r;
}

static void position_add_predecessor(lk_queue_position *p, lk_queue_entry r,
                                     const lk_node_kind *kind)
{
  if (p->predecessors == 0 || r.number < p->head.number)
    p->head = r;
  p->predecessors++;
  position_insert_nearest(p, r);
  if (kind->family == LK_FAMILY_RW && kind->side == LK_SIDE_WRITER)
    p->has_rw_writer = true;
}

void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch)
{
  lk_name us;
  size_t keys = 0;

  memset(out, 0, sizeof *out);
  if (!lk__name_parse(role->format, own, &us) || us.kind != role->kind)
    return;
  out->number = us.number;
  out->in_range = true;
  for (size_t i = 0; i < count; i++) {
    lk_name n;

    if (!lk__name_parse(role->format, names[i], &n) ||
        !lk__node_kinds_contend(role->kind, n.kind)) {
      if (lk__name_looks_like_contender(names[i]))
        out->foreign = names[i];
      continue;
    }
    scratch[keys++] = sort_key_of(&n);
    out->found = out->found || lk__names_are_equal(names[i], own);
    out->unsafe = out->unsafe || n.number < 0;
    out->in_range = out->in_range && lk__sequence_is_in_range(n.number);
    if (n.kind->family != role->kind->family)
      out->foreign = names[i];
    if (n.number < us.number && role->excludes(n.kind))
      position_add_predecessor(out, (lk_queue_entry){names[i], n.number},
                               n.kind);
  }
  out->unsafe = out->unsafe || !lk__sequence_is_in_range(us.number) ||
                keys_have_duplicates(scratch, keys);
}

size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count)
{
  size_t excluding = 0;

  for (size_t i = 0; i < count; i++) {
    lk_name n;

    excluding += lk__name_parse(role->format, names[i], &n) &&
                 lk__node_kinds_contend(role->kind, n.kind) &&
                 role->excludes(n.kind);
  }
  return excluding;
}
