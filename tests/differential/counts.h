/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_COUNTS_H
#define LK_DIFFERENTIAL_COUNTS_H

#include "differential/list.h"

#include <stdbool.h>

/** How often each kind of request got each kind of reply, to show what is
    compared. Requests are counted by flags, modes and types, transactions by
    operation, setWatches by list. */
enum { COUNTS_KINDS_MAX = 600, COUNTS_NAME = 48 };

typedef struct counts {
  bool enabled; /**< false: nothing is counted */
  struct {
    char name[COUNTS_NAME];
    /** printed behind the name: the error of a reply, the type of an event, or
        the timeout of a connect reply */
    int32_t detail;
    uint64_t count;
  } kinds[COUNTS_KINDS_MAX]; /**< further kinds are not counted */
  size_t kinds_used;
} counts;

/** Count requests and their replies, which have the same order. Between the
    replies there may be events. */
void counts_add(counts *t, const list *requests, const list *replies);
void counts_print(const counts *t);

#endif
