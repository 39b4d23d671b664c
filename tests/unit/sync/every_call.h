/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_SYNC_EVERY_CALL_H
#define LK_UNIT_SYNC_EVERY_CALL_H

#include <latchkey/sync.h>

/**
 * @file
 * Each function of <latchkey/sync.h> once, for what must be so of all of them.
 */

/** The arguments of the functions. */
typedef struct every_object {
  lk_sync_client *client;
  lk_sync_lock *lock;
  lk_sync_rwlock *rwlock;
  lk_sync_subscription *subscription;
  lk_sync_cancel *cancel;
  const char *path;
  const char *hosts;
  const lk_sync_call *call;
  bool no_out; /**< NULL where a result goes */
} every_object;

typedef struct every_call {
  const char *name; /**< without "lk_sync_" */
  /** Its result; of a function without an error: 0 for what it gives of a NULL
      object, 1 for anything else. What it made is freed. */
  int (*call)(const every_object *o);
  int no_object; /**< the result where all objects are NULL */
  int no_path;   /**< where the path alone is NULL; 1: it takes none */
  int no_out;    /**< where the place of the result alone is; 1: likewise */
} every_call;

extern const every_call every_calls[];
extern const size_t every_call_count;

/** Make all objects of a client of `hosts`. */
void every_object_make(every_object *o, const char *hosts,
                       const lk_sync_call *call);
void every_object_free(every_object *o);

#endif
