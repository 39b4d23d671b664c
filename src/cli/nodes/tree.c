/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/exit_code.h"
#include "cli/nodes/subtree.h"
#include "cli/output/json.h"
#include "cli/verbs.h"

static void show_tree_node(cli_text *out, size_t depth, const char *name,
                           const cli_subtree_node *e)
{
  cli_text_printf(out, "%*s", (int)(2 * depth), "");
  cli_text_add_printable(out, lk_text(name));
  if (e->unreadable)
    cli_text_puts(out, "  (not readable)");
  else if (e->stat.ephemeral_owner != 0)
    cli_text_puts(out, "  (ephemeral)");
  cli_text_puts(out, "\n");
}

static void show_tree(cli_command *a, const cli_subtree *w)
{
  cli_subtree_node top = {.stat = w->stat};

  show_tree_node(&a->out, 0, a->path, &top);
  for (size_t i = 0; i < w->count; i++) {
    size_t depth;
    const char *name = cli_subtree_node_name(&w->items[i], &depth);

    show_tree_node(&a->out, depth + 1, name, &w->items[i]);
  }
}

/* Closes the objects of open nodes until `left` are open: the ancestors of the
   next node. */
static void close_tree_nodes(cli_json *j, size_t *open, size_t left)
{
  for (; *open > left; (*open)--) {
    cli_json_close(j, ']');
    cli_json_close(j, '}');
  }
}

static void open_tree_node(cli_json *j, const char *key, const char *name,
                           const cli_subtree_node *e)
{
  cli_json_open(j, NULL, '{');
  cli_json_text(j, key, lk_text(name));
  if (e->known)
    cli_json_bool(j, "ephemeral", e->stat.ephemeral_owner != 0);
  cli_json_open(j, "children", '[');
}

static void show_tree_json(cli_command *a, const cli_subtree *w)
{
  cli_subtree_node top = {.stat = w->stat, .known = true};
  cli_json j = {.out = &a->out};
  size_t open = 1; /* number of nodes whose objects are not closed */

  open_tree_node(&j, "path", a->path, &top);
  for (size_t i = 0; i < w->count; i++) {
    size_t depth;
    const char *name = cli_subtree_node_name(&w->items[i], &depth);

    close_tree_nodes(&j, &open, depth + 1);
    open_tree_node(&j, "name", name, &w->items[i]);
    open++;
  }
  close_tree_nodes(&j, &open, 0);
  cli_text_puts(&a->out, "\n");
}

int cli_tree(const cli_options *o, char **operands)
{
  cli_subtree w;
  cli_command a;

  if (!cli_command_open(&a, o, "tree", operands[0]))
    return CLI_EXIT_FAILED;
  int err = cli_subtree_list_all(&w, &a);

  if (err == 0 && o->json)
    show_tree_json(&a, &w);
  else if (err == 0)
    show_tree(&a, &w);
  return cli_subtree_close(&w, &a, err);
}
