/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/subtree.h"
#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"
#include "cli/output/json.h"

static void show_tree_node(cli_text *out, size_t depth, const char *name,
                           const cli_subtree_node *node)
{
  cli_text_printf(out, "%*s", (int)(2 * depth), "");
  cli_text_add_printable(out, lk_text(name));
  if (node->unreadable)
    cli_text_puts(out, "  (not readable)");
  else if (node->stat.ephemeral_owner != 0)
    cli_text_puts(out, "  (ephemeral)");
  cli_text_puts(out, "\n");
}

static void show_tree(cli_command *command, const cli_subtree *subtree)
{
  cli_subtree_node root = {.stat = subtree->root_stat};

  show_tree_node(&command->out, 0, command->path, &root);
  for (size_t i = 0; i < subtree->count; i++) {
    size_t depth;
    const char *name = cli_subtree_node_name(&subtree->items[i], &depth);

    show_tree_node(&command->out, depth + 1, name, &subtree->items[i]);
  }
}

/* Closes the objects of open nodes until `remaining` are open. */
static void close_tree_nodes(cli_json *j, size_t *open_count, size_t remaining)
{
  for (; *open_count > remaining; (*open_count)--) {
    cli_json_close(j, ']');
    cli_json_close(j, '}');
  }
}

static void open_tree_node(cli_json *j, const char *key, const char *name,
                           const cli_subtree_node *node)
{
  cli_json_open(j, NULL, '{');
  cli_json_text(j, key, lk_text(name));
  if (node->has_stat)
    cli_json_bool(j, "ephemeral", node->stat.ephemeral_owner != 0);
  cli_json_open(j, "children", '[');
}

static void show_tree_json(cli_command *command, const cli_subtree *subtree)
{
  cli_subtree_node root = {.stat = subtree->root_stat, .has_stat = true};
  cli_json j = {.out = &command->out};
  size_t open_count = 1; /* number of nodes whose objects are not closed */

  open_tree_node(&j, "path", command->path, &root);
  for (size_t i = 0; i < subtree->count; i++) {
    size_t depth;
    const char *name = cli_subtree_node_name(&subtree->items[i], &depth);
    size_t ancestors = 1 + depth; /* the root, and the names before this one */

    close_tree_nodes(&j, &open_count, ancestors);
    open_tree_node(&j, "name", name, &subtree->items[i]);
    open_count++;
  }
  close_tree_nodes(&j, &open_count, 0);
  cli_text_puts(&command->out, "\n");
}

int cli_tree(const cli_options *o, char **operands)
{
  cli_subtree subtree;
  cli_command command;

  if (!cli_command_open(&command, o, "tree", operands[0]))
    return CLI_EXIT_FAILED;
  int err = cli_subtree_list_all(&subtree, &command);

  if (err == 0 && o->json)
    show_tree_json(&command, &subtree);
  else if (err == 0)
    show_tree(&command, &subtree);
  return cli_subtree_close(&subtree, &command, err);
}
