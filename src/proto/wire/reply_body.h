/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_REPLY_BODY_H
#define LK_PROTO_WIRE_REPLY_BODY_H

#include <latchkey/client.h>

#include "jute/arena.h"
#include "jute/reader.h"
#include "proto/wire/opcode.h"

/** The body of a reply, decoded. The opcode says which member counts. */
typedef union lk_reply_body {
  struct lk_path_reply path;
  struct lk_path_stat_reply path_stat;
  struct lk_stat_reply stat;
  struct lk_data_reply data;
  struct lk_acl_reply acl;
  struct lk_names_reply names;
  struct lk_names_stat_reply names_stat;
  struct lk_count_reply count;
  struct lk_code_reply code;
  struct lk_who_am_i_reply who;
  struct {
    lk_op_result *results;
    int outcome;
  } multi;
  lk_read_result *reads;
} lk_reply_body;

/** Parameters of the decoder. */
typedef struct lk_reply_context {
  int32_t op;        /**< of the request */
  size_t operations; /**< of a multi or a multi-read */
  const char *chroot;
  size_t chroot_len;
  lk_arena *arena; /**< for what is not in the reader's bytes */
} lk_reply_context;

/** Decode the body of a reply whose header has no error. What it points to is
    in the bytes of `in` and in the arena.
    @return 0, LK_ERR_NO_MEMORY, or why it is malformed. */
int lk__reply_body_decode(const lk_reply_context *x, lk_reader *in,
                          lk_reply_body *out);

#endif
