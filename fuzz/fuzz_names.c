/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * A list of children, one name on each line. The first line is the own node.
 *
 * Oracle: a simple second implementation of the same rules finds the same names
 * and predecessors, and the order of the list does not matter.
 */

#include "recipes/queue/queue.h"
#include "target.h"

#include <stdio.h>

enum { MAX_NAMES = 80 };

/* ---- names ------------------------------------------------------------- */

static const char *const known_marks[] = {"lock-",    "__WRIT__",  "__READ__",
                                          "__lock__", "__rlock__", "latch-",
                                          "lease-"};

/* The text after the last occurrence of `mark`; NULL: `mark` does not occur. */
static const char *behind_last(lk_bytes name, const char *mark)
{
  size_t len = strlen(mark);

  for (size_t at = name.len; at-- > 0;) {
    const char *s = (const char *)name.at + at;

    if (name.len - at >= len && memcmp(s, mark, len) == 0)
      return s + len;
  }
  return NULL;
}

/* Whether the text is a sequence number: an optional "-", and one to ten
 * digits. */
static bool is_suffix(const char *s, const char *end, int64_t *value)
{
  bool negative = s < end && *s == '-';
  const char *digits = s + negative;

  *value = 0;
  if (end - digits < 1 || end - digits > 10)
    return false;
  for (s = digits; s < end; s++) {
    if (*s < '0' || *s > '9')
      return false;
    *value = *value * 10 + (*s - '0');
  }
  if (negative)
    *value = -*value;
  return true;
}

static bool reference_parse(lk_bytes name, lk_name *out, const char **mark)
{
  bool is_one = false;

  for (size_t i = 0; i < sizeof known_marks / sizeof known_marks[0]; i++) {
    const char *rest = behind_last(name, known_marks[i]);
    int64_t value;

    if (rest == NULL ||
        !is_suffix(rest, (const char *)name.at + name.len, &value))
      continue;
    must(!is_one); /* no name has two known_marks before its number */
    is_one = true;
    out->number = value;
    *mark = known_marks[i];
  }
  return is_one;
}

static bool parse(lk_bytes name, lk_name *out)
{
  lk_name plain = {NULL, 0};
  const char *mark = NULL;
  bool is_one = lk__name_parse(&lk__name_format_known, name, out);

  must(is_one == reference_parse(name, &plain, &mark));
  if (is_one) {
    must(out->number == plain.number && strcmp(out->kind->text, mark) == 0);
    must(lk__node_kinds_contend(out->kind, out->kind));
  }
  return is_one;
}

static void check_own_name(lk_bytes name)
{
  char base[LK_UNIQUE_PART_MAX_LEN + sizeof "lock-"] = {0};
  int64_t number;
  lk_name n;

  if (name.len < LK_UNIQUE_PART_MAX_LEN)
    return;
  memcpy(base, name.at, LK_UNIQUE_PART_MAX_LEN);
  memcpy(base + LK_UNIQUE_PART_MAX_LEN, "lock-", sizeof "lock-");
  if (!lk__name_has_base(name, lk_bytes_of(base, sizeof base - 1), &number))
    return;
  must(parse(name, &n) && n.kind == &lk__node_kind_mutex && n.number == number);
  must(name.len > LK_UNIQUE_PART_MAX_LEN + 5 &&
       name.len <= LK_UNIQUE_PART_MAX_LEN + 5 + 11);
}

/* A native name is a mark and ten digits, with a UUID in front or without. */
static void check_native_name(lk_bytes name)
{
  char text[16];
  lk_name n;

  if (!lk__name_parse(&lk__name_format_plain, name, &n))
    return;
  size_t len = (size_t)snprintf(text, sizeof text, "%s%010lld", n.kind->text,
                                (long long)n.number);

  must(len < sizeof text && name.len >= len);
  must(memcmp((const char *)name.at + name.len - len, text, len) == 0);
  must(name.len == len || name.len == len + LK_UUID_LEN + 1);
  must(name.len == len || ((const char *)name.at)[LK_UUID_LEN] == '-');
}

/* ---- places ------------------------------------------------------------ */

static bool excludes(const lk_node_kind *other)
{
  return other->side != LK_SIDE_FAMILY_ONLY;
}

static const lk_role mutex = {.kind = &lk__node_kind_mutex,
                              .format = &lk__name_format_known,
                              .exclusive = true,
                              .excludes = excludes};

static bool same_bytes(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* Whether two nodes may have the same number: a writer, and the read lock to
 * which it downgrades. */
static bool may_share(const lk_name *a, const lk_name *b)
{
  return a->kind->family == LK_FAMILY_RW && b->kind->family == LK_FAMILY_RW &&
         (a->kind->side == LK_SIDE_READER || b->kind->side == LK_SIDE_READER);
}

static void check_order(const lk_queue_position *p)
{
  must(p->nearest_count == (p->predecessors < LK_KEPT_PREDECESSORS
                                ? p->predecessors
                                : LK_KEPT_PREDECESSORS));
  for (size_t i = 0; i < p->nearest_count; i++) {
    must(p->nearest[i].number < p->number);
    must(i == 0 || p->nearest[i].number <= p->nearest[i - 1].number);
    must(p->head.number <= p->nearest[i].number);
  }
}

/* The number of names in the list that are predecessors of `p` and have a
 * number above `than`. */
static size_t count_nearer(const lk_queue_position *p, const lk_bytes *names,
                           size_t count, int64_t than)
{
  size_t found = 0;

  for (size_t i = 0; i < count; i++) {
    lk_name n;

    found += parse(names[i], &n) && excludes(n.kind) && n.number < p->number &&
             n.number > than;
  }
  return found;
}

static void check_place(const lk_queue_position *p, lk_bytes own,
                        const lk_bytes *names, size_t count)
{
  bool found = false, unsafe = p->number > LK_SEQUENCE_LIMIT;
  size_t ahead = 0;

  for (size_t i = 0; i < count; i++) {
    lk_name a, b;

    if (!parse(names[i], &a) || !excludes(a.kind))
      continue;
    found = found || same_bytes(names[i], own);
    unsafe = unsafe || a.number < 0;
    ahead += a.number < p->number;
    must(!p->in_range || (a.number >= 0 && a.number <= LK_SEQUENCE_LIMIT));
    for (size_t j = 0; j < i; j++)
      unsafe = unsafe || (parse(names[j], &b) && excludes(b.kind) &&
                          a.number == b.number && !may_share(&a, &b));
  }
  must(p->found == found);
  must(!found || (p->unsafe == unsafe && p->predecessors == ahead));
  check_order(p);
  for (size_t i = 0; i < p->nearest_count; i++)
    must(count_nearer(p, names, count, p->nearest[i].number) <= i);
}

static lk_queue_position find_place(lk_bytes own, const lk_bytes *names,
                                    size_t count)
{
  int64_t *scratch = malloc(count * sizeof *scratch + 1);
  lk_queue_position p;

  must(scratch != NULL);
  lk__queue_position_find(&p, &mutex, own, names, count, scratch);
  free(scratch);
  return p;
}

static void check_list(lk_bytes own, lk_bytes *names, size_t count)
{
  lk_name us;
  lk_queue_position p = find_place(own, names, count);

  if (!parse(own, &us) || us.kind != &lk__node_kind_mutex) {
    must(!p.found);
    return;
  }
  check_place(&p, own, names, count);
  for (size_t i = 0; i < count / 2; i++) {
    lk_bytes other = names[i];

    names[i] = names[count - 1 - i];
    names[count - 1 - i] = other;
  }
  lk_queue_position q = find_place(own, names, count);

  must(p.found == q.found && p.unsafe == q.unsafe &&
       p.predecessors == q.predecessors && p.in_range == q.in_range &&
       p.has_rw_writer == q.has_rw_writer &&
       p.nearest_count == q.nearest_count &&
       (p.foreign.at == NULL) == (q.foreign.at == NULL));
  for (size_t i = 0; i < p.nearest_count; i++)
    must(p.nearest[i].number == q.nearest[i].number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  lk_bytes names[MAX_NAMES];
  size_t count = 0;
  const char *at = (const char *)data;
  const char *end = at + size;

  while (at < end && count < MAX_NAMES) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));

    if (stop == NULL)
      stop = end;
    names[count++] = lk_bytes_of(at, (size_t)(stop - at));
    at = stop + 1;
  }
  for (size_t i = 0; i < count; i++) {
    check_own_name(names[i]);
    check_native_name(names[i]);
  }
  if (count > 0)
    check_list(names[0], names, count);
  return 0;
}
