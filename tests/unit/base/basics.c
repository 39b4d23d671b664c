/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "base/safe_list.h"
#include "support/failing_mem.h"
#include "support/suite.h"

static const int numbers[] = {
#define NUMBER(name, number, text) LK_ERR_##name,
    LK_ERRORS(NUMBER)
#undef NUMBER
};
enum { NERRORS = sizeof numbers / sizeof numbers[0] };

START_TEST(every_error_has_a_name_and_a_text_of_its_own)
{
  for (size_t i = 0; i < NERRORS; i++) {
    const char *text = lk_error_text(numbers[i]);

    ck_assert_int_lt(numbers[i], 0);
    ck_assert_uint_gt(strlen(text), 5);
    ck_assert_ptr_nonnull(lk_error_name(numbers[i]));
    for (size_t j = 0; j < i; j++) {
      ck_assert_str_ne(text, lk_error_text(numbers[j]));
      ck_assert_str_ne(lk_error_name(numbers[i]), lk_error_name(numbers[j]));
    }
  }
  ck_assert_str_eq(lk_error_name(-101), "NO_NODE");
  ck_assert_str_eq(lk_error_text(-101), "no such node");
  ck_assert_str_eq(lk_error_name(0), "OK");
  ck_assert_str_eq(lk_error_text(0), "success");
}
END_TEST

START_TEST(an_unknown_number_has_a_text_and_no_name)
{
  static const int unknown[] = {1, -9, -126, -999, -1000, INT32_MIN};

  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    ck_assert_str_eq(lk_error_text(unknown[i]), "unknown error");
    ck_assert_ptr_null(lk_error_name(unknown[i]));
  }
}
END_TEST

static bool is(lk_bytes bytes, const char *text)
{
  return bytes.len == strlen(text) && memcmp(bytes.at, text, bytes.len) == 0;
}

START_TEST(the_usual_access_lists_say_what_they_say)
{
  const lk_acl *open = lk_acl_open.entries;
  const lk_acl *creator = lk_acl_creator.entries;
  const lk_acl *readers = lk_acl_read.entries;

  ck_assert_uint_eq(lk_acl_open.count, 1);
  ck_assert_int_eq(open->perms, LK_PERM_ALL);
  ck_assert(is(open->scheme, "world") && is(open->id, "anyone"));
  ck_assert_uint_eq(lk_acl_creator.count, 1);
  ck_assert_int_eq(creator->perms, LK_PERM_ALL);
  ck_assert(is(creator->scheme, "auth") && is(creator->id, ""));
  ck_assert_ptr_nonnull(creator->id.at);
  ck_assert_uint_eq(lk_acl_read.count, 1);
  ck_assert_int_eq(readers->perms, LK_PERM_READ);
  ck_assert(is(readers->scheme, "world") && is(readers->id, "anyone"));
}
END_TEST

START_TEST(new_memory_is_zero_and_its_lack_is_reported)
{
  failing_mem f;
  static const char zeros[100];

  failing_mem_init(&f);
  char *p = lk__mem_new(&f.mem, sizeof zeros);
  ck_assert_ptr_nonnull(p);
  ck_assert_mem_eq(p, zeros, sizeof zeros);
  char *text = lk__mem_text(&f.mem, "text");
  ck_assert_str_eq(text, "text");
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_resize(&f.mem, text, 1000));
  ck_assert_str_eq(text, "text");
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_new(&f.mem, 1));
  f.fail_at = f.count + 1;
  ck_assert_ptr_null(lk__mem_text(&f.mem, "text"));
  lk__mem_free(&f.mem, p);
  lk__mem_free(&f.mem, text);
  lk__mem_free(&f.mem, NULL);
  ck_assert_uint_eq(f.live, 0);
}
END_TEST

START_TEST(the_usual_memory_is_the_c_librarys)
{
  char *p = lk__mem_new(&lk__mem_libc, 10);

  ck_assert_ptr_nonnull(p);
  p = lk__mem_resize(&lk__mem_libc, p, 100000);
  ck_assert_ptr_nonnull(p);
  ck_assert_int_eq(p[9], 0);
  p[99999] = 1;
  ck_assert_ptr_null(lk__mem_resize(&lk__mem_libc, p, 0));
}
END_TEST

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

START_TEST(a_walk_visits_what_was_there_and_has_not_left)
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

START_TEST(a_walk_within_a_walk_may_take_out_what_the_outer_one_comes_to)
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

START_TEST(a_walk_of_nothing_ends_at_once)
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

SUITE("basics", every_error_has_a_name_and_a_text_of_its_own,
      an_unknown_number_has_a_text_and_no_name,
      the_usual_access_lists_say_what_they_say,
      new_memory_is_zero_and_its_lack_is_reported,
      the_usual_memory_is_the_c_librarys, a_list_keeps_its_order,
      a_walk_visits_what_was_there_and_has_not_left,
      a_walk_within_a_walk_may_take_out_what_the_outer_one_comes_to,
      a_walk_of_nothing_ends_at_once)
