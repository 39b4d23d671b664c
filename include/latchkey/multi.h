/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_MULTI_H
#define LK_MULTI_H

/**
 * @file
 * Several operations in one request: a transaction of writes, or a batch of
 * reads. Part of <latchkey/client.h>.
 */

#include <latchkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Operations of a transaction. Other values are refused with
    LK_ERR_BAD_ARGUMENT. */
enum lk_op_type {
  LK_OP_CREATE = 1,
  LK_OP_DELETE = 2,
  LK_OP_SET = 5,
  LK_OP_CHECK = 13,
  LK_OP_CREATE2 = 15,
  LK_OP_CREATE_TTL = 21
};

/** An operation of a transaction, made by one of the functions below. One whose
    `reserved` is not 0 is refused with LK_ERR_BAD_ARGUMENT: programs with newer
    headers may use it. */
typedef struct lk_op {
  int32_t type;    /**< enum lk_op_type */
  int32_t flags;   /**< creates: enum lk_create_flags */
  int32_t version; /**< delete, set, check: expected one, -1 any */
  const char *path;
  lk_bytes data;
  const lk_acls *acl; /**< NULL: lk_acl_open() */
  int64_t ttl_ms;     /**< LK_OP_CREATE_TTL */
  uint64_t reserved[2];
} lk_op;

LK_API lk_op lk_op_create(const char *path, lk_bytes data, const lk_acls *acl,
                          int flags);
/** The result has the Stat, from servers 3.7.2 and 3.8.2 on. */
LK_API lk_op lk_op_create2(const char *path, lk_bytes data, const lk_acls *acl,
                           int flags);
/** `flags` and `ttl_ms` as of lk_create_ttl(), with the same checks. */
LK_API lk_op lk_op_create_ttl(const char *path, lk_bytes data,
                              const lk_acls *acl, int flags, int64_t ttl_ms);
LK_API lk_op lk_op_delete(const char *path, int32_t version);
LK_API lk_op lk_op_set(const char *path, lk_bytes data, int32_t version);
LK_API lk_op lk_op_check(const char *path, int32_t version);

/** The result of an operation. */
typedef struct lk_op_result {
  int32_t type; /**< as in the reply, -1 for an error; servers before 3.7.2 and
                     3.8.2 reply to create2 as to create */
  int err;      /**< the error, if this operation failed;
                     RUNTIME_INCONSISTENCY, if one before it failed; else 0 */
  const char *path;    /**< creates: of the node, NUL-terminated; else NULL */
  const lk_stat *stat; /**< where the server sends one; else NULL */
  uint64_t reserved[2];
} lk_op_result;

/** `err` is the error of the operation that failed; `results` NULL and count 0
    if the reply has none. lk_client_reply()->zxid is the zxid of all. */
typedef void (*lk_multi_cb)(lk_client *c, int err, const lk_op_result *results,
                            size_t count, void *arg);

/** Execute all of `ops` or none, in order, under one zxid. Completes with the
    error of the first operation that failed, which is the error that the same
    operation would have as a request of its own. A check fails with NO_NODE,
    BAD_VERSION or NO_AUTH (READ). `ops` is copied. Since 3.4; lk_op_create2()
    since 3.5.0, containers since 3.5.1, TTLs since 3.5.3. */
LK_API int lk_multi(lk_client *c, const lk_op *ops, size_t count,
                    const lk_call *call, lk_multi_cb done, void *arg);

/** Operations of a multi-read. Other values are refused with
    LK_ERR_BAD_ARGUMENT. */
enum lk_read_type { LK_READ_GET = 4, LK_READ_GET_CHILDREN = 8 };

/** An operation of a multi-read, made by one of the functions below; `reserved`
    is that of lk_op. */
typedef struct lk_read {
  int32_t type; /**< enum lk_read_type */
  const char *path;
  uint64_t reserved[2];
} lk_read;

LK_API lk_read lk_read_get(const char *path);
LK_API lk_read lk_read_get_children(const char *path);

/** The result of an operation. */
typedef struct lk_read_result {
  int32_t type; /**< enum lk_read_type; -1 for an error */
  int err;      /**< 0, NO_NODE, NO_AUTH */
  lk_bytes data;
  const lk_stat *stat;   /**< get; else NULL */
  const lk_bytes *names; /**< list: `count`, in no order; else NULL */
  size_t count;
  uint64_t reserved[2];
} lk_read_result;

/** `err` is 0 if there was a reply, even if operations failed; else `results`
    is NULL and count 0. */
typedef void (*lk_multi_read_cb)(lk_client *c, int err,
                                 const lk_read_result *results, size_t count,
                                 void *arg);

/** Execute all of `reads`, in order, each with its own result, in one round
    trip. Writes of other clients may be executed between them. Sets no watches.
    `reads` is copied. Since 3.6.0. */
LK_API int lk_multi_read(lk_client *c, const lk_read *reads, size_t count,
                         const lk_call *call, lk_multi_read_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
