/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_EVERY_CALL_H
#define LK_SUPPORT_EVERY_CALL_H

#include <latchkey/sync.h>

/**
 * @file
 * Each function of <latchkey/sync.h> once, for properties that all of them
 * have. Those that send requests show their results (support/shown.h).
 */

/** The arguments of the functions. */
typedef struct every_object {
  lk_sync_client *client;
  lk_sync_lock *lock;
  lk_sync_lock *other_lock; /**< a clone of it, for lk_sync_lock_try() */
  lk_sync_rwlock *rwlock;
  lk_sync_subscription *subscription;
  lk_sync_candidate *candidate;
  lk_sync_membership *membership;
  lk_sync_cancel *cancel;
  const char *path;
  const char *hosts;
  const lk_sync_call *call;
  int32_t version;    /**< of the node at `path` and of its child /kid */
  const lk_acls *acl; /**< of nodes to create; NULL: the default */
  bool is_shared; /**< others write to the node; see lk_sync_set_reliable() */
  bool no_out;    /**< pass NULL for the place of the result */
} every_object;

/** NULL if `path` is, or the path of `name` below it, in one of eight buffers
    of the thread, which are used in turn. */
const char *every_path(const char *path, const char *name);

/** The operations of a multi, which are also those of the callback interface:
    one of each type, in a node with this version. Returns their number, which
    is not more than EVERY_OPS. */
enum { EVERY_OPS = 8, EVERY_READS = 3 };
size_t every_ops(lk_op *ops, const char *path, int32_t version,
                 const lk_acls *acl);
size_t every_reads(lk_read *reads, const char *path);

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
const every_call *every_call_named(const char *name);

/** Make a client with this connect string, and all objects of it. */
void every_object_make(every_object *o, const char *hosts,
                       const lk_sync_call *call);
void every_object_free(every_object *o);

#endif
