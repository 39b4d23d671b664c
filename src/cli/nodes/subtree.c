/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/nodes/subtree.h"
#include "cli/output/error_report.h"
#include "cli/output/print.h"

/* ---- the list ------------------------------------------------------------ */

/* Makes room for one more node. Returns false if out of memory. */
static bool grow_subtree(cli_subtree *subtree)
{
  size_t cap = subtree->cap == 0 ? 64 : 2 * subtree->cap;
  cli_subtree_node *items;

  if (subtree->count < subtree->cap)
    return true;
  items = cap > SIZE_MAX / sizeof *items
              ? NULL
              : realloc(subtree->items, cap * sizeof *items);
  if (items == NULL)
    return false;
  subtree->items = items;
  subtree->cap = cap;
  return true;
}

/* Adds the child `name` of the node with the relative path `parent`, which is
   "" for the node of the command. Returns false if out of memory. */
static bool add_node(cli_subtree *subtree, const char *parent, lk_bytes name)
{
  size_t len = strlen(parent);
  char *path = grow_subtree(subtree) ? malloc(len + 1 + name.len + 1) : NULL;
  char *s = path;

  if (path == NULL)
    return false;
  if (len > 0) {
    memcpy(s, parent, len);
    s += len;
    *s++ = '/';
  }
  memcpy(s, name.at, name.len);
  s[name.len] = '\0';
  subtree->items[subtree->count++] = (cli_subtree_node){.path = path};
  return true;
}

static int add_children(cli_subtree *subtree, const char *parent,
                        const lk_bytes *names, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (!add_node(subtree, parent, names[i]))
      return LK_ERR_NO_MEMORY;
  return 0;
}

/* The end of a path ranks first, "/" second, and all other bytes behind them.
   So the descendants of a node follow it directly in the sorted list. */
static int path_byte_rank(char c)
{
  if (c == '\0')
    return 0;
  return c == '/' ? 1 : 2 + (unsigned char)c;
}

static int compare_node_paths(const void *a, const void *b)
{
  const char *x = ((const cli_subtree_node *)a)->path;
  const char *y = ((const cli_subtree_node *)b)->path;

  while (*x != '\0' && *x == *y) {
    x++;
    y++;
  }
  return path_byte_rank(*x) - path_byte_rank(*y);
}

/* Drops the deleted nodes, and counts the unreadable ones. */
static void drop_deleted_nodes(cli_subtree *subtree)
{
  size_t kept = 0;

  for (size_t i = 0; i < subtree->count; i++) {
    if (subtree->items[i].deleted) {
      free(subtree->items[i].path);
      continue;
    }
    if (subtree->items[i].unreadable)
      subtree->unreadable_count++;
    subtree->items[kept++] = subtree->items[i];
  }
  subtree->count = kept;
}

static void sort_nodes(cli_subtree *subtree)
{
  if (subtree->count > 0)
    qsort(subtree->items, subtree->count, sizeof *subtree->items,
          compare_node_paths);
}

const char *cli_subtree_node_name(const cli_subtree_node *node, size_t *depth)
{
  const char *name = node->path;

  *depth = 0;
  for (const char *s = node->path; *s != '\0'; s++)
    if (*s == '/') {
      name = s + 1;
      (*depth)++;
    }
  return name;
}

/* ---- requests ------------------------------------------------------------ */

/* Argument of on_subtree_root(). */
typedef struct root_request {
  cli_subtree *subtree;
  cli_command *command;
} root_request;

static void on_subtree_root(lk_client *c, int err, const lk_bytes *names,
                            size_t count, const lk_stat *stat, void *arg)
{
  root_request *r = arg;

  (void)c;
  if (err == 0) {
    r->subtree->root_stat = *stat;
    err = add_children(r->subtree, "", names, count);
  }
  cli_command_complete(r->command, err);
}

/* Lists the children of the node of the command. */
static int list_subtree_root(cli_subtree *subtree, cli_command *command)
{
  lk_call call = cli_command_repeatable_call(command);
  root_request r = {subtree, command};

  memset(subtree, 0, sizeof *subtree);
  return cli_command_wait(command, lk_get_children(command->session.client,
                                                   command->path, &call,
                                                   on_subtree_root, &r));
}

/* Stores the reply for one node. A deleted or unreadable node is no error. */
static int store_node_reply(cli_subtree_node *node, int err,
                            const lk_stat *stat)
{
  if (err == 0) {
    node->stat = *stat;
    node->has_stat = true;
  }
  node->deleted = err == LK_ERR_NO_NODE;
  node->unreadable = err == LK_ERR_NO_AUTH;
  return node->deleted || node->unreadable ? 0 : err;
}

static void on_subtree_stat(lk_client *c, int err, const lk_stat *stat,
                            void *ticket)
{
  size_t at;
  cli_subtree *subtree = cli_request_batch_of(ticket, &at)->owner;

  (void)c;
  cli_request_batch_complete(ticket,
                             store_node_reply(&subtree->items[at], err, stat));
}

static void on_subtree_names(lk_client *c, int err, const lk_bytes *names,
                             size_t count, const lk_stat *stat, void *ticket)
{
  size_t at;
  cli_request_batch *b = cli_request_batch_of(ticket, &at);
  cli_subtree *subtree = b->owner;
  bool has_names = err == 0;

  (void)c;
  err = store_node_reply(&subtree->items[at], err, stat);
  if (has_names)
    err = add_children(subtree, subtree->items[at].path, names, count);
  b->count = subtree->count; /* the children are requested, too */
  cli_request_batch_complete(ticket, err);
}

/* Appends the path of the node `at` and returns it; NULL if out of memory. */
static const char *append_node_path(const cli_request_batch *b, size_t at,
                                    cli_text *out)
{
  const cli_subtree *subtree = b->owner;
  bool root = strcmp(b->command->path, "/") == 0;

  cli_text_printf(out, "%s/%s", root ? "" : b->command->path,
                  subtree->items[at].path);
  return cli_text_end(out);
}

/* Requests the Stat of the node `at`. */
static int request_node_stat(cli_request_batch *b, size_t at, void *ticket)
{
  lk_call call = cli_command_repeatable_call(b->command);
  cli_text text = {0};
  const char *path = append_node_path(b, at, &text);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_exists(b->command->session.client, path, &call,
                                     on_subtree_stat, ticket);

  cli_text_free(&text);
  return err;
}

/* Requests the names of the children of the node `at`, and its Stat. */
static int request_node_children(cli_request_batch *b, size_t at, void *ticket)
{
  lk_call call = cli_command_repeatable_call(b->command);
  cli_text text = {0};
  const char *path = append_node_path(b, at, &text);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_get_children(b->command->session.client, path,
                                           &call, on_subtree_names, ticket);

  cli_text_free(&text);
  return err;
}

/* Lists the children of the node of the command, and calls `send_request` for
   each node; NULL: only lists the children. */
static int read_subtree(cli_subtree *subtree, cli_command *command,
                        int (*send_request)(cli_request_batch *b, size_t at,
                                            void *ticket))
{
  cli_request_batch b = {
      .command = command, .owner = subtree, .send = send_request};
  int err = list_subtree_root(subtree, command);

  b.count = subtree->count;
  if (err == 0 && send_request != NULL)
    err = cli_request_batch_run(&b);
  drop_deleted_nodes(subtree);
  sort_nodes(subtree);
  return err;
}

int cli_subtree_list_children(cli_subtree *subtree, cli_command *command,
                              bool with_stats)
{
  return read_subtree(subtree, command, with_stats ? request_node_stat : NULL);
}

int cli_subtree_list_all(cli_subtree *subtree, cli_command *command)
{
  return read_subtree(subtree, command, request_node_children);
}

static void subtree_free(cli_subtree *subtree)
{
  for (size_t i = 0; i < subtree->count; i++)
    free(subtree->items[i].path);
  free(subtree->items);
}

int cli_subtree_close(cli_subtree *subtree, cli_command *command, int err)
{
  size_t unreadable = err == 0 ? subtree->unreadable_count : 0;
  int code = cli_command_close(command, err);

  subtree_free(subtree);
  if (unreadable == 0 || code != CLI_EXIT_DONE)
    return code;
  return cli_fail(CLI_EXIT_FAILED, "%s %s: %zu node%s not read: %s%s",
                  command->verb, command->path, unreadable,
                  unreadable == 1 ? "" : "s", lk_error_text(LK_ERR_NO_AUTH),
                  cli_error_advice(LK_ERR_NO_AUTH));
}
