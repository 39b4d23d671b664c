/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/error_report.h"
#include "cli/nodes/subtree.h"
#include "cli/output/print.h"

/* ---- the list ---------------------------------------------------------------
 */

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

/* Adds the child `name` of the node with the relative path `above`; "": of the
   node of the command. */
static bool add_node(cli_subtree *subtree, const char *above, lk_bytes name)
{
  size_t len = strlen(above);
  char *path = grow_subtree(subtree) ? malloc(len + 1 + name.len + 1) : NULL;
  char *s = path;

  if (path == NULL)
    return false;
  if (len > 0) {
    memcpy(s, above, len);
    s += len;
    *s++ = '/';
  }
  memcpy(s, name.at, name.len);
  s[name.len] = '\0';
  subtree->items[subtree->count++] = (cli_subtree_node){.path = path};
  return true;
}

static int add_node_names(cli_subtree *subtree, const char *above,
                          const lk_bytes *names, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (!add_node(subtree, above, names[i]))
      return LK_ERR_NO_MEMORY;
  return 0;
}

/* The end of a path ranks first, "/" second, and all other bytes behind them.
   So the descendants of a node follow it directly in the sorted list. */
static int path_byte_rank(char c)
{
  return c == '\0' ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
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

/* Sorts the nodes, drops deleted ones, and counts the unreadable ones. */
static void sort_and_drop_deleted(cli_subtree *subtree)
{
  size_t kept = 0;

  for (size_t i = 0; i < subtree->count; i++) {
    subtree->unreadable +=
        !subtree->items[i].deleted && subtree->items[i].unreadable ? 1 : 0;
    if (subtree->items[i].deleted)
      free(subtree->items[i].path);
    else
      subtree->items[kept++] = subtree->items[i];
  }
  subtree->count = kept;
  if (kept > 0)
    qsort(subtree->items, kept, sizeof *subtree->items, compare_node_paths);
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
    r->subtree->stat = *stat;
    err = add_node_names(r->subtree, "", names, count);
  }
  cli_command_complete(r->command, err);
}

/* Lists the children of the node of the command. */
static int list_subtree_root(cli_subtree *subtree, cli_command *command)
{
  lk_call call = cli_command_call_options(command, true);
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
    node->known = true;
  }
  node->deleted = err == LK_ERR_NO_NODE;
  node->unreadable = err == LK_ERR_NO_AUTH;
  return node->deleted || node->unreadable ? 0 : err;
}

static void on_subtree_stat(lk_client *c, int err, const lk_stat *stat,
                            void *number)
{
  size_t at;
  cli_subtree *subtree = cli_request_batch_of(number, &at)->owner;

  (void)c;
  cli_request_batch_complete(number,
                             store_node_reply(&subtree->items[at], err, stat));
}

static void on_subtree_names(lk_client *c, int err, const lk_bytes *names,
                             size_t count, const lk_stat *stat, void *number)
{
  size_t at;
  cli_request_batch *b = cli_request_batch_of(number, &at);
  cli_subtree *subtree = b->owner;

  (void)c;
  err = store_node_reply(&subtree->items[at], err, stat);
  if (err == 0)
    err = add_node_names(subtree, subtree->items[at].path, names, count);
  b->count = subtree->count; /* the children are requested, too */
  cli_request_batch_complete(number, err);
}

/* Requests the node `at`: the names of its children and its Stat if `children`,
   else only its Stat. */
static int request_node(cli_request_batch *b, size_t at, void *number,
                        bool children)
{
  const cli_subtree *subtree = b->owner;
  const char *above = b->command->path;
  lk_call call = cli_command_call_options(b->command, true);
  cli_text path = {0};

  cli_text_printf(&path, "%s/%s", strcmp(above, "/") == 0 ? "" : above,
                  subtree->items[at].path);
  const char *s = cli_text_end(&path);
  lk_client *c = b->command->session.client;
  int err = s == NULL  ? LK_ERR_NO_MEMORY
            : children ? lk_get_children(c, s, &call, on_subtree_names, number)
                       : lk_exists(c, s, &call, on_subtree_stat, number);

  cli_text_free(&path);
  return err;
}

static int request_node_stat(cli_request_batch *b, size_t at, void *number)
{
  return request_node(b, at, number, false);
}

static int request_node_children(cli_request_batch *b, size_t at, void *number)
{
  return request_node(b, at, number, true);
}

/* Lists the children, and sends a request for each node; `send_request` NULL:
   for none. */
static int read_subtree(cli_subtree *subtree, cli_command *command,
                        int (*send_request)(cli_request_batch *b, size_t at,
                                            void *number))
{
  cli_request_batch b = {
      .command = command, .owner = subtree, .send = send_request};
  int err = list_subtree_root(subtree, command);

  b.count = subtree->count;
  if (err == 0 && send_request != NULL)
    err = cli_request_batch_run(&b);
  sort_and_drop_deleted(subtree);
  return err;
}

int cli_subtree_list_children(cli_subtree *subtree, cli_command *command,
                              bool stats)
{
  return read_subtree(subtree, command, stats ? request_node_stat : NULL);
}

int cli_subtree_list_all(cli_subtree *subtree, cli_command *command)
{
  return read_subtree(subtree, command, request_node_children);
}

void cli_subtree_free(cli_subtree *subtree)
{
  for (size_t i = 0; i < subtree->count; i++)
    free(subtree->items[i].path);
  free(subtree->items);
}

/* The command fails if nodes were left out for lack of permission. */
int cli_subtree_close(cli_subtree *subtree, cli_command *command, int err)
{
  size_t unreadable = err == 0 ? subtree->unreadable : 0;
  int code = cli_command_close(command, err);

  cli_subtree_free(subtree);
  if (unreadable == 0 || code != CLI_EXIT_DONE)
    return code;
  return cli_fail(CLI_EXIT_FAILED, "%s %s: %zu node%s not read: %s%s",
                  command->verb, command->path, unreadable,
                  unreadable == 1 ? "" : "s", lk_error_text(LK_ERR_NO_AUTH),
                  cli_error_advice(LK_ERR_NO_AUTH));
}
