/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/queue.h"

/* What stands behind the last `mark` in `name`; NULL where there is none. */
static const char *behind_last(lk_bytes name, const char *mark)
{
  size_t len = strlen(mark);

  for (size_t i = name.len; i >= len; i--) {
    const char *end = (const char *)name.at + i;

    if (memcmp(end - len, mark, len) == 0)
      return end;
  }
  return NULL;
}

/* An optional minus and one to ten digits, and nothing else. */
static bool number_of(const char *s, const char *end, int64_t *out)
{
  bool minus = s < end && *s == '-';
  int64_t n = 0;

  s += minus ? 1 : 0;
  if (s == end || end - s > 10)
    return false;
  for (; s < end; s++) {
    if (*s < '0' || *s > '9')
      return false;
    n = n * 10 + (*s - '0');
  }
  *out = minus ? -n : n;
  return true;
}

bool cli_queue_parse_lease(lk_bytes name, int64_t *number)
{
  const char *s = behind_last(name, "lease-");

  return s != NULL && number_of(s, (const char *)name.at + name.len, number);
}

bool cli_queue_is_kazoo_lease(lk_bytes name)
{
  const char *s = name.at;
  size_t hex = 0;

  while (hex < name.len && s[hex] != '\0' &&
         strchr("0123456789abcdef", s[hex]) != NULL)
    hex++;
  return hex == 32 && name.len == 32;
}

/* A reader with a writer's number is that writer's own, and comes after it. */
static int compare(const void *a, const void *b)
{
  const cli_contender *x = a;
  const cli_contender *y = b;

  if (x->gone != y->gone)
    return x->gone ? 1 : -1;
  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  if (x->shared != y->shared)
    return x->shared ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* The permits that the first in the queue waits with are younger than its
 * place. */
size_t cli_queue_order_permits(cli_contender *all, size_t count)
{
  int64_t first = INT64_MAX;
  size_t kept = 0;

  if (count > 0)
    qsort(all, count, sizeof *all, compare);
  for (size_t i = 0; i < count; i++) {
    if (!all[i].lease && !all[i].gone && !all[i].hidden &&
        all[i].stat.czxid < first)
      first = all[i].stat.czxid;
  }
  for (size_t i = 0; i < count; i++) {
    cli_contender c = all[i];

    c.holds = c.lease;
    if (c.gone || (c.lease && c.stat.czxid > first))
      continue;
    all[i] = all[kept];
    all[kept++] = c;
  }
  return kept;
}

size_t cli_queue_order(cli_contender *all, size_t count)
{
  bool writer = false;
  size_t i;

  if (count > 0)
    qsort(all, count, sizeof *all, compare);
  for (i = 0; i < count && !all[i].gone; i++) {
    bool own = i > 0 && all[i].number == all[0].number;

    all[i].holds = i == 0 || (all[i].shared && (!writer || own));
    writer = writer || !all[i].shared;
  }
  return i;
}
