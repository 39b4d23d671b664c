/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_SUBTREE_H
#define LK_CLI_NODES_SUBTREE_H

#include "cli/session/pipeline.h"

/** A node below another one. */
typedef struct cli_subtree_node {
  char *path; /**< from there: "a/b" */
  lk_stat stat;
  bool known; /**< `stat` is */
  bool shut;  /**< what is below it may not be seen */
  bool gone;  /**< deleted while we looked */
} cli_subtree_node;

/** What is below a node: its children, or all. */
typedef struct cli_subtree {
  cli_subtree_node *items; /**< in order: each before what is below it */
  size_t count;
  size_t cap;
  lk_stat stat; /**< of the node itself */
  size_t shut;  /**< how many are */
} cli_subtree;

/** The children of the path of `a`; with `stats`, with what is known of each.
    Gives the error; free it in any case. */
int cli_subtree_list_children(cli_subtree *w, cli_command *a, bool stats);
/** All that is below it, with what is known of each. */
int cli_subtree_list_all(cli_subtree *w, cli_command *a);
/** Close the command, free `w`, and return the exit code. If nodes could not be
    read for lack of permission, say how many; the exit code is then
    CLI_EXIT_FAILED. */
int cli_subtree_close(cli_subtree *w, cli_command *a, int err);
void cli_subtree_free(cli_subtree *w);

/** The last name of an entry's path, and below how many others it is. */
const char *cli_subtree_node_name(const cli_subtree_node *e, size_t *depth);

#endif
