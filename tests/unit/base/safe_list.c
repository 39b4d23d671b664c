/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/safe_list.h"
#include "support/suite.h"

typedef struct item {
  int value;
  lk_link link;
} item;

static int value_of(lk_link *l)
{
  return LK_OWNER(l, item, link)->value;
}

START_TEST(a_list_keeps_its_order)
{
  lk_link a, b;
  item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};

  lk__list_init(&a);
  lk__list_init(&b);
  lk__list_add(&a, &items[0].link);
  lk__list_add(&a, &items[1].link);
  lk__list_add(&b, &items[2].link);
  lk__list_add(&items[2].link, &items[3].link);
  lk__list_move(&a, &b);
  lk__list_move(&a, &b);
  ck_assert(lk__list_empty(&b));
  lk__list_remove(&items[1].link);
  lk__list_remove(&items[1].link);
  ck_assert(lk__list_empty(&items[1].link));
  ck_assert_int_eq(value_of(a.next), 0);
  ck_assert_int_eq(value_of(a.next->next), 3);
  ck_assert_int_eq(value_of(a.prev), 2);
  ck_assert_ptr_eq(a.next->next->next->next, &a);
}
END_TEST

/* ---- iterations ---------------------------------------------------------- */

enum { MEMBERS = 5 };

static lk_safe_list list;
static item members[MEMBERS];
static item late_member; /* added during an iteration */
static char visited[64]; /* a digit for each visit, in order */

static void init_item(item *i, int value)
{
  i->value = value;
  lk__list_init(&i->link);
}

static void fill_list(void)
{
  lk__safe_list_init(&list);
  visited[0] = '\0';
  for (int i = 0; i < MEMBERS; i++) {
    init_item(&members[i], i);
    lk__safe_list_add(&list, &members[i].link);
  }
  init_item(&late_member, MEMBERS);
}

static void visit(lk_link *l)
{
  size_t len = strlen(visited);

  ck_assert_uint_lt(len, sizeof visited - 1);
  visited[len] = (char)('0' + value_of(l));
  visited[len + 1] = '\0';
}

static void remove_member(int i)
{
  lk__safe_list_remove(&list, &members[i].link);
}

/* A set of members: bit i stands for members[i]. */
static bool is_in_set(int set, int i)
{
  return (set & 1 << i) != 0;
}

/* While members[during] is visited, the members of the set `removed` are
   removed, and another member is added. */
static void iterate_and_remove(int during, int removed)
{
  lk_safe_iterator w;
  char expected[MEMBERS + 1];
  int len = 0;

  fill_list();
  lk__safe_iterator_begin(&w, &list);
  for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
    visit(l);
    if (value_of(l) != during)
      continue;
    for (int i = 0; i < MEMBERS; i++) {
      if (is_in_set(removed, i))
        remove_member(i);
    }
    lk__safe_list_add(&list, &late_member.link);
  }
  for (int i = 0; i < MEMBERS; i++) {
    if (i <= during || !is_in_set(removed, i))
      expected[len++] = (char)('0' + i);
  }
  expected[len] = '\0';
  ck_assert_str_eq(visited, expected);
  ck_assert_ptr_null(list.innermost);
}

START_TEST(iteration_visits_members_that_were_there_and_still_are)
{
  for (int during = 0; during < MEMBERS; during++)
    for (int removed = 0; removed < (1 << MEMBERS); removed++)
      iterate_and_remove(during, removed);
}
END_TEST

/* During each visit of the outer iteration, the inner one removes the first
   other member. */
START_TEST(nested_iteration_may_remove_the_next_member)
{
  lk_safe_iterator outer, inner;

  fill_list();
  lk__safe_iterator_begin(&outer, &list);
  for (lk_link *l; (l = lk__safe_iterator_next(&outer)) != NULL;) {
    visit(l);
    lk__safe_iterator_begin(&inner, &list);
    for (lk_link *m; (m = lk__safe_iterator_next(&inner)) != NULL;) {
      visit(m);
      if (m == l)
        continue;
      lk__safe_list_remove(&list, m);
      lk__safe_iterator_end(&inner);
      break;
    }
  }
  ck_assert_str_eq(visited, "001203243");
  ck_assert_ptr_null(list.innermost);
  ck_assert_ptr_eq(list.members.next, &members[4].link);
}
END_TEST

START_TEST(iteration_of_an_empty_list_ends_at_once)
{
  lk_safe_iterator w;

  fill_list();
  for (int i = 0; i < MEMBERS; i++)
    remove_member(i);
  lk__safe_iterator_begin(&w, &list);
  lk__safe_list_add(&list, &members[0].link);
  ck_assert_ptr_null(lk__safe_iterator_next(&w));
  ck_assert_ptr_null(list.innermost);
}
END_TEST

SUITE("safe_list", a_list_keeps_its_order,
      iteration_visits_members_that_were_there_and_still_are,
      nested_iteration_may_remove_the_next_member,
      iteration_of_an_empty_list_ends_at_once)
