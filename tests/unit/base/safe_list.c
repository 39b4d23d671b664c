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

/* ---- walks --------------------------------------------------------------- */

enum { MEMBERS = 5 };

static lk_safe_list walked;
static item members[MEMBERS + 1];
static char visited[64]; /* a digit for each visit, in order */

static void fill(void)
{
  lk__safe_list_init(&walked);
  visited[0] = '\0';
  for (int i = 0; i <= MEMBERS; i++) {
    members[i].value = i;
    lk__list_init(&members[i].link);
    if (i < MEMBERS)
      lk__safe_list_add(&walked, &members[i].link);
  }
}

static void visit(lk_link *l)
{
  size_t len = strlen(visited);

  ck_assert_uint_lt(len, sizeof visited - 1);
  visited[len] = (char)('0' + LK_OWNER(l, item, link)->value);
  visited[len + 1] = '\0';
}

static void leave(int i)
{
  lk__safe_list_remove(&walked, &members[i].link);
}

START_TEST(iteration_visits_members_that_were_there_and_still_are)
{
  lk_safe_iterator w;

  for (int at = 0; at < MEMBERS; at++) {
    for (int gone = 0; gone < (1 << MEMBERS); gone++) {
      char expected[MEMBERS + 1];
      int len = 0;

      fill();
      lk__safe_iterator_begin(&w, &walked);
      for (lk_link *l; (l = lk__safe_iterator_next(&w)) != NULL;) {
        visit(l);
        if (LK_OWNER(l, item, link)->value != at)
          continue;
        for (int i = 0; i < MEMBERS; i++) {
          if ((gone & 1 << i) != 0)
            leave(i);
        }
        lk__safe_list_add(&walked, &members[MEMBERS].link);
      }
      for (int i = 0; i < MEMBERS; i++) {
        if (i <= at || (gone & 1 << i) == 0)
          expected[len++] = (char)('0' + i);
      }
      expected[len] = '\0';
      ck_assert_str_eq(visited, expected);
      ck_assert_ptr_null(walked.innermost);
    }
  }
}
END_TEST

START_TEST(nested_iteration_may_remove_the_next_member)
{
  lk_safe_iterator outer, inner;

  fill();
  lk__safe_iterator_begin(&outer, &walked);
  for (lk_link *l; (l = lk__safe_iterator_next(&outer)) != NULL;) {
    visit(l);
    lk__safe_iterator_begin(&inner, &walked);
    for (lk_link *m; (m = lk__safe_iterator_next(&inner)) != NULL;) {
      visit(m);
      if (m == l)
        continue;
      lk__safe_list_remove(&walked, m);
      lk__safe_iterator_end(&inner);
      break;
    }
  }
  ck_assert_str_eq(visited, "001203243");
  ck_assert_ptr_null(walked.innermost);
  ck_assert_ptr_eq(walked.members.next, &members[4].link);
}
END_TEST

START_TEST(iteration_of_an_empty_list_ends_at_once)
{
  lk_safe_iterator w;

  fill();
  for (int i = 0; i < MEMBERS; i++)
    leave(i);
  lk__safe_iterator_begin(&w, &walked);
  lk__safe_list_add(&walked, &members[0].link);
  ck_assert_ptr_null(lk__safe_iterator_next(&w));
  ck_assert_ptr_null(walked.innermost);
}
END_TEST

SUITE("safe_list", a_list_keeps_its_order,
      iteration_visits_members_that_were_there_and_still_are,
      nested_iteration_may_remove_the_next_member,
      iteration_of_an_empty_list_ends_at_once)
