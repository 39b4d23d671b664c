/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_SUBTREE_H
#define LK_CLI_NODES_SUBTREE_H

#include "cli/session/request_batch.h"

/** A descendant of the node of the command. */
typedef struct cli_subtree_node {
  char *path;   /**< relative to the node of the command: "a/b" */
  lk_stat stat; /**< valid if `has_stat` */
  bool has_stat;
  bool unreadable; /**< no permission to read its children */
  bool deleted;    /**< another client deleted it before its Stat was read */
} cli_subtree_node;

/** The children of a node, or all of its descendants. */
typedef struct cli_subtree {
  cli_subtree_node *items; /**< sorted: each node before its descendants */
  size_t count;            /**< number of `items` */
  size_t cap;              /**< room of `items`, in nodes */
  lk_stat root_stat;       /**< Stat of the node of the command */
  size_t unreadable_count; /**< number of nodes with `unreadable` */
} cli_subtree;

/** Lists the children of the path of `command`, with their Stats if
    `with_stats`. Returns the error; cli_subtree_free() is needed in any case.
 */
int cli_subtree_list_children(cli_subtree *subtree, cli_command *command,
                              bool with_stats);
/** Lists all descendants of the path of `command`, with their Stats. */
int cli_subtree_list_all(cli_subtree *subtree, cli_command *command);
/** Closes the command, frees `subtree`, and returns the exit code. If the
    permission to read nodes was missing, prints their number and returns
    CLI_EXIT_FAILED. */
int cli_subtree_close(cli_subtree *subtree, cli_command *command, int err);

/** Returns the last name of the node's path; `depth` gets the number of names
    before it. */
const char *cli_subtree_node_name(const cli_subtree_node *node, size_t *depth);

#endif
