/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_MULTI_H
#define LK_PROTO_WIRE_MULTI_H

#include <latchkey/client.h>

#include "proto/wire/opcode.h"

/** The two lists in which an operation is encoded. */
typedef enum lk_operation_list {
  LK_OPERATIONS_OF_REQUEST,
  LK_OPERATIONS_OF_REPLY /**< the results */
} lk_operation_list;

/**
 * One operation of a multi or a multiRead as it is encoded, in a request or as
 * a result. (The caller describes it by an lk_op or an lk_read.)
 * lk__operation_record() tells which member of the body is valid.
 */
typedef struct lk_operation {
  int32_t type; /**< opcode; in a result it can be LK_OPCODE_ERROR */
  int32_t err;  /**< the header's error; -1 in requests */
  union {
    struct lk_create_request create;
    struct lk_create_ttl_request create_ttl;
    struct lk_path_version_request path_version;
    struct lk_path_watch_request path_watch;
    struct lk_set_data_request set_data;
    struct lk_path_reply path;
    struct lk_path_stat_reply path_stat;
    struct lk_stat_reply stat;
    struct lk_data_reply data;
    struct lk_names_reply names;
    struct lk_code_reply code;
  } body;
} lk_operation;

/** The record of an operation's body. NULL: such a list has no operation of
    this type. */
const lk_record *lk__operation_record(int32_t type, lk_operation_list list);
/**
 * Decode the next operation. false: there are no more, or in->err is set. An
 * operation of unknown type sets it to LK_ERR_MARSHALLING, since its length is
 * unknown, too.
 */
bool lk__operation_decode(lk_reader *in, lk_operation_list list,
                          lk_arena *arena, lk_operation *out);
void lk__operation_encode(const lk_operation *operation, lk_operation_list list,
                          lk_writer *out);
/** Encode the header that ends the list of operations. */
void lk__operation_encode_end(lk_writer *out);

/**
 * Encode the body of a multi. Paths are prefixed with `chroot` (which may be
 * "") and not checked. An operation of unknown type sets out->err to
 * LK_ERR_BAD_ARGUMENT.
 */
void lk__multi_encode(lk_writer *out, const lk_op *ops, size_t count,
                      const char *chroot);

/**
 * Decode the body of a multi's reply, which must have exactly `asked` results.
 * The results and all that they point to are in `arena`.
 *
 * `*outcome` is 0 if every operation succeeded, else the error of the operation
 * that failed. Which pointers of a result are set depends on its type, which a
 * faulty server may choose differently from the request: check each for NULL.
 *
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY.
 */
int lk__multi_decode(lk_reader *in, size_t asked, const char *chroot,
                     lk_arena *arena, lk_op_result **out, int *outcome);

/** Encode the body of a multiRead, with `chroot` as in lk__multi_encode(). */
void lk__multi_read_encode(lk_writer *out, const lk_read *reads, size_t count,
                           const char *chroot);

/**
 * Decode the body of a multiRead's reply, which must have exactly `asked`
 * results. The results are in `arena`; their data and names are views into the
 * reader's bytes.
 *
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY.
 */
int lk__multi_read_decode(lk_reader *in, size_t asked, lk_arena *arena,
                          lk_read_result **out);

#endif
