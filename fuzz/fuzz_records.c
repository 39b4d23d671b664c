/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Bytes as one record, or as the parts of a multi. The first byte chooses:
 * a record by its place in lk__records, or behind them parts (requests),
 * results. What was decoded is encoded and decoded again and must stay the
 * same; it takes no more memory than the bytes are worth; it is printed.
 */

#include "proto/wire/multi.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so)
{
  if (!is_so)
    abort();
}

/* Memory that adds up what is asked for. */
static void *resize(void *arg, void *p, size_t size)
{
  size_t *sum = arg;

  *sum += size;
  if (size > 0)
    return realloc(p, size);
  free(p);
  return NULL;
}

typedef struct worker {
  size_t which;
  size_t sum;
  lk_mem mem;
  lk_arena arena;
} worker;

static void print(const lk_record *rec, const void *value)
{
  lk_buf text = {.mem = &lk__mem_libc};
  const unsigned char *at;

  must(lk__record_print(rec, value, &text));
  at = lk__buf_bytes(&text);
  for (size_t i = 0; i < lk__buf_len(&text); i++)
    must(at[i] >= ' ' && at[i] <= '~');
  lk__buf_free(&text);
}

static void relay_record(worker *w, lk_reader *in, lk_writer *out)
{
  const lk_record *rec = lk__records[w->which];
  max_align_t value[16];

  must(rec->size <= sizeof value);
  if (lk__record_decode(rec, value, in, &w->arena) != 0)
    return;
  lk__record_encode(rec, value, out);
  print(rec, value);
}

static void relay_parts(worker *w, bool result, lk_reader *in, lk_writer *out)
{
  lk_part part;

  while (lk__part_decode(in, result, &w->arena, &part)) {
    lk__part_encode(&part, result, out);
    print(lk__part_record(part.type, result), &part.body);
  }
  if (in->err == 0)
    lk__part_encode_end(out);
}

/* Decode `bytes` and encode into `out`, of which the length is counted. */
static int relay(worker *w, const void *bytes, size_t len, lk_writer *out)
{
  lk_reader in;

  w->sum = 0;
  lk__reader_init(&in, bytes, len);
  if (w->which < lk__nrecords)
    relay_record(w, &in, out);
  else
    relay_parts(w, w->which > lk__nrecords, &in, out);
  must(out->err == 0);
  must(w->sum <= 2048 + 20 * len);
  must(in.err != 0 || out->len == len - lk__reader_left(&in));
  lk__arena_free(&w->arena);
  return in.err;
}

/* The same in a block of its own; NULL: it was refused. */
static unsigned char *encoded(worker *w, const void *bytes, size_t len,
                              size_t *out_len)
{
  lk_writer out;
  unsigned char *block;

  lk__writer_init(&out, NULL, 0);
  if (relay(w, bytes, len, &out) != 0)
    return NULL;
  *out_len = out.len;
  block = malloc(out.len);
  must(block != NULL || out.len == 0);
  lk__writer_init(&out, block, out.len);
  must(relay(w, bytes, len, &out) == 0);
  return block;
}

/* As the reply to a multi of `asked` parts. */
static void try_results(worker *w, const void *bytes, size_t len, size_t asked)
{
  lk_op_result *results;
  lk_reader in;
  int outcome;
  bool refused = false;

  lk__reader_init(&in, bytes, len);
  if (lk__multi_decode(&in, asked, "/g", &w->arena, &results, &outcome) == 0) {
    for (size_t i = 0; i < asked; i++) {
      refused = refused || results[i].type == LK_OPCODE_ERROR;
      must(results[i].path == NULL || strlen(results[i].path) <= len);
    }
    must(refused == (outcome != 0));
  }
  lk__arena_free(&w->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  worker w = {.mem = {resize, NULL}, .arena.mem = NULL};
  unsigned char *first, *again;
  size_t first_len, again_len;

  if (size == 0)
    return 0;
  w.which = data[0] % (lk__nrecords + 2);
  w.mem.arg = &w.sum;
  w.arena.mem = &w.mem;
  for (size_t asked = 0; asked < 6 && w.which > lk__nrecords; asked++)
    try_results(&w, data + 1, size - 1, asked);
  first = encoded(&w, data + 1, size - 1, &first_len);
  if (first == NULL)
    return 0;
  again = encoded(&w, first, first_len, &again_len);
  must(again != NULL && again_len == first_len &&
       memcmp(again, first, first_len) == 0);
  free(first);
  free(again);
  return 0;
}
