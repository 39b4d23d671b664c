/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/names.h"
#include "support/suite.h"

static const lk_name_format *format = &lk__name_format_known;

/* Parses a copy of the text in a block of its size, so that the sanitizer finds
 * a read behind it. */
static bool parse(const char *text, lk_name *out)
{
  size_t len = strlen(text);
  char *block = malloc(len == 0 ? 1 : len);
  bool is_contender;

  ck_assert_ptr_nonnull(block);
  memcpy(block, text, len);
  is_contender = lk__name_parse(format, lk_bytes_of(block, len), out);
  free(block);
  return is_contender;
}

static void assert_contender(const char *text, const char *kind, int64_t number)
{
  lk_name n;

  ck_assert_msg(parse(text, &n), "%s is no contender", text);
  ck_assert_str_eq(n.kind->text, kind);
  ck_assert_int_eq(n.number, number);
}

static void assert_no_contender(const char *text)
{
  lk_name n;

  ck_assert_msg(!parse(text, &n), "%s is a contender", text);
}

#define UUID "6f1c1d2e-3a4b-4c5d-8e9f-001122334455"

START_TEST(names_of_all_known_kinds_are_contenders)
{
  assert_contender("_c_" UUID "-lock-0000000007", "lock-", 7);
  assert_contender("_c_" UUID "-__READ__0000000001", "__READ__", 1);
  assert_contender("_c_" UUID "-__WRIT__0000000002", "__WRIT__", 2);
  assert_contender("_c_" UUID "-latch-0000000003", "latch-", 3);
  assert_contender("_c_" UUID "-lease-0000000004", "lease-", 4);
  assert_contender("0123456789abcdef0123456789abcdef__lock__0000000005",
                   "__lock__", 5);
  assert_contender("0123456789abcdef0123456789abcdef__rlock__0000000006",
                   "__rlock__", 6);
  assert_contender("lock-2147483647", "lock-", 2147483647);
}
END_TEST

START_TEST(number_follows_the_text_of_the_kind_and_may_be_negative)
{
  assert_contender("lock--000000001", "lock-", -1);
  assert_contender("lock--2147483648", "lock-", -2147483648LL);
  assert_contender("__lock__-0000000012", "__lock__", -12);
  assert_contender("lock-0000000001lock-0000000002", "lock-", 2);
  assert_contender("lock-1__READ__0000000009", "__READ__", 9);
  assert_contender("x-lock--lock-0000000003", "lock-", 3);
  assert_contender("lock-5", "lock-", 5);
  assert_contender("lock-9999999999", "lock-", 9999999999LL);
}
END_TEST

START_TEST(other_names_are_no_contenders)
{
  assert_no_contender("");
  assert_no_contender("lock-");
  assert_no_contender("lock--");
  assert_no_contender("-1");
  assert_no_contender("0000000001");
  assert_no_contender("lock-00000000001"); /* eleven digits */
  assert_no_contender("lock---000000001");
  assert_no_contender("lock-000000000x");
  assert_no_contender("lock-0000000001 ");
  assert_no_contender("lock0000000001");
  assert_no_contender("Lock-0000000001");
  assert_no_contender("__lock_0000000001");
  assert_no_contender("ock-0000000001");
  assert_no_contender("config");
}
END_TEST

START_TEST(
    locks_contend_with_each_other_and_latches_and_permits_with_their_kind)
{
  enum { LOCKS = 5, NAMES = 7 };

  const char *const names[NAMES] = {"lock-1",    "__READ__1",  "__WRIT__1",
                                    "__lock__1", "__rlock__1", /* locks */
                                    "latch-1",   "lease-1"};

  for (size_t i = 0; i < NAMES; i++) {
    for (size_t j = 0; j < NAMES; j++) {
      bool both_are_locks = i < LOCKS && j < LOCKS;
      lk_name a, b;

      ck_assert(parse(names[i], &a) && parse(names[j], &b));
      ck_assert_int_eq(lk__node_kinds_contend(a.kind, b.kind),
                       both_are_locks || i == j);
    }
  }
}
END_TEST

START_TEST(only_read_nodes_of_curator_and_kazoo_are_readers)
{
  lk_name n;

  ck_assert(parse("lock-1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__WRIT__1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__lock__1", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse("__READ__1", &n) && n.kind->side == LK_SIDE_READER);
  ck_assert(parse("__rlock__1", &n) && n.kind->side == LK_SIDE_READER);
}
END_TEST

/* ---- exact formats ------------------------------------------------------ */

/* Parses the name by an exact format with one kind, which has this text. */
static bool parse_with_one_kind(const char *kind_text, const char *name,
                                int64_t *number)
{
  const lk_node_kind kind = {kind_text, LK_FAMILY_PLAIN, LK_SIDE_WRITER};
  const lk_node_kind *const kinds[] = {&kind};
  const lk_name_format exact = {.kinds = kinds, .count = 1, .exact = true};
  lk_name n = {NULL, 0};
  bool is_contender;

  format = &exact;
  is_contender = parse(name, &n);
  format = &lk__name_format_known;
  *number = n.number;
  ck_assert(!is_contender || n.kind == &kind);
  return is_contender;
}

START_TEST(name_of_an_exact_format_ends_with_a_number_as_servers_write_it)
{
  enum { REFUSED = -7 }; /* the name is not that of a contender */

  static const struct {
    const char *kind_text;
    const char *name;
    int64_t number; /* or REFUSED */
  } cases[] = {
      {"seq-", "seq-0000000012", 12},
      {"seq-", "seq-2147483647", 2147483647},
      {"seq-", "seq--000000001", -1},
      {"seq-", "seq--2147483648", -2147483648LL},
      {"seq-", UUID "-seq-0000000003", 3},
      {"seq-", UUID "-seq--000000003", -3},
      {"seq-", "seq--0000000001", REFUSED},
      {"seq-", "seq-00000000012", REFUSED},
      {"seq-", "seq-12", REFUSED},
      {"seq-", "seq-000000001x", REFUSED},
      {"seq-", "seq-seq-0000000001", REFUSED},
      {"seq-", "seq-", REFUSED},
      {"seq-", "", REFUSED},
      {"seq-", "0000000001", REFUSED},
      {"seq-", "a" UUID "-seq-0000000003", REFUSED},
      {"seq-", UUID "seq-0000000003", REFUSED},
      {"seq-", UUID "-" UUID "-seq-0000000003", REFUSED},
      {"seq-", "6F1c1d2e-3a4b-4c5d-8e9f-001122334455-seq-0000000003", REFUSED},
      {"lock", "lock0000000001", 1},
      {"lock", "lock-000000001", -1},
      {"lock", "lock-0000000001", REFUSED}, /* its kind is "lock-" */
      {"lock-", "lock-0000000001", 1},
      {"lock", "locklock0000000001", REFUSED},
      {"q1", "q10000000005", 5},
      {"q", "q10000000005", REFUSED},
      {"", "0000000001", 1},
      {"", "-000000001", -1},
      {"", "-0000000001", REFUSED},
      {"", UUID "-0000000001", 1},
      {"", UUID, REFUSED},
      {"", "", REFUSED}};

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t number;
    bool is_contender =
        parse_with_one_kind(cases[i].kind_text, cases[i].name, &number);

    ck_assert_msg(is_contender == (cases[i].number != REFUSED), "%s %s",
                  cases[i].kind_text, cases[i].name);
    if (is_contender)
      ck_assert_int_eq(number, cases[i].number);
  }
}
END_TEST

START_TEST(plain_names_of_readers_begin_with_r_and_of_writers_with_w)
{
  lk_name n;

  format = &lk__name_format_plain;
  ck_assert(parse("r-0000000001", &n) && n.kind->side == LK_SIDE_READER);
  ck_assert(parse("w-0000000001", &n) && n.kind->side == LK_SIDE_WRITER);
  ck_assert(parse(UUID "-w-0000000001", &n) && n.kind->side == LK_SIDE_WRITER);
  assert_no_contender("rw-0000000001");
  assert_no_contender("r-w-0000000001");
  assert_no_contender("x-0000000001");
  assert_no_contender("lock-0000000001");
  format = &lk__name_format_known;
}
END_TEST

START_TEST(unique_part_has_the_form_that_the_identity_asks_for)
{
  static const unsigned char zeros[16] = {0};
  static const char *const forms[] = {
      [LK_IDENTITY_CURATOR] = "_c_00000000-0000-4000-8000-000000000000-",
      [LK_IDENTITY_HEX] = "00000000000040008000000000000000",
      [LK_IDENTITY_HEX_ONLY] = "00000000000040008000000000000000",
      [LK_IDENTITY_UUID] = "00000000-0000-4000-8000-000000000000-",
      [LK_IDENTITY_DATA] = "00000000-0000-4000-8000-000000000000"};
  char part[LK_UNIQUE_PART_MAX_LEN + 1];

  for (lk_node_identity u = LK_IDENTITY_CURATOR; u <= LK_IDENTITY_DATA; u++) {
    lk__name_write_unique_part(u, part, zeros);
    ck_assert_str_eq(part, forms[u]);
    /* With LK_IDENTITY_DATA the unique part is not in the name. */
    ck_assert_uint_eq(lk__name_unique_part_len(u),
                      u == LK_IDENTITY_DATA ? 0 : strlen(forms[u]));
  }
}
END_TEST

START_TEST(unique_part_of_curator_is_a_version_4_uuid)
{
  char part[LK_UNIQUE_PART_MAX_LEN + 1];
  unsigned char ones[16], zeros[16] = {0};
  static const unsigned char some[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                                         0xcd, 0xef, 0x01, 0x23, 0x45, 0x67,
                                         0x89, 0xab, 0xcd, 0xef};

  memset(ones, 0xff, sizeof ones);
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, part, ones);
  ck_assert_str_eq(part, "_c_ffffffff-ffff-4fff-bfff-ffffffffffff-");
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, part, zeros);
  ck_assert_str_eq(part, "_c_00000000-0000-4000-8000-000000000000-");
  lk__name_write_unique_part(LK_IDENTITY_CURATOR, part, some);
  ck_assert_str_eq(part, "_c_01234567-89ab-4def-8123-456789abcdef-");
}
END_TEST

static bool has_own_base(const char *name)
{
  int64_t number;

  return lk__name_has_base(lk_text(name), lk_text("_c_" UUID "-lock-"),
                           &number);
}

START_TEST(own_name_is_its_base_and_a_sequence_number)
{
  ck_assert(has_own_base("_c_" UUID "-lock-0000000001"));
  ck_assert(has_own_base("_c_" UUID "-lock--000000001"));
  ck_assert(has_own_base("_c_" UUID "-lock--2147483648"));
  ck_assert(!has_own_base("_c_" UUID "-lock-"));
  ck_assert(!has_own_base("_c_" UUID "-lock--"));
  ck_assert(!has_own_base("_c_" UUID "-"));
  ck_assert(!has_own_base(""));
  ck_assert(!has_own_base("_c_" UUID "-lock-00000000001"));
  ck_assert(!has_own_base("_c_" UUID "-lock-1lock-0000000001"));
  ck_assert(!has_own_base("_c_" UUID "-__WRIT__0000000001"));
  ck_assert(
      !has_own_base("_c_7f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000001"));
  ck_assert(!has_own_base("_c_" UUID "-lock-000000000a"));
}
END_TEST

SUITE("names", names_of_all_known_kinds_are_contenders,
      number_follows_the_text_of_the_kind_and_may_be_negative,
      other_names_are_no_contenders,
      locks_contend_with_each_other_and_latches_and_permits_with_their_kind,
      only_read_nodes_of_curator_and_kazoo_are_readers,
      name_of_an_exact_format_ends_with_a_number_as_servers_write_it,
      plain_names_of_readers_begin_with_r_and_of_writers_with_w,
      unique_part_has_the_form_that_the_identity_asks_for,
      unique_part_of_curator_is_a_version_4_uuid,
      own_name_is_its_base_and_a_sequence_number)
