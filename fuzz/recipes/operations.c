/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "world.h"

#include <latchkey/nodes.h>

/* Operations on nodes: each has a callback, and no object. */

enum { OPERATIONS = 32 };

static bool operations[OPERATIONS]; /* which are under way */

bool *operation_begin(void)
{
  for (size_t i = 0; i < OPERATIONS; i++) {
    if (!operations[i]) {
      operations[i] = true;
      return &operations[i];
    }
  }
  return NULL;
}

void operation_end(void *arg)
{
  bool *under_way = arg;

  must(*under_way);
  *under_way = false;
  react();
}

void operation_refused(bool *under_way, int err)
{
  if (err != 0)
    *under_way = false;
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  (void)stat;
  must(err == 0 ? path != NULL : path == NULL);
  operation_end(arg);
}

static void on_stat(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  must((err == 0) == (stat != NULL));
  operation_end(arg);
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  (void)err;
  operation_end(arg);
}

static void on_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  (void)c;
  (void)err;
  (void)deleted;
  operation_end(arg);
}

static int begin_operation(unsigned kind, const char *path, const lk_call *call,
                           bool *operation)
{
  lk_bytes data = lk_text("d");
  int flags = kind & 16 ? LK_EPHEMERAL : LK_PERSISTENT;
  bool sole = (kind & 32) != 0;

  switch (kind % 5) {
  case 0:
    return lk_create_with_parents(client(), path, data, NULL, flags, NULL, call,
                                  on_created, operation);
  case 1:
    return lk_delete_recursive(client(), path, call, NULL, on_deleted,
                               operation);
  case 2:
    return lk_create_reliable(client(), path, data, NULL,
                              kind & 64 ? flags | LK_SEQUENTIAL : flags, sole,
                              call, on_created, operation);
  case 3:
    return lk_set_reliable(client(), path, data, -1, sole, call, on_stat,
                           operation);
  default:
    return lk_delete_reliable(client(), path, -1, sole, call, on_done,
                              operation);
  }
}

void do_operation(void)
{
  unsigned kind = take();
  const char *path = take_path();
  lk_call call = {.size = sizeof call, .timeout_ms = (int64_t)take() * 20};

  if (client() == NULL)
    return;
  bool *operation = operation_begin();

  if (operation != NULL)
    operation_refused(operation, begin_operation(kind, path, &call, operation));
}

void operations_check_ended(void)
{
  for (size_t i = 0; i < OPERATIONS; i++)
    must(!operations[i]);
}
