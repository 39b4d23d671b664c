/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_MULTI_H
#define LK_PROTO_WIRE_MULTI_H

#include <latchkey/client.h>

#include "proto/wire/opcode.h"

/**
 * One part of a multi or a multiRead, as it goes over the wire: a request, or
 * the result of one. Which member of the body counts is said by
 * lk__operation_record().
 */
typedef struct lk_operation {
  int32_t type; /**< opcode; of a result also LK_OPCODE_ERROR */
  int32_t err;  /**< of its header: -1 in requests */
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

/** What the body of a part is; NULL: there is no such part. */
const lk_record *lk__operation_record(int32_t type, bool result);
/**
 * The next part. false: the end was reached, or in->err says what was wrong. A
 * part of unknown type is LK_ERR_MARSHALLING, as nothing tells its length.
 */
bool lk__operation_decode(lk_reader *in, bool result, lk_arena *arena,
                          lk_operation *out);
void lk__operation_encode(const lk_operation *part, bool result,
                          lk_writer *out);
/** What stands after the last part. */
void lk__operation_encode_end(lk_writer *out);

/**
 * Encode the body of a multi. Paths are prefixed with `chroot`, "" if none,
 * and not looked at; a part of unknown type sets out->err to
 * LK_ERR_BAD_ARGUMENT.
 */
void lk__multi_encode(lk_writer *out, const lk_op *ops, size_t count,
                      const char *chroot);

/**
 * Decode the body of a multi's reply: exactly `asked` results, or it is
 * refused. They live in `arena`, with what they point to.
 *
 * `outcome`: 0 if all was done, else the error of the part that failed; of all
 * parts or none is one thing a server promises. What a result has depends on
 * the server's label alone: look before you follow its pointers.
 *
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY.
 */
int lk__multi_decode(lk_reader *in, size_t asked, const char *chroot,
                     lk_arena *arena, lk_op_result **out, int *outcome);

/** The same for a multiRead. */
void lk__multi_read_encode(lk_writer *out, const lk_read *reads, size_t count,
                           const char *chroot);

/**
 * Decode the body of a multiRead's reply: exactly `asked` results. They live in
 * `arena`; data and names are views into the reader's bytes.
 *
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY.
 */
int lk__multi_read_decode(lk_reader *in, size_t asked, lk_arena *arena,
                          lk_read_result **out);

#endif
