/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/suite.h"
#include "vectors/vectors.h"

/* The protocol's table of opcodes, written independently of the library's.
   Flags: W, a write; L, executed by the leader; R, served by a read-only
   server.
 */
static const struct {
  int32_t number;
  const char *name;
  const char *flags;
} table[] = {{1, "create", "WL"},
             {2, "delete", "WL"},
             {3, "exists", "R"},
             {4, "getData", "R"},
             {5, "setData", "WL"},
             {6, "getACL", "R"},
             {7, "setACL", "WL"},
             {8, "getChildren", "R"},
             {9, "sync", "L"},
             {11, "ping", "R"},
             {12, "getChildren2", "R"},
             {13, "check", "WL"},
             {14, "multi", "WL"},
             {15, "create2", "WL"},
             {16, "reconfig", "WL"},
             {17, "checkWatches", "R"},
             {18, "removeWatches", "R"},
             {19, "createContainer", "WL"},
             {21, "createTTL", "WL"},
             {22, "multiRead", "R"},
             {100, "auth", "R"},
             {101, "setWatches", "R"},
             {102, "sasl", "R"},
             {103, "getEphemerals", "R"},
             {104, "getAllChildrenNumber", "R"},
             {105, "setWatches2", "R"},
             {106, "addWatch", "R"},
             {107, "whoAmI", "R"},
             {-11, "closeSession", "WL"},
             {-1, "error", ""}};
enum { NOPCODES = sizeof table / sizeof table[0] };

START_TEST(opcodes_are_those_of_the_protocol)
{
  for (size_t i = 0; i < NOPCODES; i++) {
    const lk_opcode_info *info = lk__opcode_info(table[i].number);

    ck_assert_ptr_nonnull(info);
    ck_assert_int_eq(info->number, table[i].number);
    ck_assert_str_eq(info->name, table[i].name);
    ck_assert_int_eq(info->write, strchr(table[i].flags, 'W') != NULL);
    ck_assert_int_eq(info->leader, strchr(table[i].flags, 'L') != NULL);
    ck_assert_int_eq(info->served_read_only,
                     strchr(table[i].flags, 'R') != NULL);
  }
  ck_assert_uint_eq(lk__nopcodes, NOPCODES);
  /* lk__hosts_mark_unsupported() has a bit for each. */
  ck_assert_uint_le(NOPCODES, 64);
}
END_TEST

START_TEST(opcodes_that_no_client_sends_are_unknown)
{
  static const int32_t unknown[] = {0,  10,  20,  23,        99,
                                    -2, -10, 108, INT32_MAX, INT32_MIN};

  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
    ck_assert_ptr_null(lk__opcode_info(unknown[i]));
}
END_TEST

typedef int32_t number_list[10]; /* opcodes; 0, which is none, behind them */

static bool contains(const number_list list, int32_t number)
{
  for (const int32_t *n = list; *n != 0; n++)
    if (*n == number)
      return true;
  return false;
}

START_TEST(operations_and_results_are_those_of_the_protocol)
{
  static const number_list in_multi = {1, 2, 5, 13, 15, 19, 21};
  static const number_list in_multi_read = {4, 8};
  static const number_list in_result = {1, 2, 4, 5, 8, 13, 15, -1};
  static const number_list has_operations = {14, 22}; /* multi, multiRead */
  static const number_list never_alone = {13, -1};    /* check, error */

  for (size_t i = 0; i < lk__nopcodes; i++) {
    const lk_opcode_info *info = &lk__opcodes[i];

    ck_assert_int_eq(info->in_multi, contains(in_multi, info->number));
    ck_assert_int_eq(info->in_multi_read,
                     contains(in_multi_read, info->number));
    ck_assert_int_eq(info->in_result, contains(in_result, info->number));
    ck_assert_int_eq(info->has_operations,
                     contains(has_operations, info->number));
    ck_assert_int_eq(info->never_alone, contains(never_alone, info->number));
  }
}
END_TEST

START_TEST(every_record_is_listed_once_and_within_its_struct)
{
  for (size_t i = 0; i < lk__nrecords; i++) {
    const lk_record *rec = lk__records[i];

    ck_assert_uint_gt(rec->nfields, 0);
    ck_assert_uint_gt(lk__record_min(rec), 0);
    for (size_t j = 0; j < rec->nfields; j++) {
      const lk_field *f = &rec->fields[j];
      bool nested = f->kind == LK_KIND_RECORD || f->kind == LK_KIND_VECTOR;

      ck_assert_uint_lt(f->offset, rec->size);
      ck_assert(j == 0 || f->offset > rec->fields[j - 1].offset);
      ck_assert_int_eq(nested, f->elem != NULL);
    }
    for (size_t j = 0; j < i; j++)
      ck_assert_str_ne(rec->name, lk__records[j]->name);
  }
}
END_TEST

START_TEST(stat_decoded_at_once_equals_stat_decoded_by_its_fields)
{
  unsigned char bytes[LK_STAT_SIZE], again[LK_STAT_SIZE];
  lk_stat fast, slow;
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;
  lk_writer out;

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)(i * 37 + 129);
  lk__reader_init(&in, bytes, sizeof bytes);
  lk__reader_stat(&in, &fast);
  memset(&slow, 0, sizeof slow);
  lk__reader_init(&in, bytes, sizeof bytes);
  ck_assert_int_eq(lk__record_decode(&lk__stat_record, &slow, &in, &arena), 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  lk__writer_init(&out, again, sizeof again);
  lk__record_encode(&lk__stat_record, &fast, &out);
  ck_assert_mem_eq(again, bytes, sizeof bytes);
  lk__writer_init(&out, again, sizeof again);
  lk__writer_stat(&out, &slow);
  ck_assert_mem_eq(again, bytes, sizeof bytes);
}
END_TEST

START_TEST(a_path_is_written_behind_its_chroot)
{
  const struct lk_set_data_request value = {lk_text("/app/x"), lk_text("d"), 7};
  unsigned char plain[64], prefixed[64];
  lk_writer a, b;

  lk__writer_init(&a, plain, sizeof plain);
  lk__record_encode(&lk__set_data_request_record, &value, &a);
  lk__writer_init(&b, prefixed, sizeof prefixed);
  lk__path_encode(&lk__set_data_request_record, &value, "/app", "/x", &b);
  ck_assert_uint_eq(a.len, b.len);
  ck_assert_mem_eq(plain, prefixed, a.len);
  lk__writer_init(&b, prefixed, sizeof prefixed);
  lk__path_encode(&lk__set_data_request_record, &value, "", "/app/x", &b);
  ck_assert_uint_eq(a.len, b.len);
  ck_assert_mem_eq(plain, prefixed, a.len);
}
END_TEST

SUITE("records", opcodes_are_those_of_the_protocol,
      opcodes_that_no_client_sends_are_unknown,
      operations_and_results_are_those_of_the_protocol,
      every_record_is_listed_once_and_within_its_struct,
      stat_decoded_at_once_equals_stat_decoded_by_its_fields,
      a_path_is_written_behind_its_chroot)
