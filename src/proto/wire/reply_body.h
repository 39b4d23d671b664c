/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_REPLY_BODY_H
#define LK_PROTO_WIRE_REPLY_BODY_H

#include <latchkey/client.h>

#include "jute/arena.h"
#include "jute/reader.h"
#include "proto/wire/opcode.h"

/** The decoded body of a reply. The opcode of the request tells which member is
    set. */
typedef union lk_reply_body {
  struct lk_path_reply path;
  struct lk_path_stat_reply path_stat;
  struct lk_stat_reply stat;
  struct lk_data_reply data;
  struct lk_acl_reply acl;
  struct lk_names_stat_reply names_stat;
  struct lk_paths_reply paths;
  struct lk_count_reply count;
  struct lk_code_reply code;
  struct lk_who_am_i_reply who;
  struct {
    lk_op_result *results;
    int outcome;
  } multi;
  lk_read_result *reads;
} lk_reply_body;

/** The request of a reply, and the memory for decoding the reply. */
typedef struct lk_reply_context {
  int32_t op;         /**< opcode of the request */
  int64_t zxid;       /**< of the reply's header */
  size_t operations;  /**< number of operations of a multi or multiRead */
  const char *chroot; /**< removed from the paths in the reply */
  size_t chroot_len;
  lk_arena *arena; /**< for vectors and copies of paths */
} lk_reply_context;

/** Decode the body of a reply whose header has no error. The pointers in `*out`
    refer to the bytes of `in` and to the arena.
    @return 0, LK_ERR_NO_MEMORY; LK_ERR_MARSHALLING or LK_ERR_PROTOCOL: the body
    is malformed. */
int lk__reply_body_decode(const lk_reply_context *context, lk_reader *in,
                          lk_reply_body *out);

#endif
