/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/compare_trees.h"

#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_SIZE = 1000 };

/* Sends all reads of a node and compares the replies. The last reply has the
 * names of the children. */
static void compare_reads(pair *p, unsigned conn, int32_t *xid,
                          const char *path)
{
  static const int32_t reads[] = {LK_OPCODE_GET_DATA, LK_OPCODE_GET_ACL,
                                  LK_OPCODE_GET_CHILDREN2};
  struct lk_path_watch_request r = {.path = lk_text(path), .watch = false};

  for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
    lk_buf body = wire_buf();

    wire_record(&body, lk__opcode_info(reads[i])->request, &r);
    pair_add_request(p, conn, ++*xid, reads[i],
                     lk_bytes_of(lk__buf_bytes(&body), lk__buf_len(&body)));
    lk__buf_free(&body);
  }
  pair_receive(p, conn);
}

static lk_buf copy_last_reply(const pair *p, unsigned conn)
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

  compare_reads(p, conn, xid, path);
  /* The recursive calls replace the list of replies. */
  lk_buf children = copy_last_reply(p, conn);

  lk__reader_init(&in, lk__buf_bytes(&children), lk__buf_len(&children));
  if (lk__record_decode(&lk__reply_header_record, &head, &in, NULL) == 0 &&
      head.err == 0)
    lk__record_decode(&lk__names_stat_reply_record, &r, &in, &arena);
  for (size_t i = 0; i < r.names.count; i++) {
    const lk_bytes *name = (const lk_bytes *)r.names.items + i;
    char child[PATH_SIZE];

    snprintf(child, sizeof child, "%s/%.*s", strcmp(path, "/") == 0 ? "" : path,
             (int)name->len, (const char *)name->at);
    compare_trees(p, conn, xid, child);
  }
  lk__arena_free(&arena);
  lk__buf_free(&children);
}
