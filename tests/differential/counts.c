/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/counts.h"

#include "differential/normal_form.h"
#include "proto/wire/multi.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void add_entry(counts *t, uint64_t count, int32_t detail,
                      const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add_entry(counts *t, uint64_t count, int32_t detail,
                      const char *format, ...)
{
  char name[COUNTS_NAME];
  size_t i = 0;
  va_list args;

  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  while (i < t->count &&
         (t->kinds[i].detail != detail || strcmp(t->kinds[i].name, name) != 0))
    i++;
  if (i == COUNTS_KINDS || count == 0)
    return;
  if (i == t->count) {
    memcpy(t->kinds[t->count].name, name, sizeof name);
    t->kinds[t->count++].detail = detail;
  }
  t->kinds[i].count += count;
}

/* ---- requests ----------------------------------------------------------- */

static int32_t flags_of(const lk_operation *p)
{
  return p->type == LK_OPCODE_CREATE_TTL ? p->body.create_ttl.create.flags
                                         : p->body.create.flags;
}

static bool creates(int32_t op)
{
  return op == LK_OPCODE_CREATE || op == LK_OPCODE_CREATE2 ||
         op == LK_OPCODE_CREATE_CONTAINER || op == LK_OPCODE_CREATE_TTL;
}

static void add_create(counts *t, lk_reader *requests, int32_t op, int32_t err)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation p = {.type = op};

  lk__record_decode(lk__operation_record(op, false), &p.body, requests, &arena);
  add_entry(t, 1, err, "%s, flags %d", lk__opcode_info(op)->name,
            (int)flags_of(&p));
  lk__arena_free(&arena);
}

/* Counts a request as "addWatch, mode 1" or "removeWatches, type 3"; the number
 * is the last field of its body. */
static void add_mode(counts *t, lk_reader *requests, int32_t op, int32_t err)
{
  lk__reader_bytes(requests);
  add_entry(t, 1, err, "%s, %s %d", lk__opcode_info(op)->name,
            op == LK_OPCODE_ADD_WATCH ? "mode" : "type",
            (int)lk__reader_int(requests));
}

static void add_lists(counts *t, lk_reader *requests, int32_t op, int32_t err)
{
  static const char *const lists[] = {"data", "exist", "child", "persistent",
                                      "recursive"};
  const char *name = lk__opcode_info(op)->name;

  add_entry(t, 1, err, "%s", name);
  lk__reader_long(requests);
  for (int i = 0; i < (op == LK_OPCODE_SET_WATCHES ? 3 : 5); i++) {
    int32_t count = lk__reader_int(requests);

    add_entry(t, count > 0 ? (uint64_t)count : 0, err, "%s, paths in %s", name,
              lists[i]);
    while (requests->err == 0 && count-- > 0)
      lk__reader_bytes(requests);
  }
}

/* Counts each operation of a transaction with the type and the error of its
 * result. */
static void add_parts(counts *t, lk_reader *requests, lk_reader *replies,
                      int32_t op)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  const char *name = lk__opcode_info(op)->name;
  lk_operation p, r;
  int parts = 0;

  while (lk__operation_decode(requests, false, &arena, &p) &&
         lk__operation_decode(replies, true, &arena, &r)) {
    parts++;
    if (creates(p.type))
      add_entry(t, 1, r.err, "%s part %s, flags %d as %s", name,
                lk__opcode_info(p.type)->name, (int)flags_of(&p),
                lk__opcode_info(r.type)->name);
    else
      add_entry(t, 1, r.err, "%s part %s", name, lk__opcode_info(p.type)->name);
  }
  add_entry(t, parts == 0, 0, "%s of nothing", name);
  lk__arena_free(&arena);
}

/* ---- replies ------------------------------------------------------------ */

static void add_answer(counts *t, int32_t op, lk_bytes question,
                       lk_bytes answer)
{
  struct lk_reply_header head = {0, 0, 0};
  lk_reader requests, replies;

  lk__reader_init(&requests, question.at, question.len);
  lk__reader_init(&replies, answer.at, answer.len);
  lk__record_decode(&lk__reply_header_record, &head, &replies, NULL);
  if (creates(op))
    add_create(t, &requests, op, head.err);
  else if (op == LK_OPCODE_ADD_WATCH || op == LK_OPCODE_REMOVE_WATCHES ||
           op == LK_OPCODE_CHECK_WATCHES)
    add_mode(t, &requests, op, head.err);
  else if (op == LK_OPCODE_SET_WATCHES || op == LK_OPCODE_SET_WATCHES2)
    add_lists(t, &requests, op, head.err);
  else
    add_entry(t, 1, head.err, "%s", lk__opcode_info(op)->name);
  if (lk__opcode_info(op)->has_operations && head.err == 0)
    add_parts(t, &requests, &replies, op);
}

static void add_other(counts *t, int32_t op, lk_bytes replies)
{
  struct lk_reply_header head = {0, 0, 0};
  struct lk_connect_reply hello = {0};
  lk_reader in;

  lk__reader_init(&in, replies.at, replies.len);
  if (op == NORMAL_CLOSED)
    add_entry(t, 1, 0, "closed");
  else if (op == NORMAL_EVENT) {
    lk__record_decode(&lk__reply_header_record, &head, &in, NULL);
    add_entry(t, 1, lk__reader_int(&in), "event, type");
  } else if (op == NORMAL_CONNECT_REPLY) {
    lk__record_decode(&lk__connect_reply_record, &hello, &in, NULL);
    add_entry(t, 1, hello.timeout_ms, "handshake, timeout");
  }
}

void counts_add(counts *t, const list *requests, const list *replies)
{
  size_t next = 0;

  for (size_t i = 0; i < replies->count && t->counts; i++) {
    int32_t op = replies->items[i].op;

    if (op != NORMAL_EVENT && op < NORMAL_CONNECT_REPLY)
      add_answer(t, op, list_at(requests, next), list_at(replies, i));
    else
      add_other(t, op, list_at(replies, i));
    next += op != NORMAL_EVENT && op <= NORMAL_CONNECT_REPLY;
  }
}

/* ---- printing ----------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
  return strcmp(a, b); /* an entry begins with its name */
}

void counts_print(const counts *t)
{
  counts sorted = *t;

  qsort(sorted.kinds, sorted.count, sizeof *sorted.kinds, compare);
  for (size_t i = 0; i < sorted.count; i++)
    printf("%10" PRIu64 "  %s %d\n", sorted.kinds[i].count,
           sorted.kinds[i].name, (int)sorted.kinds[i].detail);
}
