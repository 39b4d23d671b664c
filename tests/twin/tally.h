/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_TWIN_TALLY_H
#define LK_TWIN_TALLY_H

#include "twin/list.h"

/** How often each kind of answer was heard, to see what is compared at all. */
enum { TALLY_KINDS = 300 };

typedef struct tally {
  struct {
    int32_t op;   /**< or PLAIN_EVENT, … */
    int32_t what; /**< error; of a multi that of its part; type of an event */
    uint64_t count;
  } kinds[TALLY_KINDS];
  size_t count;
} tally;

void tally_add(tally *t, const list *said);
void tally_print(const tally *t);

#endif
