/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_LIST_H
#define LK_DIFFERENTIAL_LIST_H

#include "base/buf.h"

/** A list of byte strings with opcodes: requests, or replies in normal form.
    Initialise with zeros. */
typedef struct list {
  struct list_item {
    int32_t op;
    size_t at; /**< offset in `bytes` */
    size_t len;
  } * items;
  size_t count;
  size_t room;
  lk_buf bytes;
} list;

/** Begin an item; its bytes are appended to the result. */
lk_buf *list_begin(list *l, int32_t op);
/** The item that was begun is complete. */
void list_end(list *l);
/** An item; valid until the next item is added. */
lk_bytes list_at(const list *l, size_t i);
void list_drop_last(list *l);
void list_empty(list *l);
void list_free(list *l);

/** Sort the items of each unbroken sequence with opcode `op`. */
void list_sort_runs(list *l, int32_t op);
/** The index of the first item that differs. If the shorter list begins like
    the longer one: the number of its items. */
size_t list_first_difference(const list *a, const list *b);

#endif
