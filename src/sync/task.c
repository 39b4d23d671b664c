/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/task.h"

bool lk__task_post(lk_sync_client *c, lk_task *t)
{
  pthread_mutex_lock(&c->mutex);
  bool taken = !c->freed;
  bool first = lk__list_empty(&c->tasks);

  if (taken)
    lk__list_add(&c->tasks, &t->link);
  pthread_mutex_unlock(&c->mutex);
  if (taken && first)
    lk__driver_wake(&c->driver);
  return taken;
}

bool lk__tasks_begin(lk_sync_client *c)
{
  lk_link todo;

  lk__list_init(&todo);
  pthread_mutex_lock(&c->mutex);
  lk__list_move(&todo, &c->tasks);
  bool freed = c->freed;

  pthread_mutex_unlock(&c->mutex);
  while (!lk__list_empty(&todo)) {
    lk_task *t = LK_OWNER(todo.next, lk_task, link);

    lk__list_remove(&t->link);
    t->begin(t);
  }
  return freed;
}
