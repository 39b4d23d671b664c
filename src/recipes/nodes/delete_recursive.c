/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/list.h"
#include "recipes/common/deadline.h"
#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"
#include "recipes/nodes/pause.h"

#include <latchkey/nodes.h>

/**
 * @file
 * Deletes a tree of nodes. A delete is sent for every node first, as most nodes
 * are leaves. After LK_ERR_NOT_EMPTY the node is listed, and its children are
 * deleted in the same way. The next delete of the node follows the deletes of
 * its children in the same write, since servers execute requests in order.
 */

enum {
  MAX_REQUESTS = 256,
  MAX_LISTS = 16,   /* getChildren requests among these */
  MAX_NAMES = 4096, /* names in memory above which lists are deferred */
  MAX_ROUNDS = 10   /* lists of one directory */
};

typedef struct tree_deletion tree_deletion;

/* A node to be deleted. */
typedef struct tree_node {
  lk_link all;
  tree_deletion *deletion;
  struct tree_node *parent;        /* NULL: the top of the tree */
  struct tree_node *next_in_stack; /* in the stack of nodes with work to do */
  bool stacked;
  bool request_sent; /* a delete or list is under way */
  bool was_deleted;  /* freed once `children` is 0 */
  bool must_list;    /* it has unknown children */
  bool in_doubt;     /* a request failed: a delete may have been executed */
  bool counted_by_parent; /* in `parent->unrequested` */
  size_t unrequested;     /* children without a delete under way */
  size_t children;        /* tree_nodes whose `parent` is this one */
  unsigned times_listed;  /* number of lists received */
  char *names;            /* of children without a tree_node, each with a NUL */
  const char *next_name;
  size_t names_left; /* from `next_name` on */
  char path[];
} tree_node;

struct tree_deletion {
  lk_client *client;
  lk_progress_cb more;
  lk_deleted_cb done;
  void *arg;
  int64_t end_ms;
  bool repeat;
  int err;
  size_t deleted;
  size_t requests; /* under way */
  size_t lists;    /* getChildren requests among these */
  size_t names;    /* in memory */
  tree_node *stack;
  lk_link items;
  lk_pause pause;
};

/* ---- tree nodes --------------------------------------------------------- */

static const lk_mem *deletion_mem(const tree_deletion *t)
{
  return lk_client_mem(t->client);
}

static tree_node *tree_node_new(tree_deletion *t, tree_node *parent,
                                const char *path, const char *name)
{
  size_t len = strlen(path);
  size_t name_len = strlen(name);
  tree_node *n = lk__take(deletion_mem(t), sizeof *n + len + name_len + 2);

  if (n == NULL)
    return NULL;
  memcpy(n->path, path, len);
  if (name_len > 0) {
    n->path[len] = '/';
    memcpy(n->path + len + 1, name, name_len);
  }
  n->deletion = t;
  n->parent = parent;
  if (parent != NULL)
    parent->children++;
  lk__list_add(&t->items, &n->all);
  return n;
}

static void tree_node_drop_names(tree_node *n)
{
  n->deletion->names -= n->names_left;
  n->names_left = 0;
  lk__give(deletion_mem(n->deletion), n->names);
  n->names = NULL;
}

static void tree_node_free(tree_node *n)
{
  tree_node_drop_names(n);
  lk__list_remove(&n->all);
  lk__give(deletion_mem(n->deletion), n);
}

static void tree_node_push(tree_node *n)
{
  if (n->stacked || n->request_sent || n->was_deleted)
    return;
  n->stacked = true;
  n->next_in_stack = n->deletion->stack;
  n->deletion->stack = n;
}

static tree_node *tree_node_pop(tree_deletion *t)
{
  tree_node *n = t->stack;

  t->stack = n->next_in_stack;
  n->stacked = false;
  return n;
}

/* Another delete is needed. */
static void tree_node_reopen(tree_node *n)
{
  if (n->parent != NULL && !n->counted_by_parent) {
    n->counted_by_parent = true;
    n->parent->unrequested++;
  }
  if (n->unrequested == 0)
    tree_node_push(n);
}

/* Its parent waits no longer for this node's delete to be sent. */
static void tree_node_delete_requested(tree_node *n)
{
  if (!n->counted_by_parent)
    return;
  n->counted_by_parent = false;
  if (--n->parent->unrequested == 0)
    tree_node_push(n->parent);
}

/* Free the node, and each parent that was kept for this last child. */
static void tree_node_deleted(tree_node *n)
{
  n->was_deleted = true;
  tree_node_delete_requested(n);
  while (n != NULL && n->was_deleted && n->children == 0) {
    tree_node *parent = n->parent;

    if (parent != NULL)
      parent->children--;
    tree_node_free(n);
    n = parent;
  }
}

/* ---- completion -------------------------------------------------------- */

static void tree_deletion_free(tree_deletion *t)
{
  lk__pause_stop(&t->pause, t->client);
  while (!lk__list_empty(&t->items))
    tree_node_free(LK_OWNER(t->items.next, tree_node, all));
  lk__give(deletion_mem(t), t);
}

static void tree_deletion_complete(tree_deletion *t)
{
  lk_client *c = t->client;
  lk_deleted_cb done = t->done;
  void *arg = t->arg;
  size_t deleted = t->deleted;
  int err = t->err;

  tree_deletion_free(t);
  if (done != NULL)
    done(c, err, deleted, arg);
}

static void tree_deletion_fail(tree_deletion *t, int err)
{
  if (t->err == 0)
    t->err = err;
}

/* ---- requests ---------------------------------------------------------- */

static void tree_node_on_deleted(lk_client *c, int err, void *arg);
static void tree_node_on_names(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg);

static int tree_node_requested(tree_node *n, int err)
{
  n->request_sent = err == 0;
  n->deletion->requests += err == 0;
  return err;
}

static int tree_node_request_delete(tree_node *n)
{
  tree_deletion *t = n->deletion;
  lk_call call = lk__call_until(t->end_ms);
  int err = lk_delete(t->client, n->path, -1, &call, tree_node_on_deleted, n);

  if (tree_node_requested(n, err) == 0)
    tree_node_delete_requested(n);
  return err;
}

static int tree_node_request_names(tree_node *n)
{
  tree_deletion *t = n->deletion;
  lk_call call = lk__call_until(t->end_ms);
  int err = lk_get_children(t->client, n->path, &call, tree_node_on_names, n);

  t->lists += err == 0;
  return tree_node_requested(n, err);
}

/* Make a tree_node for the next name. */
static int tree_node_add_child(tree_node *n)
{
  tree_node *child = tree_node_new(n->deletion, n, n->path, n->next_name);

  if (child == NULL)
    return LK_ERR_NO_MEMORY;
  n->next_name += strlen(n->next_name) + 1;
  n->names_left--;
  n->deletion->names--;
  if (n->names_left == 0)
    tree_node_drop_names(n);
  n->unrequested++;
  child->counted_by_parent = true;
  tree_node_push(child);
  return 0;
}

/* Do the next step for the node on top of the stack. */
static int tree_deletion_step(tree_deletion *t)
{
  tree_node *n = tree_node_pop(t);
  int err;

  if (n->names_left > 0) {
    tree_node_push(n);
    err = tree_node_add_child(n);
  } else {
    err = n->must_list         ? tree_node_request_names(n)
          : n->unrequested > 0 ? 0
                               : tree_node_request_delete(n);
    if (err != 0)
      tree_node_push(n);
  }
  return err;
}

static bool tree_deletion_has_room(const tree_deletion *t)
{
  bool reads = t->lists < MAX_LISTS && t->names < MAX_NAMES;

  return t->requests == 0 ||
         (t->requests < MAX_REQUESTS && (reads || !t->stack->must_list));
}

static void tree_deletion_on_pause_over(void *arg, int err);

static void tree_deletion_pause(tree_deletion *t)
{
  if (!t->pause.on)
    lk__pause_start(&t->pause, t->client, t->end_ms,
                    tree_deletion_on_pause_over, t);
}

static void tree_deletion_continue(tree_deletion *t)
{
  while (t->err == 0 && !t->pause.on && t->stack != NULL &&
         tree_deletion_has_room(t)) {
    int err = tree_deletion_step(t);

    if (err == LK_ERR_TOO_MANY && t->requests > 0)
      break; /* continued when one of them completes */
    if (lk__error_advice(t->client, err) == LK_ADVICE_RETRY_LATER)
      tree_deletion_pause(t);
    else if (err != 0)
      tree_deletion_fail(t, err);
  }
  if (t->requests == 0 && !(t->err == 0 && t->pause.on))
    tree_deletion_complete(t);
}

/* ---- replies ----------------------------------------------------------- */

static void tree_deletion_on_pause_over(void *arg, int err)
{
  tree_deletion *t = arg;

  if (err != 0)
    tree_deletion_fail(t, err);
  tree_deletion_continue(t);
}

static void tree_node_request_failed(tree_node *n, int err)
{
  tree_deletion *t = n->deletion;

  n->in_doubt = true;
  switch (lk__error_advice(t->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    if (!t->repeat)
      tree_deletion_fail(t, err);
    break;
  case LK_ADVICE_RETRY_LATER: tree_deletion_pause(t); break;
  case LK_ADVICE_GIVE_UP: tree_deletion_fail(t, err); break;
  }
  tree_node_reopen(n);
}

/* When deletes were sent for all known children, there are unknown ones. */
static void tree_node_not_empty(tree_node *n)
{
  if (n->unrequested == 0) {
    n->must_list = true;
    if (n->times_listed == MAX_ROUNDS)
      tree_deletion_fail(n->deletion, LK_ERR_NOT_EMPTY);
  }
  tree_node_reopen(n);
}

static void tree_node_replied(tree_node *n)
{
  tree_deletion *t = n->deletion;

  n->request_sent = false;
  t->requests--;
  if (t->more != NULL && t->err == 0 && !t->more(t->client, t->deleted, t->arg))
    tree_deletion_fail(t, LK_ERR_CANCELLED);
}

static void tree_node_on_deleted(lk_client *c, int err, void *arg)
{
  tree_node *n = arg;
  tree_deletion *t = n->deletion;
  bool first = n->parent == NULL && n->times_listed == 0 && !n->in_doubt;

  (void)c;
  t->deleted += err == 0;
  tree_node_replied(n);
  if (err == LK_ERR_NO_NODE && first)
    tree_deletion_fail(t, err);
  if (err == 0 || err == LK_ERR_NO_NODE)
    tree_node_deleted(n);
  else if (err == LK_ERR_NOT_EMPTY)
    tree_node_not_empty(n);
  else
    tree_node_request_failed(n, err);
  tree_deletion_continue(t);
}

/* A name with a slash would lead outside the tree; servers have none. */
static bool is_child_name(lk_bytes name)
{
  return name.len > 0 && memchr(name.at, '\0', name.len) == NULL &&
         memchr(name.at, '/', name.len) == NULL;
}

static int tree_node_take_names(tree_node *n, const lk_bytes *names,
                                size_t count)
{
  size_t size = 0;

  for (size_t k = 0; k < count; k++) {
    if (!is_child_name(names[k]))
      return LK_ERR_PROTOCOL;
    size += names[k].len + 1;
  }
  n->must_list = false;
  n->times_listed++;
  if (count == 0)
    return 0;
  n->names = lk__take(deletion_mem(n->deletion), size);
  if (n->names == NULL)
    return LK_ERR_NO_MEMORY;
  char *at = n->names;

  for (size_t k = 0; k < count; k++) {
    memcpy(at, names[k].at, names[k].len);
    at += names[k].len + 1;
  }
  n->next_name = n->names;
  n->names_left = count;
  n->deletion->names += count;
  return 0;
}

static void tree_node_on_names(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg)
{
  tree_node *n = arg;
  tree_deletion *t = n->deletion;

  (void)c;
  (void)stat;
  t->lists--;
  tree_node_replied(n);
  if (err == LK_ERR_NO_NODE) {
    tree_node_deleted(n); /* deleted by another client */
    tree_deletion_continue(t);
    return;
  }
  if (err == 0)
    err = tree_node_take_names(n, names, count);
  if (err != 0)
    tree_node_request_failed(n, err);
  else
    tree_node_push(n);
  tree_deletion_continue(t);
}

/* ---- call -------------------------------------------------------------- */

/* The root, or a node of the server itself. The chroot counts as part of the
 * path. */
static bool is_reserved_path(const lk_client *c, const char *path)
{
  static const char timing[] = "/zookeeper";
  size_t len = sizeof timing - 1;
  const char *whole =
      lk_client_chroot(c)[0] == '\0' ? path : lk_client_chroot(c);

  return strcmp(path, "/") == 0 || (strncmp(whole, timing, len) == 0 &&
                                    (whole[len] == '\0' || whole[len] == '/'));
}

int lk_delete_recursive(lk_client *c, const char *path, const lk_call *call,
                        lk_progress_cb more, lk_deleted_cb done, void *arg)
{
  lk_call timing;
  int err = lk__call_options_take(c, &timing, call);

  if (err != 0)
    return err;
  if (path == NULL || lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  if (is_reserved_path(c, path))
    return LK_ERR_BAD_ARGUMENT;
  tree_deletion *t = lk__take(lk_client_mem(c), sizeof *t);

  if (t == NULL)
    return LK_ERR_NO_MEMORY;
  t->client = c;
  t->more = more;
  t->done = done;
  t->arg = arg;
  t->end_ms = lk__call_deadline(c, &timing);
  t->repeat = timing.repeat;
  lk__list_init(&t->items);
  tree_node *top = tree_node_new(t, NULL, path, "");

  err = top == NULL ? LK_ERR_NO_MEMORY : tree_node_request_delete(top);

  if (err != 0)
    tree_deletion_free(t);
  return err;
}
