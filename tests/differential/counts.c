/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/counts.h"

#include "differential/normal_form.h"
#include "proto/wire/multi.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void add_to_kind(counts *t, uint64_t count, int32_t detail,
                        const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add_to_kind(counts *t, uint64_t count, int32_t detail,
                        const char *format, ...)
{
  char name[COUNTS_NAME];
  size_t i = 0;
  va_list args;

  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  while (i < t->kinds_used &&
         (t->kinds[i].detail != detail || strcmp(t->kinds[i].name, name) != 0))
    i++;
  if (i == COUNTS_KINDS_MAX)
    return;
  if (i == t->kinds_used) {
    t->kinds_used++;
    memcpy(t->kinds[i].name, name, sizeof name);
    t->kinds[i].detail = detail;
  }
  t->kinds[i].count += count;
}

/* ---- requests ----------------------------------------------------------- */

static int32_t create_flags(const lk_operation *create)
{
  return create->type == LK_OPCODE_CREATE_TTL
             ? create->body.create_ttl.create.flags
             : create->body.create.flags;
}

static bool creates(int32_t op)
{
  return op == LK_OPCODE_CREATE || op == LK_OPCODE_CREATE2 ||
         op == LK_OPCODE_CREATE_CONTAINER || op == LK_OPCODE_CREATE_TTL;
}

static void add_create(counts *t, lk_reader *request, int32_t op, int32_t err)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation create = {.type = op};

  lk__record_decode(lk__operation_record(op, LK_OPERATIONS_OF_REQUEST),
                    &create.body, request, &arena);
  add_to_kind(t, 1, err, "%s, flags %d", lk__opcode_info(op)->name,
              (int)create_flags(&create));
  lk__arena_free(&arena);
}

/* Counts a request as "addWatch, mode 1" or "removeWatches, type 3"; the number
 * is the last field of its body. */
static void add_mode(counts *t, lk_reader *request, int32_t op, int32_t err)
{
  lk__reader_bytes(request); /* the path */
  add_to_kind(t, 1, err, "%s, %s %d", lk__opcode_info(op)->name,
              op == LK_OPCODE_ADD_WATCH ? "mode" : "type",
              (int)lk__reader_int(request));
}

/* Counts a setWatches and the paths in each of its lists. setWatches has the
 * first three lists, setWatches2 has all. */
static void add_set_watches(counts *t, lk_reader *request, int32_t op,
                            int32_t err)
{
  static const char *const lists[] = {"data", "exist", "child", "persistent",
                                      "recursive"};
  const int nlists = op == LK_OPCODE_SET_WATCHES ? 3 : 5;
  const char *name = lk__opcode_info(op)->name;

  add_to_kind(t, 1, err, "%s", name);
  lk__reader_long(request); /* the zxid */
  for (int i = 0; i < nlists; i++) {
    int32_t npaths = lk__reader_int(request);

    if (npaths > 0)
      add_to_kind(t, (uint64_t)npaths, err, "%s, paths in %s", name, lists[i]);
    while (request->err == 0 && npaths-- > 0)
      lk__reader_bytes(request);
  }
}

/* Counts each operation of a transaction with the error of its result, and each
 * create with the type of its result as well. */
static void add_operations(counts *t, lk_reader *request, lk_reader *reply,
                           int32_t op)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  const char *name = lk__opcode_info(op)->name;
  lk_operation operation, result;
  bool empty = true;

  while (lk__operation_decode(request, LK_OPERATIONS_OF_REQUEST, &arena,
                              &operation) &&
         lk__operation_decode(reply, LK_OPERATIONS_OF_REPLY, &arena, &result)) {
    const char *type = lk__opcode_info(operation.type)->name;

    empty = false;
    if (creates(operation.type))
      add_to_kind(t, 1, result.err, "%s part %s, flags %d as %s", name, type,
                  (int)create_flags(&operation),
                  lk__opcode_info(result.type)->name);
    else
      add_to_kind(t, 1, result.err, "%s part %s", name, type);
  }
  if (empty)
    add_to_kind(t, 1, 0, "%s of nothing", name);
  lk__arena_free(&arena);
}

/* ---- replies ------------------------------------------------------------ */

static void add_reply(counts *t, int32_t op, lk_bytes request_body,
                      lk_bytes whole_reply)
{
  struct lk_reply_header head = {0, 0, 0};
  lk_reader request, reply;

  lk__reader_init(&request, request_body.at, request_body.len);
  lk__reader_init(&reply, whole_reply.at, whole_reply.len);
  lk__record_decode(&lk__reply_header_record, &head, &reply, NULL);
  if (creates(op))
    add_create(t, &request, op, head.err);
  else if (op == LK_OPCODE_ADD_WATCH || op == LK_OPCODE_REMOVE_WATCHES ||
           op == LK_OPCODE_CHECK_WATCHES)
    add_mode(t, &request, op, head.err);
  else if (op == LK_OPCODE_SET_WATCHES || op == LK_OPCODE_SET_WATCHES2)
    add_set_watches(t, &request, op, head.err);
  else
    add_to_kind(t, 1, head.err, "%s", lk__opcode_info(op)->name);
  if (lk__opcode_info(op)->has_operations && head.err == 0)
    add_operations(t, &request, &reply, op);
}

/* Counts what is not a reply with a header: an event, a connect reply, or the
 * end of the connection. */
static void add_without_reply_header(counts *t, int32_t op, lk_bytes bytes)
{
  struct lk_reply_header head = {0, 0, 0};
  struct lk_connect_reply connect = {0};
  lk_reader in;

  lk__reader_init(&in, bytes.at, bytes.len);
  if (op == NORMAL_CLOSED)
    add_to_kind(t, 1, 0, "closed");
  else if (op == NORMAL_EVENT) {
    lk__record_decode(&lk__reply_header_record, &head, &in, NULL);
    add_to_kind(t, 1, lk__reader_int(&in), "event, type");
  } else if (op == NORMAL_CONNECT_REPLY) {
    lk__record_decode(&lk__connect_reply_record, &connect, &in, NULL);
    add_to_kind(t, 1, connect.timeout_ms, "handshake, timeout");
  }
}

void counts_add(counts *t, const list *requests, const list *replies)
{
  size_t next_request = 0;

  if (!t->enabled)
    return;
  for (size_t i = 0; i < replies->count; i++) {
    int32_t op = replies->items[i].op;

    if (normal_is_reply(op))
      add_reply(t, op, list_at(requests, next_request++), list_at(replies, i));
    else
      add_without_reply_header(t, op, list_at(replies, i));
    if (op == NORMAL_CONNECT_REPLY)
      next_request++; /* the connect request is in the list of requests, too */
  }
}

/* ---- printing ----------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
  return strcmp(a, b); /* the name is the first member of a kind */
}

void counts_print(const counts *t)
{
  counts sorted = *t;

  qsort(sorted.kinds, sorted.kinds_used, sizeof *sorted.kinds, compare_names);
  for (size_t i = 0; i < sorted.kinds_used; i++)
    printf("%10" PRIu64 "  %s %d\n", sorted.kinds[i].count,
           sorted.kinds[i].name, (int)sorted.kinds[i].detail);
}
