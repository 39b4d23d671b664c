/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "twin/tally.h"

#include "proto/multi.h"
#include "twin/plain.h"

#include <inttypes.h>
#include <stdio.h>

static void add(tally *t, int32_t op, int32_t what)
{
  size_t i = 0;

  while (i < t->count && (t->kinds[i].op != op || t->kinds[i].what != what))
    i++;
  if (i == TALLY_KINDS)
    return;
  if (i == t->count) {
    t->kinds[t->count].op = op;
    t->kinds[t->count++].what = what;
  }
  t->kinds[i].count++;
}

/* Why it failed, or 0. */
static int32_t part_error(lk_reader *in)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  int32_t err = 0;
  lk_part part;

  while (lk__part_decode(in, true, &arena, &part)) {
    if (err == 0 && part.err != LK_ERR_RUNTIME_INCONSISTENCY)
      err = part.err;
  }
  lk__arena_free(&arena);
  return err;
}

static int32_t kind_of(int32_t op, lk_bytes said)
{
  struct lk_reply_header head = {0, 0, 0};
  struct lk_connect_reply hello = {0};
  lk_reader in;

  lk__reader_init(&in, said.at, said.len);
  if (op == PLAIN_HELLO) {
    lk__record_decode(&lk__connect_reply_record, &hello, &in, NULL);
    return hello.timeout_ms;
  }
  lk__record_decode(&lk__reply_header_record, &head, &in, NULL);
  if (op == PLAIN_EVENT)
    return lk__reader_int(&in);
  return op == LK_OPCODE_MULTI && head.err == 0 ? part_error(&in) : head.err;
}

void tally_add(tally *t, const list *said)
{
  for (size_t i = 0; i < said->count; i++)
    add(t, said->items[i].op, kind_of(said->items[i].op, list_at(said, i)));
}

static const char *name_of(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  switch (op) {
  case PLAIN_EVENT: return "event, type";
  case PLAIN_HELLO: return "handshake, timeout";
  case PLAIN_CLOSED: return "closed";
  default: return info == NULL ? "?" : info->name;
  }
}

void tally_print(const tally *t)
{
  for (size_t i = 0; i < t->count; i++)
    printf("%10" PRIu64 "  %s %d\n", t->kinds[i].count, name_of(t->kinds[i].op),
           (int)t->kinds[i].what);
}
