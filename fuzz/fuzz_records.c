/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Bytes as one record, or as the operations of a multi. The first byte selects
 * a record by its place in lk__records; the next two values select the
 * operations of a request and of a reply.
 *
 * Oracle: a record that is decoded, encoded and decoded again stays the same.
 * Decoding takes no more memory than a fixed multiple of the input. Printing
 * gives ASCII.
 */

#include "proto/wire/multi.h"
#include "target.h"

/* An allocator that adds up all requested sizes. */
static void *resize_and_count(void *arg, void *p, size_t size)
{
  size_t *sum = arg;

  *sum += size;
  if (size > 0)
    return realloc(p, size);
  free(p);
  return NULL;
}

typedef struct codec {
  size_t which;
  size_t sum;
  lk_mem mem;
  lk_arena arena;
} codec;

static void check_printed(const lk_record *rec, const void *value)
{
  lk_buf text = {.mem = &lk__mem_libc};
  const unsigned char *at;

  must(lk__record_print(rec, value, &text));
  at = lk__buf_bytes(&text);
  for (size_t i = 0; i < lk__buf_len(&text); i++)
    must(at[i] >= ' ' && at[i] <= '~');
  lk__buf_free(&text);
}

static void recode_record(codec *w, lk_reader *in, lk_writer *out)
{
  const lk_record *rec = lk__records[w->which];
  max_align_t value[16];

  must(rec->size <= sizeof value);
  if (lk__record_decode(rec, value, in, &w->arena) != 0)
    return;
  lk__record_encode(rec, value, out);
  check_printed(rec, value);
}

static void recode_operations(codec *w, bool result, lk_reader *in,
                              lk_writer *out)
{
  lk_operation part;

  while (lk__operation_decode(in, result, &w->arena, &part)) {
    lk__operation_encode(&part, result, out);
    check_printed(lk__operation_record(part.type, result), &part.body);
  }
  if (in->err == 0)
    lk__operation_encode_end(out);
}

/* Decode `bytes` and encode the result into `out`. */
static int recode(codec *w, const void *bytes, size_t len, lk_writer *out)
{
  lk_reader in;

  w->sum = 0;
  lk__reader_init(&in, bytes, len);
  if (w->which < lk__nrecords)
    recode_record(w, &in, out);
  else
    recode_operations(w, w->which > lk__nrecords, &in, out);
  must(out->err == 0);
  must(w->sum <= 2048 + 20 * len);
  must(in.err != 0 || out->len == len - lk__reader_left(&in));
  lk__arena_free(&w->arena);
  return in.err;
}

/* As recode(), but return the result in a new block; NULL: the bytes are no
 * valid record. */
static unsigned char *recode_into_block(codec *w, const void *bytes, size_t len,
                                        size_t *out_len)
{
  lk_writer out;
  unsigned char *block;

  lk__writer_init(&out, NULL, 0);
  if (recode(w, bytes, len, &out) != 0)
    return NULL;
  *out_len = out.len;
  block = malloc(out.len);
  must(block != NULL || out.len == 0);
  lk__writer_init(&out, block, out.len);
  must(recode(w, bytes, len, &out) == 0);
  return block;
}

/* Decode the bytes as the reply to a multi of `asked` operations. */
static void check_results(codec *w, const void *bytes, size_t len, size_t asked)
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
  codec w = {.mem = {resize_and_count, NULL}, .arena.mem = NULL};
  unsigned char *first, *again;
  size_t first_len, again_len;

  if (size == 0)
    return 0;
  w.which = data[0] % (lk__nrecords + 2);
  w.mem.arg = &w.sum;
  w.arena.mem = &w.mem;
  for (size_t asked = 0; asked < 6 && w.which > lk__nrecords; asked++)
    check_results(&w, data + 1, size - 1, asked);
  first = recode_into_block(&w, data + 1, size - 1, &first_len);
  if (first == NULL)
    return 0;
  again = recode_into_block(&w, first, first_len, &again_len);
  must(again != NULL && again_len == first_len &&
       memcmp(again, first, first_len) == 0);
  free(first);
  free(again);
  return 0;
}
