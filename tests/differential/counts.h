/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_COUNTS_H
#define LK_DIFFERENTIAL_COUNTS_H

#include "differential/list.h"

#include <stdbool.h>

/** How often each kind of request got each kind of reply, to show what is
    compared. Requests are counted by flags, modes and types, transactions by
    operation, setWatches by list. */
enum { COUNTS_KINDS = 600, COUNTS_NAME = 48 };

typedef struct counts {
  bool counts; /**< false: nothing is counted */
  struct {
    char name[COUNTS_NAME];
    int32_t
        detail; /**< error, type of an event, or timeout of a connect reply */
    uint64_t count;
  } kinds[COUNTS_KINDS];
  size_t count;
} counts;

/** Count requests and their replies, which have the same order; events are in
    between. */
void counts_add(counts *t, const list *requests, const list *replies);
void counts_print(const counts *t);

#endif
