/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "cli/nodes/stat_fields.h"
#include "cli/nodes/subtree.h"
#include "cli/output/print.h"
#include "cli/verbs.h"

/* What is below a node that is not ours to see is not there; say so, and end
   with an error all the same. */
static int close_listing(cli_subtree *w, cli_command *a, int err)
{
  size_t shut = err == 0 ? w->shut : 0;
  int code = cli_command_close(a, err);

  cli_subtree_free(w);
  if (shut == 0 || code != CLI_EXIT_DONE)
    return code;
  return cli_fail(CLI_EXIT_FAILED, "%s %s: %zu node%s not read: %s%s", a->verb,
                  a->path, shut, shut == 1 ? "" : "s",
                  lk_error_text(LK_ERR_NO_AUTH),
                  cli_error_advice(LK_ERR_NO_AUTH));
}

/* ---- ls --------------------------------------------------------------------
 */

/* The columns of -l; what is not known is "-". */
static void show_node_details(cli_text *out, const cli_subtree_node *e)
{
  const lk_stat *s = &e->stat;

  if (!e->known) {
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

static void show_listed_node(cli_text *out, const cli_subtree_node *e,
                             bool details)
{
  if (details)
    show_node_details(out, e);
  cli_text_clean(out, lk_text(e->path));
  cli_text_puts(out, "\n");
}

static void show_listed_node_json(cli_json *j, const cli_subtree_node *e,
                                  bool details)
{
  if (!details) {
    cli_json_text(j, NULL, lk_text(e->path));
    return;
  }
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", lk_text(e->path));
  if (e->known)
    cli_stat_fields_json(j, &e->stat);
  cli_json_close(j, '}');
}

static void show_list(cli_command *a, const cli_subtree *w)
{
  bool details = a->options->details;
  cli_json j = {.out = &a->out};

  if (!a->options->json) {
    for (size_t i = 0; i < w->count; i++)
      show_listed_node(&a->out, &w->items[i], details);
    return;
  }
  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(a->path));
  cli_json_open(&j, "children", '[');
  for (size_t i = 0; i < w->count; i++)
    show_listed_node_json(&j, &w->items[i], details);
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  cli_text_puts(&a->out, "\n");
}

int cli_ls(const cli_options *o, char **operands)
{
  cli_subtree w;
  cli_command a;

  if (!cli_command_open(&a, o, "ls", operands[0]))
    return CLI_EXIT_FAILED;
  int err = o->recursive ? cli_subtree_list_all(&w, &a)
                         : cli_subtree_list_children(&w, &a, o->details);

  if (err == 0)
    show_list(&a, &w);
  return close_listing(&w, &a, err);
}

/* ---- tree ------------------------------------------------------------------
 */

static void show_tree_node(cli_text *out, size_t depth, const char *name,
                           const cli_subtree_node *e)
{
  cli_text_printf(out, "%*s", (int)(2 * depth), "");
  cli_text_clean(out, lk_text(name));
  if (e->shut)
    cli_text_puts(out, "  (may not be read)");
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

/* Close the objects that stay open of the one before: those below which the
   next one, at `depth`, is not. */
static void close_tree_nodes(cli_json *j, size_t *open, size_t depth)
{
  for (; *open > depth; (*open)--) {
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
    cli_json_yes(j, "ephemeral", e->stat.ephemeral_owner != 0);
  cli_json_open(j, "children", '[');
}

static void show_tree_json(cli_command *a, const cli_subtree *w)
{
  cli_subtree_node top = {.stat = w->stat, .known = true};
  cli_json j = {.out = &a->out};
  size_t open = 1;

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
  return close_listing(&w, &a, err);
}
