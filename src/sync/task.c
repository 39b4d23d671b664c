/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/task.h"

bool lk__task_post(lk_sync_client *c, lk_task *t)
{
  pthread_mutex_lock(&c->mutex);
  bool accepted = !c->freeing;
  bool was_empty = lk__list_empty(&c->tasks);

  if (accepted)
    lk__list_add(&c->tasks, &t->link);
  pthread_mutex_unlock(&c->mutex);
  /* For the tasks before this one the thread has been woken already. */
  if (accepted && was_empty)
    lk__driver_wake(&c->driver);
  return accepted;
}

bool lk__tasks_begin(lk_sync_client *c)
{
  lk_link todo;

  lk__list_init(&todo);
  pthread_mutex_lock(&c->mutex);
  lk__list_move(&todo, &c->tasks);
  bool freeing = c->freeing;

  pthread_mutex_unlock(&c->mutex);
  while (!lk__list_empty(&todo)) {
    lk_task *t = LK_OWNER(todo.next, lk_task, link);

    lk__list_remove(&t->link);
    t->begin(t);
  }
  return freeing;
}
