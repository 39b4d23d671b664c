/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_SYNC_EVERY_CALL_H
#define LK_UNIT_SYNC_EVERY_CALL_H

#include <latchkey/sync.h>

/**
 * @file
 * Each function of <latchkey/sync.h> once, for properties that all of them
 * have.
 */

/** The arguments of the functions. */
typedef struct every_object {
  lk_sync_client *client;
  lk_sync_lock *lock;
  lk_sync_rwlock *rwlock;
  lk_sync_subscription *subscription;
  lk_sync_candidate *candidate;
  lk_sync_membership *membership;
  lk_sync_cancel *cancel;
  const char *path;
  const char *hosts;
  const lk_sync_call *call;
  bool no_out; /**< pass NULL for the place of the result */
} every_object;

/** In place of an expected result: the function has no such parameter. */
enum { NOT_EXPECTED = 1 };

typedef struct every_call {
  const char *name; /**< without "lk_sync_" */
  /** Calls the function. Returns its error; for a function without one: 0 if it
      returned what it returns for a NULL object, else 1. Frees what the
      function made. */
  int (*call)(const every_object *o);
  int no_object; /**< the expected result if all objects are NULL */
  int no_path;   /**< the expected result if only the path is NULL */
  int no_out;    /**< the expected result if only the place of the result is
                      NULL */
} every_call;

extern const every_call every_calls[];
extern const size_t every_call_count;

/** Make a client with this connect string, and all objects of it. */
void every_object_make(every_object *o, const char *hosts,
                       const lk_sync_call *call);
void every_object_free(every_object *o);

#endif
