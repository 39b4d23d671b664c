/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "cli/nodes/stat_fields.h"
#include "cli/nodes/subtree.h"
#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"

/* Shows the columns of -l; an unknown value is "-". */
static void show_node_details(cli_text *out, const cli_subtree_node *node)
{
  const lk_stat *s = &node->stat;

  if (!node->has_stat) {
    cli_text_printf(out, "%5s %7s %5s  %-24s  %-18s  ", "-", "-", "-", "-",
                    "-");
    return;
  }
  cli_text_printf(out, "%5" PRId32 " %7" PRId32 " %5" PRId32 "  ",
                  s->num_children, s->data_length, s->version);
  cli_text_time(out, s->mtime);
  if (s->ephemeral_owner != 0)
    cli_text_printf(out, "  0x%-16" PRIx64 "  ", (uint64_t)s->ephemeral_owner);
  else
    cli_text_printf(out, "  %-18s  ", "-");
}

static void show_listed_node(cli_text *out, const cli_subtree_node *node,
                             bool details)
{
  if (details)
    show_node_details(out, node);
  cli_text_add_printable(out, lk_text(node->path));
  cli_text_puts(out, "\n");
}

static void show_listed_node_json(cli_json *j, const cli_subtree_node *node,
                                  bool details)
{
  if (!details) {
    cli_json_text(j, NULL, lk_text(node->path));
    return;
  }
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", lk_text(node->path));
  if (node->has_stat)
    cli_stat_fields_json(j, &node->stat);
  cli_json_close(j, '}');
}

static void show_list(cli_command *command, const cli_subtree *subtree)
{
  bool details = command->options->details;
  cli_json j = {.out = &command->out};

  if (!command->options->json) {
    for (size_t i = 0; i < subtree->count; i++)
      show_listed_node(&command->out, &subtree->items[i], details);
    return;
  }
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(command->path));
  cli_json_open(&j, "children", '[');
  for (size_t i = 0; i < subtree->count; i++)
    show_listed_node_json(&j, &subtree->items[i], details);
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  cli_text_puts(&command->out, "\n");
}

int cli_ls(const cli_options *o, char **operands)
{
  cli_subtree subtree;
  cli_command command;

  if (!cli_command_open(&command, o, "ls", operands[0]))
    return CLI_EXIT_FAILED;
  int err = o->recursive
                ? cli_subtree_list_all(&subtree, &command)
                : cli_subtree_list_children(&subtree, &command, o->details);

  if (err == 0)
    show_list(&command, &subtree);
  return cli_subtree_close(&subtree, &command, err);
}
