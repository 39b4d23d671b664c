/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/heap.h"
#include "support/suite.h"

enum { COUNT = 300 };

static lk_heap heap;
static lk_heap_node nodes[COUNT];

static void empty_heap(void)
{
  memset(&heap, 0, sizeof heap);
  memset(nodes, 0, sizeof nodes);
}

/* A small generator of random numbers, so that every run uses the same ones. */
static unsigned next_random(unsigned *seed)
{
  *seed = *seed * 1103515245 + 12345;
  return *seed >> 16;
}

/* The earliest time in the heap, found by looking at all nodes. */
static int64_t earliest(void)
{
  int64_t at = INT64_MAX;

  for (size_t i = 0; i < COUNT; i++) {
    if (lk__heap_has(&nodes[i]) && nodes[i].at < at)
      at = nodes[i].at;
  }
  return at;
}

START_TEST(the_root_is_always_the_earliest)
{
  unsigned seed = 1;
  size_t inside = 0;

  for (int round = 0; round < 20000; round++) {
    lk_heap_node *n = &nodes[next_random(&seed) % COUNT];

    if (lk__heap_has(n)) {
      lk__heap_remove(&heap, n);
      inside--;
    } else {
      lk__heap_add(&heap, n, (int64_t)(next_random(&seed) % 100) - 50);
      inside++;
    }
    ck_assert_int_eq(inside == 0, heap.root == NULL);
    if (heap.root != NULL)
      ck_assert_int_eq(heap.root->at, earliest());
  }
}
END_TEST

START_TEST(removing_the_root_repeatedly_sorts)
{
  unsigned seed = 2;
  int64_t previous = INT64_MIN;
  size_t count = 0;

  for (size_t i = 0; i < COUNT; i++)
    lk__heap_add(&heap, &nodes[i], next_random(&seed));
  while (heap.root != NULL) {
    ck_assert_int_ge(heap.root->at, previous);
    previous = heap.root->at;
    lk__heap_remove(&heap, heap.root);
    count++;
  }
  ck_assert_uint_eq(count, COUNT);
}
END_TEST

START_TEST(a_node_in_no_heap_can_be_removed)
{
  lk__heap_add(&heap, &nodes[0], 5);
  lk__heap_remove(&heap, &nodes[1]);
  ck_assert(!lk__heap_has(&nodes[1]));
  lk__heap_remove(&heap, &nodes[0]);
  ck_assert(!lk__heap_has(&nodes[0]));
  lk__heap_remove(&heap, &nodes[0]);
  ck_assert_ptr_null(heap.root);
}
END_TEST

START_TEST(extreme_times_keep_their_order)
{
  lk__heap_add(&heap, &nodes[0], INT64_MAX);
  lk__heap_add(&heap, &nodes[1], INT64_MIN);
  lk__heap_add(&heap, &nodes[2], 0);
  ck_assert_ptr_eq(heap.root, &nodes[1]);
  lk__heap_remove(&heap, &nodes[1]);
  ck_assert_ptr_eq(heap.root, &nodes[2]);
  lk__heap_remove(&heap, &nodes[2]);
  ck_assert_ptr_eq(heap.root, &nodes[0]);
}
END_TEST

SUITE_WITH("heap", empty_heap, the_root_is_always_the_earliest,
           removing_the_root_repeatedly_sorts, a_node_in_no_heap_can_be_removed,
           extreme_times_keep_their_order)
