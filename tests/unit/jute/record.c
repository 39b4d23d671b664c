/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/record.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "vectors/vectors.h"

/* A record `all` with a field of every kind. */
struct pair {
  int32_t left;
  lk_bytes right;
};

struct all {
  int32_t number;
  int64_t wide;
  int64_t id;
  bool yes;
  lk_bytes text;
  lk_bytes secret;
  lk_stat stat;
  struct pair pair;
  lk_vec pairs;
  lk_vec names;
};

static const lk_field pair_fields[] = {
    {"left", LK_KIND_INT, offsetof(struct pair, left), NULL},
    {"right", LK_KIND_BYTES, offsetof(struct pair, right), NULL}};
static const lk_record pair_record = {"pair", sizeof(struct pair), 2,
                                      pair_fields};
static const lk_field all_fields[] = {
    {"number", LK_KIND_INT, offsetof(struct all, number), NULL},
    {"wide", LK_KIND_LONG, offsetof(struct all, wide), NULL},
    {"id", LK_KIND_ID, offsetof(struct all, id), NULL},
    {"yes", LK_KIND_BOOL, offsetof(struct all, yes), NULL},
    {"text", LK_KIND_BYTES, offsetof(struct all, text), NULL},
    {"secret", LK_KIND_SECRET, offsetof(struct all, secret), NULL},
    {"stat", LK_KIND_STAT, offsetof(struct all, stat), NULL},
    {"pair", LK_KIND_RECORD, offsetof(struct all, pair), &pair_record},
    {"pairs", LK_KIND_VECTOR, offsetof(struct all, pairs), &pair_record},
    {"names", LK_KIND_VECTOR, offsetof(struct all, names), &lk__bytes_record}};
static const lk_record all_record = {"all", sizeof(struct all), 10, all_fields};

static const char wire[] =
    "\xff\xff\xff\xfe"                 /* number */
    "\x00\x00\x00\x00\x00\x00\x00\x07" /* wide */
    "\x81\x00\x00\x00\x00\x00\x00\x00" /* id */
    "\x01"                             /* yes */
    "\x00\x00\x00\x04t\"x\n"           /* text */
    "\x00\x00\x00\x03tel"              /* secret */
    "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02"
    "\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04"
    "\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00\x07"
    "\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00\x0a"
    "\x00\x00\x00\x00\x00\x00\x00\x0b"                   /* stat */
    "\x00\x00\x00\x0c\xff\xff\xff\xff"                   /* pair */
    "\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01"   /* pairs */
    "a\x00\x00\x00\x02\x00\x00\x00\x00"                  /* pairs[1] */
    "\x00\x00\x00\x03\x00\x00\x00\x02xy\xff\xff\xff\xff" /* names */
    "\x00\x00\x00\x00";                                  /* names[2] */
enum { LEN = sizeof wire - 1 };

static failing_mem mem;
static lk_arena arena;
static lk_reader in;
static struct all value;
static unsigned char *block;

/* Also called at the end of a test, to free the arena. */
static void reset_memory(void)
{
  lk__arena_free(&arena);
  failing_mem_init(&mem);
  arena.mem = &mem.mem;
}

static int decode(const lk_record *rec, void *out, const char *bytes,
                  size_t len)
{
  free(block);
  block = exactly(bytes, len);
  lk__reader_init(&in, block, len);
  return lk__record_decode(rec, out, &in, &arena);
}

static lk_bytes name_of_value(size_t i)
{
  return ((lk_bytes *)value.names.items)[i];
}

START_TEST(every_kind_is_decoded)
{
  const struct pair *pairs;

  reset_memory();
  ck_assert_int_eq(decode(&all_record, &value, wire, LEN), 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  ck_assert_int_eq(value.number, -2);
  ck_assert_int_eq(value.wide, 7);
  ck_assert_uint_eq((uint64_t)value.id, 0x8100000000000000);
  ck_assert(value.yes);
  ck_assert_uint_eq(value.text.len, 4);
  ck_assert_mem_eq(value.text.at, "t\"x\n", 4);
  ck_assert_mem_eq(value.secret.at, "tel", 3);
  ck_assert_int_eq(value.stat.czxid, 1);
  ck_assert_int_eq(value.stat.pzxid, 11);
  ck_assert_int_eq(value.pair.left, 12);
  ck_assert_ptr_null(value.pair.right.at);
  ck_assert_uint_eq(value.pairs.count, 2);
  pairs = value.pairs.items;
  ck_assert_int_eq(pairs[0].left, 1);
  ck_assert_mem_eq(pairs[0].right.at, "a", 1);
  ck_assert_int_eq(pairs[1].left, 2);
  ck_assert_ptr_nonnull(pairs[1].right.at);
  ck_assert_uint_eq(value.names.count, 3);
  ck_assert_mem_eq(name_of_value(0).at, "xy", 2);
  ck_assert_ptr_null(name_of_value(1).at);
  ck_assert_ptr_nonnull(name_of_value(2).at);
  ck_assert_uint_eq(name_of_value(2).len, 0);
  reset_memory();
}
END_TEST

START_TEST(decoded_records_are_encoded_to_the_same_bytes)
{
  unsigned char bytes[LEN];
  lk_writer out;

  reset_memory();
  ck_assert_int_eq(decode(&all_record, &value, wire, LEN), 0);
  lk__writer_init(&out, bytes, sizeof bytes);
  lk__record_encode(&all_record, &value, &out);
  ck_assert_int_eq(out.err, 0);
  ck_assert_uint_eq(out.len, LEN);
  ck_assert_mem_eq(bytes, wire, LEN);
  reset_memory();
}
END_TEST

START_TEST(every_truncation_is_refused)
{
  for (size_t len = 0; len < LEN; len++) {
    reset_memory();
    ck_assert_int_eq(decode(&all_record, &value, wire, len),
                     LK_ERR_MARSHALLING);
    ck_assert_int_eq(in.err, LK_ERR_MARSHALLING);
  }
  reset_memory();
}
END_TEST

START_TEST(bytes_behind_a_record_are_not_read)
{
  struct pair pair;

  reset_memory();
  ck_assert_int_eq(decode(&pair_record, &pair, "\0\0\0\1\0\0\0\1abc", 11), 0);
  ck_assert_uint_eq(lk__reader_left(&in), 2);
}
END_TEST

START_TEST(a_count_larger_than_its_frame_takes_no_memory)
{
  /* A count and eight bytes, in which at most two empty names fit. */
  static const char *const inputs[] = {
      "\x00\x00\x00\x03________", "\x7f\xff\xff\xff________",
      "\x40\x00\x00\x01________", "\x20\x00\x00\x01________",
      "\xff\xff\xff\xfe________", "\x80\x00\x00\x00________"};
  const lk_field f = {"names", LK_KIND_VECTOR, 0, &lk__bytes_record};
  const lk_record names = {"names", sizeof(lk_vec), 1, &f};
  lk_vec v;

  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
    reset_memory();
    ck_assert_int_eq(decode(&names, &v, inputs[i], 4 + 8), LK_ERR_MARSHALLING);
    ck_assert_uint_eq(mem.count, 0);
    ck_assert_uint_eq(v.count, 0);
  }
}
END_TEST

START_TEST(a_vector_may_be_null_or_empty)
{
  const lk_field f = {"names", LK_KIND_VECTOR, 0, &lk__bytes_record};
  const lk_record names = {"names", sizeof(lk_vec), 1, &f};
  unsigned char bytes[4];
  lk_writer out;
  lk_vec v;

  reset_memory();
  ck_assert_int_eq(decode(&names, &v, "\xff\xff\xff\xff", 4), 0);
  ck_assert_ptr_null(v.items);
  ck_assert_uint_eq(v.count, 0);
  lk__writer_init(&out, bytes, 4);
  lk__record_encode(&names, &v, &out);
  ck_assert_mem_eq(bytes, "\xff\xff\xff\xff", 4);

  ck_assert_int_eq(decode(&names, &v, "\0\0\0\0", 4), 0);
  ck_assert_ptr_nonnull(v.items);
  ck_assert_uint_eq(v.count, 0);
  lk__writer_init(&out, bytes, 4);
  lk__record_encode(&names, &v, &out);
  ck_assert_mem_eq(bytes, "\0\0\0\0", 4);
  ck_assert_uint_eq(mem.count, 0);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  size_t n = 0;
  int err;

  do {
    reset_memory();
    mem.fail_at = ++n;
    err = decode(&all_record, &value, wire, LEN);
    ck_assert_int_eq(err, failing_mem_failed(&mem) ? LK_ERR_NO_MEMORY : 0);
    ck_assert_int_eq(in.err, err);
    lk__arena_free(&arena);
    ck_assert_uint_eq(mem.live, 0);
  } while (failing_mem_failed(&mem));
  ck_assert_uint_gt(n, 1);
}
END_TEST

START_TEST(the_least_size_is_that_of_empty_values)
{
  struct all empty;
  lk_writer out;

  memset(&empty, 0, sizeof empty);
  lk__writer_init(&out, NULL, 0);
  lk__record_encode(&all_record, &empty, &out);
  ck_assert_uint_eq(lk__record_min(&all_record), out.len);
  ck_assert_uint_eq(lk__record_min(&pair_record), 8);
  ck_assert_uint_eq(lk__record_min(&lk__bytes_record), 4);
}
END_TEST

START_TEST(a_vector_too_long_for_jute_is_refused)
{
  const lk_field f = {"names", LK_KIND_VECTOR, 0, &lk__bytes_record};
  const lk_record names = {"names", sizeof(lk_vec), 1, &f};
  lk_vec v = lk__vec_of(wire, (size_t)INT32_MAX + 1);
  lk_writer out;

  lk__writer_init(&out, NULL, 0);
  lk__record_encode(&names, &v, &out);
  ck_assert_int_eq(out.err, LK_ERR_TOO_BIG);
}
END_TEST

/* `wire` as text. */
static const char line[] =
    "number=-2 wide=7 id=0x8100000000000000 yes=1 text=\"t\\\"x\\x0a\" "
    "secret[3] stat{c=1 m=2 ver=5 cver=6 aver=7 own=0x8 len=9 kids=10 p=11} "
    "left=12 right=null pairs#=2 left=1 right=\"a\" left=2 right=\"\" "
    "names#=3 \"xy\" null \"\"";

START_TEST(a_record_is_printed_as_one_line_without_its_secrets)
{
  lk_buf out = {.mem = &mem.mem};

  reset_memory();
  ck_assert_int_eq(decode(&all_record, &value, wire, LEN), 0);
  ck_assert(lk__record_print(&all_record, &value, &out));
  ck_assert(lk__buf_append(&out, "", 1));
  ck_assert_str_eq((const char *)lk__buf_bytes(&out), line);
  value.secret = lk_text(NULL);
  value.names = lk__vec_of(NULL, 0);
  lk__buf_consume(&out, lk__buf_len(&out));
  ck_assert(lk__record_print(&all_record, &value, &out));
  ck_assert(lk__buf_append(&out, "", 1));
  ck_assert_ptr_nonnull(strstr((char *)lk__buf_bytes(&out), " secret=null "));
  ck_assert_ptr_nonnull(strstr((char *)lk__buf_bytes(&out), " names#=-1"));
  lk__buf_free(&out);
  reset_memory();
}
END_TEST

START_TEST(the_widest_values_are_printed_whole)
{
  const lk_stat s = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                     INT32_MIN, INT32_MIN, INT32_MIN, -1,
                     INT32_MIN, INT32_MIN, INT64_MIN};
  const lk_field f = {"s", LK_KIND_STAT, 0, NULL};
  const lk_record rec = {"s", sizeof s, 1, &f};
  lk_buf out = {.mem = &lk__mem_libc};

  ck_assert(lk__record_print(&rec, &s, &out));
  ck_assert(lk__buf_append(&out, "", 1));
  ck_assert_str_eq((const char *)lk__buf_bytes(&out),
                   "s{c=-9223372036854775808 m=-9223372036854775808 "
                   "ver=-2147483648 cver=-2147483648 aver=-2147483648 "
                   "own=0xffffffffffffffff len=-2147483648 kids=-2147483648 "
                   "p=-9223372036854775808}");
  lk__buf_free(&out);
}
END_TEST

START_TEST(printing_without_memory_is_an_error)
{
  failing_mem out_mem;
  size_t n = 0;

  reset_memory();
  ck_assert_int_eq(decode(&all_record, &value, wire, LEN), 0);
  do {
    lk_buf out = {.mem = &out_mem.mem};

    failing_mem_init(&out_mem);
    out_mem.fail_at = ++n;
    ck_assert_int_eq(lk__record_print(&all_record, &value, &out),
                     !failing_mem_failed(&out_mem));
    lk__buf_free(&out);
    ck_assert_uint_eq(out_mem.live, 0);
  } while (failing_mem_failed(&out_mem));
  ck_assert_uint_gt(n, 1);
  reset_memory();
}
END_TEST

/* Decode a list of `count` names, of which `bytes` are the lengths and texts.
 */
static int decode_list(size_t count, const char *bytes, size_t len)
{
  const lk_field f = {"names", LK_KIND_VECTOR, 0, &lk__name_record};
  const lk_record names = {"names", sizeof(lk_vec), 1, &f};
  char list[128] = {0, 0, 0, (char)count};
  lk_vec v;

  memcpy(list + 4, bytes, len);
  reset_memory();
  return decode(&names, &v, list, 4 + len);
}

START_TEST(name_of_a_child_is_not_empty_and_has_no_slash_and_no_nul)
{
  static const struct {
    const char *bytes; /* two names; the first is valid */
    size_t len;
    int err;
  } lists[] = {{"\0\0\0\1a\0\0\0\1.", 10, 0},
               {"\0\0\0\1a\0\0\0\2\x7f\xff", 11, 0},
               {"\0\0\0\1a\0\0\0\0", 9, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\xff\xff\xff\xff", 9, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\1/", 10, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\3a/b", 12, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\2/b", 11, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\1\0", 10, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\2a\0", 11, LK_ERR_MARSHALLING},
               {"\0\0\0\1a\0\0\0\3a\0b", 12, LK_ERR_MARSHALLING}};

  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    ck_assert_int_eq(decode_list(2, lists[i].bytes, lists[i].len),
                     lists[i].err);
}
END_TEST

/* The last byte of a length of 47 is that of "/". */
START_TEST(name_of_47_bytes_is_valid_without_a_slash)
{
  enum { FIRST = 4 + 47, SECOND = 4 + 2 };
  char list[FIRST + SECOND] = {0, 0, 0, '/'};

  memset(list + 4, 'a', 47);
  ck_assert_int_eq(decode_list(1, list, FIRST), 0);
  memcpy(list + FIRST, "\0\0\0\2a/", SECOND);
  ck_assert_int_eq(decode_list(2, list, sizeof list), LK_ERR_MARSHALLING);
  list[FIRST + SECOND - 1] = 'b';
  ck_assert_int_eq(decode_list(2, list, sizeof list), 0);
}
END_TEST

START_TEST(vector_without_memory_has_no_items)
{
  const lk_field f = {"names", LK_KIND_VECTOR, 0, &lk__bytes_record};
  const lk_record names = {"names", sizeof(lk_vec), 1, &f};
  lk_vec v;

  reset_memory();
  mem.fail_at = 1;
  ck_assert_int_eq(decode(&names, &v, "\x00\x00\x00\x01\x00\x00\x00\x01x", 9),
                   LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(v.items);
  ck_assert_uint_eq(v.count, 0);
}
END_TEST

SUITE("record", every_kind_is_decoded,
      decoded_records_are_encoded_to_the_same_bytes,
      every_truncation_is_refused, bytes_behind_a_record_are_not_read,
      a_count_larger_than_its_frame_takes_no_memory,
      a_vector_may_be_null_or_empty,
      name_of_a_child_is_not_empty_and_has_no_slash_and_no_nul,
      name_of_47_bytes_is_valid_without_a_slash, every_allocation_may_fail,
      the_least_size_is_that_of_empty_values,
      a_vector_too_long_for_jute_is_refused,
      a_record_is_printed_as_one_line_without_its_secrets,
      the_widest_values_are_printed_whole, printing_without_memory_is_an_error,
      vector_without_memory_has_no_items)
