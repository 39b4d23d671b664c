/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/names.h"
#include "support/suite.h"

static const lk_name_format *naming = &lk__name_format_known;

/* Parses a copy of the text in a block of its size, so that the sanitizer finds
 * a read behind it. */
static bool parse(const char *text, lk_name *out)
{
  size_t len = strlen(text);
  char *block = malloc(len == 0 ? 1 : len);
  bool is_one;

  ck_assert_ptr_nonnull(block);
  memcpy(block, text, len);
  is_one = lk__name_parse(naming, lk_bytes_of(block, len), out);
  free(block);
  return is_one;
}

static void assert_is(const char *text, const char *mark, int64_t number)
{
  lk_name n;

  ck_assert_msg(parse(text, &n), "%s is refused", text);
  ck_assert_str_eq(n.kind->text, mark);
  ck_assert_int_eq(n.number, number);
}

static void assert_none(const char *text)
{
  lk_name n;

  ck_assert_msg(!parse(text, &n), "%s is taken", text);
}

#define UUID "6f1c1d2e-3a4b-4c5d-8e9f-001122334455"

START_TEST(every_known_mark_is_a_contender)
{
  assert_is("_c_" UUID "-lock-0000000007", "lock-", 7);
  assert_is("_c_" UUID "-__READ__0000000001", "__READ__", 1);
  assert_is("_c_" UUID "-__WRIT__0000000002", "__WRIT__", 2);
  assert_is("_c_" UUID "-latch-0000000003", "latch-", 3);
  assert_is("_c_" UUID "-lease-0000000004", "lease-", 4);
  assert_is("0123456789abcdef0123456789abcdef__lock__0000000005", "__lock__",
            5);
  assert_is("0123456789abcdef0123456789abcdef__rlock__0000000006", "__rlock__",
            6);
  assert_is("lock-2147483647", "lock-", 2147483647);
}
END_TEST

START_TEST(a_suffix_is_what_follows_the_last_mark_and_may_be_negative)
{
  assert_is("lock--000000001", "lock-", -1);
  assert_is("lock--2147483648", "lock-", -2147483648LL);
  assert_is("__lock__-0000000012", "__lock__", -12);
  assert_is("lock-0000000001lock-0000000002", "lock-", 2);
  assert_is("lock-1__READ__0000000009", "__READ__", 9);
  assert_is("x-lock--lock-0000000003", "lock-", 3);
  assert_is("lock-5", "lock-", 5);
  assert_is("lock-9999999999", "lock-", 9999999999LL);
}
END_TEST

START_TEST(other_names_are_no_contenders)
{
  assert_none("");
  assert_none("lock-");
  assert_none("lock--");
  assert_none("-1");
  assert_none("0000000001");
  assert_none("lock-00000000001"); /* eleven digits */
  assert_none("lock---000000001");
  assert_none("lock-000000000x");
  assert_none("lock-0000000001 ");
  assert_none("lock0000000001");
  assert_none("Lock-0000000001");
  assert_none("__lock_0000000001");
  assert_none("ock-0000000001");
  assert_none("config");
}
END_TEST

START_TEST(lock_marks_contend_with_all_and_other_marks_among_themselves)
{
  const char *const names[] = {"lock-1",    "__READ__1",  "__WRIT__1",
                               "__lock__1", "__rlock__1", "latch-1",
                               "lease-1"};

  for (size_t i = 0; i < 7; i++) {
    for (size_t j = 0; j < 7; j++) {
      lk_name a, b;

      ck_assert(parse(names[i], &a) && parse(names[j], &b));
      ck_assert_int_eq(lk__node_kinds_contend(a.kind, b.kind),
                       (i < 5 && j < 5) || i == j);
    }
  }
}
END_TEST

START_TEST(only_read_and_rlock_share)
{
  lk_name n;

  ck_assert(parse("lock-1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__WRIT__1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__lock__1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__READ__1", &n) && n.kind->side == LK_SIDE_READER);
  ck_assert(parse("__rlock__1", &n) && n.kind->side == LK_SIDE_READER);
}
END_TEST

/* ---- plain names -------------------------------------------------------- */

static bool plain(const char *prefix, const char *text, int64_t *number)
{
  const lk_node_kind mark = {prefix, LK_FAMILY_PLAIN, LK_SIDE_WRITER};
  const lk_node_kind *const marks[] = {&mark};
  const lk_name_format exact = {.kinds = marks, .count = 1, .exact = true};
  lk_name n = {NULL, 0};
  bool is_one;

  naming = &exact;
  is_one = parse(text, &n);
  naming = &lk__name_format_known;
  *number = n.number;
  ck_assert(!is_one || n.kind == &mark);
  return is_one;
}

START_TEST(a_plain_name_is_its_mark_and_ten_places)
{
  static const struct {
    const char *prefix;
    const char *name;
    int64_t number; /* -7: the name is no contender */
  } cases[] = {
      {"seq-", "seq-0000000012", 12},
      {"seq-", "seq-2147483647", 2147483647},
      {"seq-", "seq--000000001", -1},
      {"seq-", "seq--2147483648", -2147483648LL},
      {"seq-", UUID "-seq-0000000003", 3},
      {"seq-", UUID "-seq--000000003", -3},
      {"seq-", "seq--0000000001", -7},
      {"seq-", "seq-00000000012", -7},
      {"seq-", "seq-12", -7},
      {"seq-", "seq-000000001x", -7},
      {"seq-", "seq-seq-0000000001", -7},
      {"seq-", "seq-", -7},
      {"seq-", "", -7},
      {"seq-", "0000000001", -7},
      {"seq-", "a" UUID "-seq-0000000003", -7},
      {"seq-", UUID "seq-0000000003", -7},
      {"seq-", UUID "-" UUID "-seq-0000000003", -7},
      {"seq-", "6F1c1d2e-3a4b-4c5d-8e9f-001122334455-seq-0000000003", -7},
      {"lock", "lock0000000001", 1},
      {"lock", "lock-000000001", -1},
      {"lock", "lock-0000000001", -7}, /* that is "lock-" */
      {"lock-", "lock-0000000001", 1},
      {"lock", "locklock0000000001", -7},
      {"q1", "q10000000005", 5},
      {"q", "q10000000005", -7},
      {"", "0000000001", 1},
      {"", "-000000001", -1},
      {"", "-0000000001", -7},
      {"", UUID "-0000000001", 1},
      {"", UUID, -7},
      {"", "", -7}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t number;
    bool is_one = plain(cases[i].prefix, cases[i].name, &number);

    ck_assert_msg(is_one == (cases[i].number != -7), "%s %s", cases[i].prefix,
                  cases[i].name);
    if (is_one)
      ck_assert_int_eq(number, cases[i].number);
  }
}
END_TEST

START_TEST(readers_and_writers_of_plain_names_are_known_by_a_letter)
{
  lk_name n;

  naming = &lk__name_format_plain;
  ck_assert(parse("r-0000000001", &n) && n.kind->side == LK_SIDE_READER);
  ck_assert(parse("w-0000000001", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse(UUID "-w-0000000001", &n) && n.kind->side == LK_SIDE_WRITER);
  assert_none("rw-0000000001");
  assert_none("r-w-0000000001");
  assert_none("x-0000000001");
  assert_none("lock-0000000001");
  naming = &lk__name_format_known;
}
END_TEST

START_TEST(a_prefix_is_what_the_layout_says)
{
  static const unsigned char zeros[16] = {0};
  static const char *const forms[] = {
      [LK_IDENTITY_CURATOR] = "_c_00000000-0000-4000-8000-000000000000-",
      [LK_IDENTITY_HEX] = "00000000000040008000000000000000",
      [LK_IDENTITY_HEX_ONLY] = "00000000000040008000000000000000",
      [LK_IDENTITY_UUID] = "00000000-0000-4000-8000-000000000000-",
      [LK_IDENTITY_DATA] = "00000000-0000-4000-8000-000000000000"};
  char prefix[LK_UNIQUE_PART_MAX_LEN + 1];

  for (lk_node_identity u = LK_IDENTITY_CURATOR; u <= LK_IDENTITY_DATA; u++) {
    lk__name_write_unique_part(u, prefix, zeros);
    ck_assert_str_eq(prefix, forms[u]);
    ck_assert_uint_eq(lk__name_unique_part_len(u),
                      u == LK_IDENTITY_DATA ? 0 : strlen(forms[u]));
  }
}
END_TEST

START_TEST(a_prefix_is_a_version_4_uuid_in_curators_form)
{
  char prefix[LK_UNIQUE_PART_MAX_LEN + 1];
  unsigned char ones[16], zeros[16] = {0};
  static const unsigned char some[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                                         0xcd, 0xef, 0x01, 0x23, 0x45, 0x67,
                                         0x89, 0xab, 0xcd, 0xef};

  memset(ones, 0xff, sizeof ones);
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, prefix, ones);
  ck_assert_str_eq(prefix, "_c_ffffffff-ffff-4fff-bfff-ffffffffffff-");
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, prefix, zeros);
  ck_assert_str_eq(prefix, "_c_00000000-0000-4000-8000-000000000000-");
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, prefix, some);
  ck_assert_str_eq(prefix, "_c_01234567-89ab-4def-8123-456789abcdef-");
}
END_TEST

static bool ours(const char *name)
{
  int64_t number;

  return lk__name_has_base(lk_text(name), lk_text("_c_" UUID "-lock-"),
                           &number);
}

START_TEST(own_name_is_the_given_prefix_and_a_sequence_number)
{
  ck_assert(ours("_c_" UUID "-lock-0000000001"));
  ck_assert(ours("_c_" UUID "-lock--000000001"));
  ck_assert(ours("_c_" UUID "-lock--2147483648"));
  ck_assert(!ours("_c_" UUID "-lock-"));
  ck_assert(!ours("_c_" UUID "-lock--"));
  ck_assert(!ours("_c_" UUID "-"));
  ck_assert(!ours(""));
  ck_assert(!ours("_c_" UUID "-lock-00000000001"));
  ck_assert(!ours("_c_" UUID "-lock-1lock-0000000001"));
  ck_assert(!ours("_c_" UUID "-__WRIT__0000000001"));
  ck_assert(!ours("_c_7f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000001"));
  ck_assert(!ours("_c_" UUID "-lock-000000000a"));
}
END_TEST

SUITE("names", every_known_mark_is_a_contender,
      a_suffix_is_what_follows_the_last_mark_and_may_be_negative,
      other_names_are_no_contenders,
      lock_marks_contend_with_all_and_other_marks_among_themselves,
      only_read_and_rlock_share, a_plain_name_is_its_mark_and_ten_places,
      readers_and_writers_of_plain_names_are_known_by_a_letter,
      a_prefix_is_what_the_layout_says,
      a_prefix_is_a_version_4_uuid_in_curators_form,
      own_name_is_the_given_prefix_and_a_sequence_number)
