/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_LIST_H
#define LK_DIFFERENTIAL_LIST_H

#include "base/buf.h"

/** Things one after another, each some bytes with an opcode: requests, or what
    came for them in plain form. Zero it to begin. */
typedef struct list {
  struct list_item {
    int32_t op;
    size_t at; /**< where in `bytes` */
    size_t len;
  } * items;
  size_t count;
  size_t room;
  lk_buf bytes;
} list;

/** Begin the next one; its bytes are added to what is returned. */
lk_buf *list_begin(list *l, int32_t op);
/** It is whole. */
void list_end(list *l);
/** Valid until one is added. */
lk_bytes list_at(const list *l, size_t i);
void list_drop_last(list *l);
void list_empty(list *l);
void list_free(list *l);

/** Sort each run of items with opcode `op`. */
void list_sort_runs(list *l, int32_t op);
/** The first that differs; the count of both if none does. */
size_t list_differs(const list *a, const list *b);

#endif
