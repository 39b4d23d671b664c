/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/compare_trees.h"

#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PATH = 1000 };

/* Sends all reads of a node and compares the replies. The last reply has the
 * names of the children. */
static void compare_node(pair *p, unsigned conn, int32_t *xid, const char *path)
{
  static const int32_t ops[] = {LK_OPCODE_GET_DATA, LK_OPCODE_GET_ACL,
                                LK_OPCODE_GET_CHILDREN2};
  struct lk_path_watch_request r = {lk_text(path), false};

  for (size_t i = 0; i < 3; i++) {
    lk_buf body = wire_buf();

    wire_record(&body, lk__opcode_info(ops[i])->request, &r);
    pair_add_request(p, conn, ++*xid, ops[i],
                     lk_bytes_of(lk__buf_bytes(&body), lk__buf_len(&body)));
    lk__buf_free(&body);
  }
  pair_receive(p, conn);
}

/* A copy of the last reply. */
static lk_buf last_reply_copy(const pair *p, unsigned conn)
{
  const list *replies = pair_replies(p, conn);
  lk_bytes last = list_at(replies, replies->count - 1);
  lk_buf copy = wire_buf();

  if (!lk__buf_append(&copy, last.at, last.len))
    abort();
  return copy;
}

void compare_trees(pair *p, unsigned conn, int32_t *xid, const char *path)
{
  struct lk_names_stat_reply r = {.names = {NULL, 0}};
  struct lk_reply_header head;
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;

  compare_node(p, conn, xid, path);
  lk_buf replies = last_reply_copy(p, conn);

  lk__reader_init(&in, lk__buf_bytes(&replies), lk__buf_len(&replies));
  if (lk__record_decode(&lk__reply_header_record, &head, &in, NULL) == 0 &&
      head.err == 0)
    lk__record_decode(&lk__names_stat_reply_record, &r, &in, &arena);
  for (size_t i = 0; i < r.names.count; i++) {
    const lk_bytes *name = (const lk_bytes *)r.names.items + i;
    char child[MOST_PATH];

    snprintf(child, sizeof child, "%s/%.*s", path[1] == '\0' ? "" : path,
             (int)name->len, (const char *)name->at);
    compare_trees(p, conn, xid, child);
  }
  lk__arena_free(&arena);
  lk__buf_free(&replies);
}
