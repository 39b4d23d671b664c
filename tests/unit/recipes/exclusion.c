/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/direct_handoff.h"
#include "recipes/queue/queue.h"
#include "support/suite.h"

#include <stdio.h>

/* The place of a contender in its queue, and the condition of rule H, decided
 * from the names in a list. */

enum { MAX_NAMES = 200 };

/* A mutex is excluded by each kind of contender, except those that exclude
 * their own family only. */
static bool excludes_mutex(const lk_node_kind *other)
{
  return other->side != LK_SIDE_FAMILY_ONLY;
}

static const lk_role mutex = {.kind = &lk__node_kind_mutex,
                              .format = &lk__name_format_known,
                              .exclusive = true,
                              .excludes = excludes_mutex};

/* The position of `own` in a queue with the names of `list`, which ends with
 * NULL. */
static lk_queue_position position_in_list(const char *own,
                                          const char *const *list)
{
  lk_bytes names[MAX_NAMES];
  int64_t scratch[MAX_NAMES];
  size_t count = 0;
  lk_queue_position p;

  for (; list[count] != NULL; count++)
    names[count] = lk_text(list[count]);
  lk__queue_position_find(&p, &mutex, lk_text(own), names, count, scratch);
  return p;
}

/* The position of the node `own` among the nodes that follow it. */
#define POSITION(own, ...) \
  position_in_list(own, (const char *const[]){__VA_ARGS__, NULL})

static void assert_name(lk_bytes name, const char *text)
{
  ck_assert_uint_eq(name.len, strlen(text));
  ck_assert_mem_eq(name.at, text, name.len);
}

START_TEST(only_contender_has_no_predecessors)
{
  lk_queue_position p = POSITION("a-lock-0000000005", "a-lock-0000000005");

  ck_assert(p.found && !p.unsafe && p.in_range && !p.has_rw_writer);
  ck_assert_uint_eq(p.predecessors, 0);
  ck_assert_int_eq(p.number, 5);
  ck_assert_ptr_null(p.foreign.at);
}
END_TEST

START_TEST(predecessors_have_smaller_numbers_and_the_nearest_is_first)
{
  lk_queue_position p =
      POSITION("d-lock-0000000010", "z-lock-0000000003", "b-lock-0000000011",
               "d-lock-0000000010", "a-lock-0000000009", "c-lock-0000000001");

  ck_assert(p.found && !p.unsafe);
  ck_assert_uint_eq(p.predecessors, 3);
  ck_assert_uint_eq(p.nearest_count, 3);
  assert_name(p.nearest[0].name, "a-lock-0000000009");
  assert_name(p.nearest[1].name, "z-lock-0000000003");
  assert_name(p.nearest[2].name, "c-lock-0000000001");
  assert_name(p.head.name, "c-lock-0000000001");
}
END_TEST

START_TEST(sequence_numbers_are_compared_as_numbers)
{
  lk_queue_position p =
      POSITION("a-lock-0000000100", "b-lock-99", "a-lock-0000000100");

  ck_assert_uint_eq(p.predecessors, 1);
}
END_TEST

START_TEST(nearest_nine_and_the_first_of_many_predecessors_are_kept)
{
  char text[MAX_NAMES][32];
  const char *list[MAX_NAMES];

  for (int i = 0; i < 100; i++) {
    /* all numbers from 0 to 99 in a mixed order, since 37 and 100 have no
     * common factor */
    snprintf(text[i], sizeof text[i], "x-lock-%010d", i * 37 % 100);
    list[i] = text[i];
  }
  list[100] = NULL;
  lk_queue_position p = position_in_list("x-lock-0000000090", list);

  ck_assert_uint_eq(p.predecessors, 90);
  ck_assert_uint_eq(p.nearest_count, LK_KEPT_PREDECESSORS);
  for (int i = 0; i < LK_KEPT_PREDECESSORS; i++)
    ck_assert_int_eq(p.nearest[i].number, 89 - i);
  ck_assert_int_eq(p.head.number, 0);
}
END_TEST

START_TEST(missing_own_node_is_detected)
{
  ck_assert(!POSITION("a-lock-0000000005", "b-lock-0000000004").found);
  ck_assert(!POSITION("a-lock-0000000005", "b-lock-0000000005").found);
  /* the name has one digit less */
  ck_assert(!POSITION("a-lock-0000000005", "a-lock-000000005").found);
}
END_TEST

START_TEST(unknown_names_neither_count_nor_are_reported)
{
  lk_queue_position p = POSITION("a-lock-0000000005", "a-lock-0000000005",
                                 "config", "lock-", "000000001", "locks", "");

  ck_assert(p.found && !p.unsafe && p.in_range);
  ck_assert_uint_eq(p.predecessors, 0);
  ck_assert_ptr_null(p.foreign.at);
}
END_TEST

START_TEST(
    nodes_of_other_recipes_and_native_layouts_do_not_count_and_are_reported)
{
  static const char *const names[] = {"-0000000001",
                                      "latch-0000000001",
                                      "latch--0000000001",
                                      "lease-0000000002",
                                      "leases",
                                      "r-0000000000",
                                      "seq-0000000000",
                                      "0123456789abcdef0123456789abcdef"};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    lk_queue_position p =
        POSITION("a-lock-0000000005", names[i], "a-lock-0000000005");

    ck_assert(p.found && !p.unsafe && p.in_range);
    ck_assert_uint_eq(p.predecessors, 0);
    assert_name(p.foreign, names[i]);
  }
}
END_TEST

/* A semaphore counts all children of the directory, also those that are no
 * permits. As predecessors, it has the children beyond the limit. */
START_TEST(foreign_nodes_among_permits_are_reported)
{
  static const char kazoo_permit[] = "0123456789abcdef0123456789abcdef";
  static const char curator_permit[] = "a-lease-0000000001";
  const lk_bytes names[] = {lk_text(curator_permit), lk_text(kazoo_permit),
                            lk_text("config")};
  const lk_bytes *without_curator = names + 1;
  size_t limit = 1;
  lk_queue_position p;

  lk__permit_nodes_find_position(&p, &lk__role_permit, names[0], names, 3,
                                 limit);
  ck_assert(p.found);
  ck_assert_uint_eq(p.predecessors, 2);
  assert_name(p.foreign, kazoo_permit);
  limit = 3;
  lk__permit_nodes_find_position(&p, &lk__role_kazoo_permit, names[1], names, 3,
                                 limit);
  ck_assert(p.found);
  ck_assert_uint_eq(p.predecessors, 0);
  assert_name(p.foreign, curator_permit);
  lk__permit_nodes_find_position(&p, &lk__role_kazoo_permit, names[1],
                                 without_curator, 2, limit);
  ck_assert_ptr_null(p.foreign.at);
}
END_TEST

START_TEST(contenders_of_rwlocks_and_of_kazoo_count_and_are_reported)
{
  lk_queue_position p = POSITION("a-lock-0000000005", "a-lock-0000000005",
                                 "b-__READ__0000000004");

  ck_assert_uint_eq(p.predecessors, 1);
  ck_assert(!p.has_rw_writer);
  assert_name(p.foreign, "b-__READ__0000000004");
  p = POSITION("a-lock-0000000005", "a-lock-0000000005", "b__rlock__0000000004",
               "b__lock__0000000003");
  ck_assert_uint_eq(p.predecessors, 2);
  ck_assert(!p.has_rw_writer);
  /* a contender of another kind is also reported if its number is larger, since
   * it may not wait for us */
  p = POSITION("a-lock-0000000005", "a-lock-0000000005", "b__lock__0000000006");
  ck_assert_uint_eq(p.predecessors, 0);
  assert_name(p.foreign, "b__lock__0000000006");
}
END_TEST

START_TEST(curators_write_node_is_reported_only_with_a_smaller_number)
{
  ck_assert(
      POSITION("a-lock-0000000005", "a-lock-0000000005", "b-__WRIT__0000000004")
          .has_rw_writer);
  ck_assert(!POSITION("a-lock-0000000005", "a-lock-0000000005",
                      "b-__WRIT__0000000006")
                 .has_rw_writer);
}
END_TEST

START_TEST(number_beyond_the_limit_is_unsafe_unless_it_is_behind_us)
{
  char own[32];

  snprintf(own, sizeof own, "a-lock-%010d", (int)LK_SEQUENCE_LIMIT);
  lk_queue_position p = POSITION(own, own);

  ck_assert(!p.unsafe && p.in_range);
  snprintf(own, sizeof own, "a-lock-%010d", (int)LK_SEQUENCE_LIMIT + 1);
  p = POSITION(own, own);
  ck_assert(p.unsafe && p.found);
  /* after an overflow of the counter, the number is negative */
  p = POSITION("a-lock--000000001", "a-lock--000000001");
  ck_assert(p.unsafe && p.found);
  /* negative numbers of other clients */
  p = POSITION("a-lock-0000000001", "a-lock-0000000001", "b-lock--000000009");
  ck_assert(p.unsafe);
  p = POSITION("a-lock-0000000001", "a-lock-0000000001", "b__lock__-9");
  ck_assert(p.unsafe);
  /* a larger number than ours, beyond the limit, only forbids rule H */
  p = POSITION("a-lock-0000000001", "a-lock-0000000001", "b-lock-2147483647");
  ck_assert(!p.unsafe && !p.in_range);
}
END_TEST

START_TEST(equal_numbers_are_unsafe_except_in_a_downgrade)
{
  ck_assert(POSITION("a-lock-0000000009", "a-lock-0000000009",
                     "b-lock-0000000001", "c-lock-0000000001")
                .unsafe);
  ck_assert(
      POSITION("a-lock-0000000009", "a-lock-0000000009", "b-lock-0000000009")
          .unsafe);
  ck_assert(POSITION("a-lock-0000000009", "a-lock-0000000009",
                     "b__rlock__0000000002", "c__rlock__0000000002")
                .unsafe);
  ck_assert(POSITION("a-lock-0000000009", "a-lock-0000000009",
                     "b-__WRIT__0000000002", "c-__WRIT__0000000002")
                .unsafe);
  ck_assert(POSITION("a-lock-0000000009", "a-lock-0000000009",
                     "b__lock__0000000002", "c__rlock__0000000002")
                .unsafe);
  lk_queue_position p =
      POSITION("a-lock-0000000009", "a-lock-0000000009", "b-__WRIT__0000000002",
               "x-lock-0000000003", "c-__READ__0000000002");

  /* the holder of the write node has created a read node of the same number */
  ck_assert(!p.unsafe);
  ck_assert_uint_eq(p.predecessors, 3);
  /* two writers with one number */
  ck_assert(POSITION("a-lock-0000000009", "a-lock-0000000009",
                     "b-__WRIT__0000000002", "d-__WRIT__0000000002",
                     "c-__READ__0000000002")
                .unsafe);
}
END_TEST

/* The writer downgraded, released the read side, and downgraded again. Its
 * first read node is not deleted yet. */
START_TEST(writer_may_have_two_read_nodes_of_its_number)
{
  lk_queue_position p =
      POSITION("a-lock-0000000009", "a-lock-0000000009", "b-__WRIT__0000000002",
               "d-__READ__0000000002", "c-__READ__0000000002");

  ck_assert(!p.unsafe);
  ck_assert_uint_eq(p.predecessors, 3);
  /* the write node is deleted */
  p = POSITION("a-lock-0000000009", "a-lock-0000000009", "d-__READ__0000000002",
               "c-__READ__0000000002");
  ck_assert(!p.unsafe);
  ck_assert_uint_eq(p.predecessors, 2);
}
END_TEST

START_TEST(own_node_is_recovered_by_its_prefix)
{
  lk_bytes prefix = lk_text("_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-");
  lk_bytes names[] = {
      lk_text("_c_7f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000001"),
      lk_text("_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000009"),
      lk_text("_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000003"),
      lk_text("_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-latch-0000000002")};

  /* two nodes have the prefix: the one with the smaller number */
  assert_name(lk__names_find_own(names, 4, prefix),
              "_c_6f1c1d2e-3a4b-4c5d-8e9f-001122334455-lock-0000000003");
  /* the first name has another UUID */
  ck_assert_ptr_null(lk__names_find_own(names, 1, prefix).at);
  ck_assert_ptr_null(lk__names_find_own(NULL, 0, prefix).at);
}
END_TEST

START_TEST(a_deletion_grants_only_if_all_six_conditions_hold)
{
  const lk_direct_handoff proven = {.predecessors = 0,
                                    .same_connection = true,
                                    .own_watched = true,
                                    .exclusive = true,
                                    .has_rw_writer = false,
                                    .in_range = true,
                                    .leased = true};
  lk_direct_handoff h = proven;

  ck_assert(lk__direct_handoff_is_proven(&h));
  h.predecessors = 1;
  ck_assert(!lk__direct_handoff_is_proven(&h));
  h = proven;
  h.same_connection = false;
  ck_assert(!lk__direct_handoff_is_proven(&h));
  h = proven;
  h.own_watched = false;
  ck_assert(!lk__direct_handoff_is_proven(&h));
  h = proven;
  h.has_rw_writer = true;
  ck_assert(!lk__direct_handoff_is_proven(&h));
  h.exclusive = false; /* readers that appear later do not exclude a reader */
  ck_assert(lk__direct_handoff_is_proven(&h));
  h = proven;
  h.in_range = false;
  ck_assert(!lk__direct_handoff_is_proven(&h));
  h = proven;
  h.leased = false;
  ck_assert(!lk__direct_handoff_is_proven(&h));
}
END_TEST

SUITE("exclusion", only_contender_has_no_predecessors,
      predecessors_have_smaller_numbers_and_the_nearest_is_first,
      sequence_numbers_are_compared_as_numbers,
      nearest_nine_and_the_first_of_many_predecessors_are_kept,
      missing_own_node_is_detected,
      unknown_names_neither_count_nor_are_reported,
      nodes_of_other_recipes_and_native_layouts_do_not_count_and_are_reported,
      foreign_nodes_among_permits_are_reported,
      contenders_of_rwlocks_and_of_kazoo_count_and_are_reported,
      curators_write_node_is_reported_only_with_a_smaller_number,
      number_beyond_the_limit_is_unsafe_unless_it_is_behind_us,
      equal_numbers_are_unsafe_except_in_a_downgrade,
      writer_may_have_two_read_nodes_of_its_number,
      own_node_is_recovered_by_its_prefix,
      a_deletion_grants_only_if_all_six_conditions_hold)
