/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/heap.h"

/* Merge two heaps, of which neither root has a right neighbour. Returns the
 * root of the merged heap. */
static lk_heap_node *merge_heaps(lk_heap_node *a, lk_heap_node *b)
{
  lk_heap_node *top = b->at < a->at ? b : a;
  lk_heap_node *low = top == a ? b : a;

  low->next = top->child;
  if (low->next != NULL)
    low->next->prev = low;
  low->prev = top;
  top->child = low;
  return top;
}

/* Merge the children of a removed node into one heap. The two passes of a
 * pairing heap, first neighbours in pairs from left to right, then these pairs
 * from right to left, make a removal cost O(log n), amortised. */
static lk_heap_node *merge_children(lk_heap_node *first)
{
  lk_heap_node *pairs = NULL; /* merged pairs, the last one first */
  lk_heap_node *top = NULL;

  while (first != NULL) {
    lk_heap_node *a = first;
    lk_heap_node *b = a->next;

    first = b == NULL ? NULL : b->next;
    a->next = NULL;
    if (b != NULL) {
      b->next = NULL;
      a = merge_heaps(a, b);
    }
    a->next = pairs;
    pairs = a;
  }
  while (pairs != NULL) {
    lk_heap_node *a = pairs;

    pairs = a->next;
    a->next = NULL;
    top = top == NULL ? a : merge_heaps(top, a);
  }
  return top;
}

/* The `prev` of a root is the root itself, since NULL stands for a node that is
 * in no heap. */
static void set_root(lk_heap *h, lk_heap_node *n)
{
  h->root = n;
  if (n != NULL)
    n->prev = n;
}

void lk__heap_add(lk_heap *h, lk_heap_node *n, int64_t at)
{
  n->at = at;
  n->child = NULL;
  n->next = NULL;
  set_root(h, h->root == NULL ? n : merge_heaps(h->root, n));
}

/* Take a node that is not the root out of its parent's list of children. The
 * `prev` of a first child is the parent. */
static void detach_node(lk_heap_node *n)
{
  if (n->prev->child == n)
    n->prev->child = n->next;
  else
    n->prev->next = n->next;
  if (n->next != NULL)
    n->next->prev = n->prev;
}

void lk__heap_remove(lk_heap *h, lk_heap_node *n)
{
  lk_heap_node *rest;

  if (!lk__heap_has(n))
    return;
  rest = merge_children(n->child);
  if (n == h->root) {
    set_root(h, rest);
  } else {
    detach_node(n);
    if (rest != NULL)
      set_root(h, merge_heaps(h->root, rest));
  }
  n->child = NULL;
  n->next = NULL;
  n->prev = NULL;
}
