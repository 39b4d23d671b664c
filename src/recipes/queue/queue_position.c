/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/queue_position.h"

#include "recipes/queue/foreign_node.h"
#include "recipes/queue/sequence_limit.h"

/* ---- order -------------------------------------------------------------- */

/* Restore the heap `a` of `n` numbers, whose largest is on top, after element
 * `i` has changed: move the element down to its place. */
static void heap_sift_down(int64_t *a, size_t i, size_t n)
{
  int64_t sunk = a[i];

  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && a[child + 1] > a[child])
      child++;
    if (a[child] <= sunk)
      break;
    a[i] = a[child];
  }
  a[i] = sunk;
}

/* A heapsort: a list may be long, and qsort() may allocate memory. */
void lk__numbers_sort(int64_t *a, size_t n)
{
  for (size_t i = n / 2; i-- > 0;)
    heap_sift_down(a, i, n);
  while (n > 1) {
    int64_t top = a[0];

    n--;
    a[0] = a[n];
    a[n] = top;
    heap_sift_down(a, 0, n);
  }
}

/* A sort key is the number and the kind of a name in one integer, ordered by
 * the number: the number, then the family, then two bits for the side. */
enum { KEYS_PER_NUMBER = 64, KEYS_PER_FAMILY = 4 };

static int64_t sort_key_of(const lk_name *n)
{
  return n->number * KEYS_PER_NUMBER +
         (int64_t)n->kind->family * KEYS_PER_FAMILY + (int64_t)n->kind->side;
}

/* Division rounds towards 0, so the kind of a negative key is made positive. */
static int64_t sort_key_number(int64_t key)
{
  int64_t kind = (key % KEYS_PER_NUMBER + KEYS_PER_NUMBER) % KEYS_PER_NUMBER;

  return (key - kind) / KEYS_PER_NUMBER;
}

/* Whether two nodes of one number belong to a downgrade: the holder of the
 * write side creates a read node with the number of its write node, and perhaps
 * a second one while the first is being deleted. In ascending order, the later
 * key is then a reader's, and the earlier one a reader's or the writer's. */
static bool keys_are_downgrade(int64_t earlier, int64_t later)
{
  int64_t reader = LK_FAMILY_RW * KEYS_PER_FAMILY + LK_SIDE_READER;
  int64_t writer = LK_FAMILY_RW * KEYS_PER_FAMILY + LK_SIDE_WRITER;
  bool earlier_is_same_reader = earlier == later;
  bool earlier_is_its_writer = earlier == later - reader + writer;

  return later % KEYS_PER_NUMBER == reader &&
         (earlier_is_same_reader || earlier_is_its_writer);
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

/* Insert an entry by its number. If there is no room, the entry with the
 * smallest number is dropped. */
static void position_insert_nearest(lk_queue_position *p, lk_queue_entry entry)
{
  size_t i = p->nearest_count;

  if (i == LK_KEPT_PREDECESSORS && entry.number < p->nearest[i - 1].number)
    return;
  if (i < LK_KEPT_PREDECESSORS)
    p->nearest_count++;
  else
    i--;
  for (; i > 0 && p->nearest[i - 1].number < entry.number; i--)
    p->nearest[i] = p->nearest[i - 1];
  p->nearest[i] = entry;
}

static void position_add_predecessor(lk_queue_position *p, lk_queue_entry entry,
                                     const lk_node_kind *kind)
{
  if (p->predecessors == 0 || entry.number < p->head.number)
    p->head = entry;
  p->predecessors++;
  position_insert_nearest(p, entry);
  if (kind->family == LK_FAMILY_RW && kind->side == LK_SIDE_WRITER)
    p->has_rw_writer = true;
}

void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch)
{
  lk_name own_name;
  size_t keys = 0;

  memset(out, 0, sizeof *out);
  if (!lk__name_parse(role->format, own, &own_name) ||
      own_name.kind != role->kind)
    return;
  out->number = own_name.number;
  out->in_range = true;
  for (size_t i = 0; i < count; i++) {
    lk_name n;

    if (!lk__name_parse(role->format, names[i], &n) ||
        !lk__node_kinds_contend(role->kind, n.kind)) {
      if (lk__name_is_foreign(names[i]))
        out->foreign = names[i];
      continue;
    }
    scratch[keys++] = sort_key_of(&n);
    out->found = out->found || lk__names_are_equal(names[i], own);
    out->unsafe = out->unsafe || n.number < 0;
    out->in_range = out->in_range && lk__sequence_is_in_range(n.number);
    if (n.kind->family != role->kind->family)
      out->foreign = names[i];
    if (n.number < own_name.number && role->excludes(n.kind))
      position_add_predecessor(out, (lk_queue_entry){names[i], n.number},
                               n.kind);
  }
  out->unsafe = out->unsafe || !lk__sequence_is_in_range(own_name.number) ||
                keys_have_duplicates(scratch, keys);
}

size_t lk__names_count_excluding(const lk_role *role, const lk_bytes *names,
                                 size_t count)
{
  size_t excluding = 0;

  for (size_t i = 0; i < count; i++) {
    lk_name n;

    if (lk__name_parse(role->format, names[i], &n) &&
        lk__node_kinds_contend(role->kind, n.kind) && role->excludes(n.kind))
      excluding++;
  }
  return excluding;
}
