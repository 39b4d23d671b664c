/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/nodes/child_names.h"

static int compare_names(const void *a, const void *b)
{
  const lk_bytes *x = a;
  const lk_bytes *y = b;
  size_t shorter = x->len < y->len ? x->len : y->len;
  int order = shorter == 0 ? 0 : memcmp(x->at, y->at, shorter);

  return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* Returns a sorted copy of the array, to be freed. If there are no names or no
   memory, returns NULL; without memory `out` has failed. */
static lk_bytes *copy_sorted_names(const lk_bytes *names, size_t count,
                                   cli_text *out)
{
  if (count == 0)
    return NULL;
  lk_bytes *sorted = malloc(count * sizeof *sorted);

  if (sorted == NULL) {
    out->failed = true;
    return NULL;
  }
  memcpy(sorted, names, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare_names);
  return sorted;
}

void cli_child_names_text(cli_text *out, const lk_bytes *names, size_t count)
{
  lk_bytes *sorted = copy_sorted_names(names, count, out);

  for (size_t i = 0; sorted != NULL && i < count; i++) {
    cli_text_add_printable(out, sorted[i]);
    cli_text_puts(out, "\n");
  }
  free(sorted);
}

void cli_child_names_json(cli_json *j, const char *key, const lk_bytes *names,
                          size_t count)
{
  lk_bytes *sorted = copy_sorted_names(names, count, j->out);

  cli_json_open(j, key, '[');
  for (size_t i = 0; sorted != NULL && i < count; i++)
    cli_json_text(j, NULL, sorted[i]);
  cli_json_close(j, ']');
  free(sorted);
}
