/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_TASK_H
#define LK_SYNC_TASK_H

#include "sync/handle.h"

/** Work for the thread of the handle. The memory of a task must stay until
    `begin` is called. */
typedef struct lk_task {
  lk_link link;
  void (*begin)(struct lk_task *t);
} lk_task;

/** Have the thread of the handle call `t->begin`. false: that thread is ending,
    and `t` will never begin. */
bool lk__task_post(lk_sync_client *c, lk_task *t);
/** On the thread of the handle: begin all tasks that were posted. true: the
    handle is to be freed. */
bool lk__tasks_begin(lk_sync_client *c);

#endif
