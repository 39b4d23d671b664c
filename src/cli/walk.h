/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_WALK_H
#define LK_CLI_WALK_H

#include "cli/batch.h"

/** A node below another one. */
typedef struct cli_entry {
  char *path; /**< from there: "a/b" */
  lk_stat stat;
  bool known; /**< `stat` is */
  bool shut;  /**< what is below it may not be seen */
  bool gone;  /**< deleted while we looked */
} cli_entry;

/** What is below a node: its children, or all. */
typedef struct cli_walk {
  cli_entry *items; /**< in order: each before what is below it */
  size_t count;
  size_t cap;
  lk_stat stat; /**< of the node itself */
  size_t shut;  /**< how many are */
} cli_walk;

/** The children of the path of `a`; with `stats`, with what is known of each.
    Gives the error; free it in any case. */
int cli_walk_children(cli_walk *w, cli_ask *a, bool stats);
/** All that is below it, with what is known of each. */
int cli_walk_all(cli_walk *w, cli_ask *a);
void cli_walk_free(cli_walk *w);

/** The last name of an entry's path, and below how many others it is. */
const char *cli_entry_name(const cli_entry *e, size_t *depth);

#endif
