/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_REPLY_BODY_H
#define LK_PROTO_ENGINE_REPLY_BODY_H

#include "proto/engine/engine.h"

/** The body of a reply, decoded. Which member counts is said by the opcode. */
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

/** Decode the body of a reply without error; what it points to is in the bytes
    of `in` and in the client's arena.
    @return 0, LK_ERR_NO_MEMORY, or what is wrong with it. */
int lk__reply_body_decode(lk_client *c, const lk_request *r, lk_reader *in,
                          lk_reply_body *out);

/** Call `done` of `r`; `body` counts only if `err` is 0. */
void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body);

#endif
