/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/error_report.h"
#include "cli/nodes/subtree.h"
#include "cli/output/print.h"

/* ---- the list ---------------------------------------------------------------
 */

/* Makes room for one more node. Returns false if out of memory. */
static bool grow_subtree(cli_subtree *w)
{
  size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
  cli_subtree_node *items;

  if (w->count < w->cap)
    return true;
  items = cap > SIZE_MAX / sizeof *items
              ? NULL
              : realloc(w->items, cap * sizeof *items);
  if (items == NULL)
    return false;
  w->items = items;
  w->cap = cap;
  return true;
}

/* Adds the child `name` of the node with the relative path `above`; "": of the
   node of the command. */
static bool add_node(cli_subtree *w, const char *above, lk_bytes name)
{
  size_t len = strlen(above);
  char *path = grow_subtree(w) ? malloc(len + 1 + name.len + 1) : NULL;
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
  w->items[w->count++] = (cli_subtree_node){.path = path};
  return true;
}

static int add_node_names(cli_subtree *w, const char *above,
                          const lk_bytes *names, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (!add_node(w, above, names[i]))
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
static void sort_and_drop_deleted(cli_subtree *w)
{
  size_t kept = 0;

  for (size_t i = 0; i < w->count; i++) {
    w->unreadable += !w->items[i].deleted && w->items[i].unreadable ? 1 : 0;
    if (w->items[i].deleted)
      free(w->items[i].path);
    else
      w->items[kept++] = w->items[i];
  }
  w->count = kept;
  if (kept > 0)
    qsort(w->items, kept, sizeof *w->items, compare_node_paths);
}

const char *cli_subtree_node_name(const cli_subtree_node *e, size_t *depth)
{
  const char *name = e->path;

  *depth = 0;
  for (const char *s = e->path; *s != '\0'; s++)
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
static int list_subtree_root(cli_subtree *w, cli_command *a)
{
  lk_call call = cli_command_call_options(a, true);
  root_request r = {w, a};

  memset(w, 0, sizeof *w);
  return cli_command_wait(a, lk_get_children(a->session.client, a->path, &call,
                                             on_subtree_root, &r));
}

/* Stores the reply for one node. A deleted or unreadable node is no error. */
static int store_node_reply(cli_subtree_node *e, int err, const lk_stat *stat)
{
  if (err == 0) {
    e->stat = *stat;
    e->known = true;
  }
  e->deleted = err == LK_ERR_NO_NODE;
  e->unreadable = err == LK_ERR_NO_AUTH;
  return e->deleted || e->unreadable ? 0 : err;
}

static void on_subtree_stat(lk_client *c, int err, const lk_stat *stat,
                            void *number)
{
  size_t at;
  cli_subtree *w = cli_request_batch_of(number, &at)->owner;

  (void)c;
  cli_request_batch_complete(number,
                             store_node_reply(&w->items[at], err, stat));
}

static void on_subtree_names(lk_client *c, int err, const lk_bytes *names,
                             size_t count, const lk_stat *stat, void *number)
{
  size_t at;
  cli_request_batch *b = cli_request_batch_of(number, &at);
  cli_subtree *w = b->owner;

  (void)c;
  err = store_node_reply(&w->items[at], err, stat);
  if (err == 0)
    err = add_node_names(w, w->items[at].path, names, count);
  b->count = w->count; /* the children are requested, too */
  cli_request_batch_complete(number, err);
}

/* Requests the node `at`: the names of its children and its Stat if `children`,
   else only its Stat. */
static int request_node(cli_request_batch *b, size_t at, void *number,
                        bool children)
{
  const cli_subtree *w = b->owner;
  const char *above = b->command->path;
  lk_call call = cli_command_call_options(b->command, true);
  cli_text path = {0};

  cli_text_printf(&path, "%s/%s", strcmp(above, "/") == 0 ? "" : above,
                  w->items[at].path);
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
static int read_subtree(cli_subtree *w, cli_command *a,
                        int (*send_request)(cli_request_batch *b, size_t at,
                                            void *number))
{
  cli_request_batch b = {.command = a, .owner = w, .send = send_request};
  int err = list_subtree_root(w, a);

  b.count = w->count;
  if (err == 0 && send_request != NULL)
    err = cli_request_batch_run(&b);
  sort_and_drop_deleted(w);
  return err;
}

int cli_subtree_list_children(cli_subtree *w, cli_command *a, bool stats)
{
  return read_subtree(w, a, stats ? request_node_stat : NULL);
}

int cli_subtree_list_all(cli_subtree *w, cli_command *a)
{
  return read_subtree(w, a, request_node_children);
}

void cli_subtree_free(cli_subtree *w)
{
  for (size_t i = 0; i < w->count; i++)
    free(w->items[i].path);
  free(w->items);
}

/* The command fails if nodes were left out for lack of permission. */
int cli_subtree_close(cli_subtree *w, cli_command *a, int err)
{
  size_t unreadable = err == 0 ? w->unreadable : 0;
  int code = cli_command_close(a, err);

  cli_subtree_free(w);
  if (unreadable == 0 || code != CLI_EXIT_DONE)
    return code;
  return cli_fail(CLI_EXIT_FAILED, "%s %s: %zu node%s not read: %s%s", a->verb,
                  a->path, unreadable, unreadable == 1 ? "" : "s",
                  lk_error_text(LK_ERR_NO_AUTH),
                  cli_error_advice(LK_ERR_NO_AUTH));
}
