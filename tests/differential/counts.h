/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_COUNTS_H
#define LK_DIFFERENTIAL_COUNTS_H

#include "differential/list.h"

#include <stdbool.h>

/** How often each kind of request was answered in each way, to see what is
    compared at all: by flags, modes and types, part by part, list by list. */
enum { TALLY_KINDS = 600, TALLY_NAME = 48 };

typedef struct counts {
  bool counts; /**< or nobody wants to know */
  struct {
    char name[TALLY_NAME];
    int32_t what; /**< error; type of an event; timeout of a handshake */
    uint64_t count;
  } kinds[TALLY_KINDS];
  size_t count;
} counts;

/** What was asked, and what came for it: the answers in the same order, with
    events between them. */
void counts_add(counts *t, const list *asked, const list *said);
void counts_print(const counts *t);

#endif
