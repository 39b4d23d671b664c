/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/error.h>
#include <latchkey/nodes.h>
#include <latchkey/types.h>

#include "base/list.h"
#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/error_advice.h"
#include "recipes/retry.h"

/**
 * @file
 * Deletes a tree of nodes. A delete is sent for every node first, as most nodes
 * are leaves. After LK_ERR_NOT_EMPTY the node is listed, and its children are
 * deleted in the same way. The next delete of the node follows the deletes of
 * its children in the same write, since servers execute requests in order. If a
 * child has children, that fails, and the next delete waits until all that is
 * below the node is known: so a node needs three deletes at most, and the rest
 * of a chain of nodes is deleted in one write.
 */

enum {
  MAX_REQUESTS = 256,    /* under way at a time; fewer if paths are long */
  MAX_LISTS = 16,        /* getChildren requests among MAX_REQUESTS */
  MAX_NAMES = 4096,      /* unread names; above that no list is requested */
  MAX_LISTS_OF_NODE = 10 /* then the deletion fails */
};

enum { ANY_VERSION = -1 };

typedef struct lk_tree {
  const lk_mem *mem;
  struct lk_tree_node *stack; /* nodes that need a request, the next on top */
  lk_link nodes;              /* list of all lk_tree_node */
  size_t names_left;          /* the sum of `names_left` of all nodes */
  char *path;                 /* of the node `path_of`; NULL: none yet */
  const struct lk_tree_node *path_of; /* NULL: it is freed, or there was none */
  size_t path_room;                   /* bytes at `path` */
} lk_tree;

/* A node to be deleted. It has no copy of its path: the paths of a chain of
   nodes would need memory for the square of its depth. */
typedef struct lk_tree_node {
  lk_link in_nodes; /* in the list `tree->nodes` */
  lk_tree *tree;
  struct lk_tree_node *parent;        /* NULL: the top of the tree */
  struct lk_tree_node *next_in_stack; /* valid if `stacked` */
  bool stacked;                       /* in `tree->stack` */
  bool request_sent;                  /* a delete or getChildren is under way */
  bool was_deleted;        /* at the server; freed once `child_count` is 0 */
  bool must_list;          /* it has unknown children */
  bool in_doubt;           /* a delete failed and may have been executed */
  bool waits_for_children; /* the next delete waits for `children_unsure` 0 */
  bool counted_by_parent;  /* in `children_unrequested` of the parent */
  bool unsure;             /* in `children_unsure` of the parent */
  size_t children_unrequested; /* children whose delete has not been sent */
  size_t children_unsure; /* children that exist, and may have children that are
                             not known when their delete is executed */
  size_t child_count;     /* nodes in memory whose `parent` is this one */
  unsigned times_listed;  /* number of lists received */
  char *names;           /* of children that have no lk_tree_node yet, each with
                            a NUL; NULL: no names */
  const char *next_name; /* the next child, in `names` */
  size_t names_left;     /* number of names from `next_name` on */
  size_t path_len;
  char name[]; /* of the top: its path */
} lk_tree_node;

typedef struct tree_deletion {
  lk_client *client;
  lk_progress_cb may_continue; /* or NULL */
  lk_deleted_cb done;          /* or NULL */
  lk_deleted2_cb done2;        /* or NULL */
  void *arg;
  int64_t deadline_ms;
  bool repeat;
  bool in_doubt;   /* a delete may have been executed although it failed */
  int err;         /* the first error; 0: continue */
  char *failed;    /* the path of its node, or NULL */
  size_t deleted;  /* number of deleted nodes */
  size_t requests; /* requests under way */
  size_t bytes;    /* of the paths in these */
  size_t lists;    /* getChildren requests among `requests` */
  lk_tree tree;
  lk_retry_pause pause;
} tree_deletion;

/* ---- the nodes of the tree ----------------------------------------------- */

/* The state of each node, and a stack of the nodes for which a request has to
 * be sent. */

/* NULL: no memory. */
static lk_tree_node *tree_node_new(lk_tree *t, lk_tree_node *parent,
                                   const char *name)
{
  size_t name_len = strlen(name);
  lk_tree_node *n = lk__mem_new(t->mem, sizeof *n + name_len + 1);

  if (n == NULL)
    return NULL;
  memcpy(n->name, name, name_len); /* the memory is zeroed, so a NUL follows */
  n->path_len = name_len;
  n->tree = t;
  n->parent = parent;
  if (parent != NULL) {
    n->path_len += parent->path_len + strlen("/");
    parent->child_count++;
  }
  lk__list_add(&t->nodes, &n->in_nodes);
  return n;
}

/* Makes room for a path of `len` bytes. Returns false if there is no memory. */
static bool tree_reserve_path(lk_tree *t, size_t len)
{
  if (len < t->path_room)
    return true;
  char *path = lk__mem_resize(t->mem, t->path, 2 * len + 1);

  if (path == NULL)
    return false;
  t->path = path;
  t->path_room = 2 * len + 1;
  return true;
}

/* The path of the node, valid until the next call for a node of its tree.
   NULL: no memory. */
static const char *tree_node_path(const lk_tree_node *n)
{
  lk_tree *t = n->tree;
  const lk_tree_node *last = t->path_of;
  const lk_tree_node *parent_of_last = last == NULL ? NULL : last->parent;
  size_t at = n->path_len; /* the path is written from its end on */

  if (!tree_reserve_path(t, at))
    return NULL;
  t->path_of = n;
  t->path[at] = '\0';
  /* The path of `last` begins with those of its ancestors. */
  for (; n != NULL && n != last && n != parent_of_last; n = n->parent) {
    size_t name_len = strlen(n->name);

    at -= name_len;
    memcpy(t->path + at, n->name, name_len);
    if (n->parent != NULL)
      t->path[--at] = '/';
  }
  return t->path;
}

static void tree_node_drop_names(lk_tree_node *n)
{
  n->tree->names_left -= n->names_left;
  n->names_left = 0;
  lk__mem_free(n->tree->mem, n->names);
  n->names = NULL;
}

static void tree_node_free(lk_tree_node *n)
{
  tree_node_drop_names(n);
  if (n->tree->path_of == n)
    n->tree->path_of = NULL;
  lk__list_remove(&n->in_nodes);
  lk__mem_free(n->tree->mem, n);
}

/* Put the node on the stack. No effect while it is there, has a request under
   way, or was deleted. */
static void tree_node_push(lk_tree_node *n)
{
  if (n->stacked || n->request_sent || n->was_deleted)
    return;
  n->stacked = true;
  n->next_in_stack = n->tree->stack;
  n->tree->stack = n;
}

/* Take the top node from the stack, which must not be empty. */
static lk_tree_node *tree_node_pop(lk_tree *t)
{
  lk_tree_node *n = t->stack;

  t->stack = n->next_in_stack;
  n->stacked = false;
  return n;
}

/* Whether the next request for the node, a list or a delete, can be sent. */
static bool tree_node_is_ready(const lk_tree_node *n)
{
  return n->must_list || (n->children_unrequested == 0 &&
                          (!n->waits_for_children || n->children_unsure == 0));
}

static void tree_node_push_if_ready(lk_tree_node *n)
{
  if (tree_node_is_ready(n))
    tree_node_push(n);
}

static void tree_node_set_unsure(lk_tree_node *n, bool unsure)
{
  if (n->parent == NULL || n->unsure == unsure)
    return;
  n->unsure = unsure;
  if (unsure)
    n->parent->children_unsure++;
  else
    n->parent->children_unsure--;
}

/* A request for the node failed, so its delete must be sent again: at once, or
   when deletes of all its children were sent. If `waits_for_children` is set,
   these must be deletes that find no children, unless others create some. */
static void tree_node_require_delete(lk_tree_node *n)
{
  tree_node_set_unsure(n, true);
  if (n->parent != NULL && !n->counted_by_parent) {
    n->counted_by_parent = true;
    n->parent->children_unrequested++;
  }
  tree_node_push_if_ready(n);
}

/* The delete of the node was sent. The parent is put on the stack when this
   was the last child it waited for. */
static void tree_node_delete_requested(lk_tree_node *n)
{
  bool finds_no_children = n->times_listed > 0 && n->children_unsure == 0;

  if (n->parent == NULL)
    return;
  if (finds_no_children || n->was_deleted)
    tree_node_set_unsure(n, false);
  if (n->counted_by_parent)
    n->parent->children_unrequested--;
  else if (!n->parent->waits_for_children)
    return;
  n->counted_by_parent = false;
  tree_node_push_if_ready(n->parent);
}

/* The node was deleted at the server: free it, once it has no children in
   memory. Then each deleted ancestor without further children is freed, too.
   */
static void tree_node_deleted(lk_tree_node *n)
{
  n->was_deleted = true;
  tree_node_delete_requested(n); /* the parent need not wait for a delete */
  while (n != NULL && n->was_deleted && n->child_count == 0) {
    lk_tree_node *parent = n->parent;

    if (parent != NULL)
      parent->child_count--;
    tree_node_free(n);
    n = parent;
  }
}

/* Make a lk_tree_node of the next name, and put it on the stack. @return 0,
   LK_ERR_NO_MEMORY. */
static int tree_node_add_child(lk_tree_node *n)
{
  lk_tree_node *child = tree_node_new(n->tree, n, n->next_name);

  if (child == NULL)
    return LK_ERR_NO_MEMORY;
  n->next_name += strlen(n->next_name) + 1;
  n->names_left--;
  n->tree->names_left--;
  if (n->names_left == 0)
    tree_node_drop_names(n);
  n->children_unrequested++;
  child->counted_by_parent = true;
  tree_node_set_unsure(child, true);
  tree_node_push(child);
  return 0;
}

/* Copy the names of the node's children, as getChildren returned them.
   @return 0, LK_ERR_NO_MEMORY. */
static int tree_node_take_names(lk_tree_node *n, const lk_bytes *names,
                                size_t count)
{
  size_t size = 0;

  for (size_t i = 0; i < count; i++)
    size += names[i].len + 1;
  n->must_list = false;
  n->times_listed++;
  if (count == 0)
    return 0;
  n->names = lk__mem_new(n->tree->mem, size);
  if (n->names == NULL)
    return LK_ERR_NO_MEMORY;
  char *at = n->names;

  for (size_t i = 0; i < count; i++) {
    memcpy(at, names[i].at, names[i].len);
    at += names[i].len + 1; /* the memory is zeroed, so a NUL follows */
  }
  n->next_name = n->names;
  n->names_left = count;
  n->tree->names_left += count;
  return 0;
}

/* The deletion that the node belongs to. */
static tree_deletion *node_deletion(const lk_tree_node *n)
{
  return LK_OWNER(n->tree, tree_deletion, tree);
}

/* ---- completion ---------------------------------------------------------- */

static void tree_deletion_free(tree_deletion *t)
{
  lk__retry_pause_stop(&t->pause, t->client);
  while (!lk__list_empty(&t->tree.nodes))
    tree_node_free(LK_OWNER(t->tree.nodes.next, lk_tree_node, in_nodes));
  lk__mem_free(lk_client_mem(t->client), t->tree.path);
  lk__mem_free(lk_client_mem(t->client), t);
}

static void tree_deletion_complete(tree_deletion *t)
{
  lk_client *c = t->client;
  lk_mem mem = *lk_client_mem(c); /* the callback may free the client */
  lk_deleted_cb done = t->done;
  lk_deleted2_cb done2 = t->done2;
  void *arg = t->arg;
  size_t deleted = t->deleted;
  char *failed = t->failed;
  int err = t->err;

  tree_deletion_free(t);
  if (done != NULL)
    done(c, err, deleted, arg);
  else if (done2 != NULL)
    done2(c, err, deleted, failed, arg);
  lk__mem_free(&mem, failed);
}

static void tree_deletion_record_error(tree_deletion *t, int err)
{
  if (t->err == 0)
    t->err = err;
}

/* A request was refused, or the client or the deadline ended a pause. The
 * deletes that were not executed are known if none was in doubt. */
static void tree_deletion_record_refusal(tree_deletion *t, int err)
{
  int err_in_doubt = err == LK_ERR_DEADLINE ? LK_ERR_IN_DOUBT : err;

  tree_deletion_record_error(t, t->in_doubt ? err_in_doubt
                                            : lk__error_of_unsent(err));
}

/* A request for the node has failed. Without memory its path is not known. */
static void tree_node_record_error(const lk_tree_node *n, int err)
{
  tree_deletion *t = node_deletion(n);

  if (t->err != 0)
    return;
  t->err = err;
  const char *path = tree_node_path(n);

  if (path != NULL)
    t->failed = lk__mem_text(lk_client_mem(t->client), path);
}

/* ---- pauses -------------------------------------------------------------- */

static void tree_deletion_continue(tree_deletion *t);

static void tree_deletion_on_pause_over(void *arg, int err)
{
  tree_deletion *t = arg;

  if (err != 0)
    tree_deletion_record_refusal(t, err);
  tree_deletion_continue(t);
}

static void tree_deletion_pause(tree_deletion *t)
{
  if (!t->pause.running)
    lk__retry_pause_start(&t->pause, t->client, t->deadline_ms,
                          tree_deletion_on_pause_over, t);
}

/* ---- requests ------------------------------------------------------------ */

/* How long the path is that the server gets. */
static size_t tree_node_sent_len(const lk_tree_node *n)
{
  return strlen(lk_client_chroot(node_deletion(n)->client)) + n->path_len;
}

/* `err` 0: a request for the node was sent. */
static void tree_node_count_request(lk_tree_node *n, int err)
{
  if (err != 0)
    return;
  n->request_sent = true;
  node_deletion(n)->requests++;
  node_deletion(n)->bytes += tree_node_sent_len(n);
}

static void tree_node_replied(lk_tree_node *n)
{
  tree_deletion *t = node_deletion(n);

  n->request_sent = false;
  t->requests--;
  t->bytes -= tree_node_sent_len(n);
  if (t->may_continue != NULL && t->err == 0 &&
      !t->may_continue(t->client, t->deleted, t->arg))
    tree_deletion_record_error(t, LK_ERR_CANCELLED);
}

static void tree_node_request_failed(lk_tree_node *n, int err)
{
  tree_deletion *t = node_deletion(n);

  n->in_doubt = true;
  if (!n->must_list && lk__error_meaning(err).outcome != LK_OUTCOME_NOT_DONE)
    t->in_doubt = true; /* the request was a delete */
  switch (lk__error_advice(t->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    if (!t->repeat)
      tree_node_record_error(n, err);
    break;
  case LK_ADVICE_RETRY_LATER: tree_deletion_pause(t); break;
  case LK_ADVICE_GIVE_UP: tree_node_record_error(n, err); break;
  }
  tree_node_require_delete(n);
}

/* ---- deletes ------------------------------------------------------------- */

/* A delete failed with LK_ERR_NOT_EMPTY. If deletes of all known children
 * had been sent, the node has unknown children and must be listed. */
static void tree_node_not_empty(lk_tree_node *n)
{
  if (n->children_unrequested > 0) {
    n->waits_for_children = true;
  } else {
    n->must_list = true;
    if (n->times_listed == MAX_LISTS_OF_NODE)
      tree_node_record_error(n, LK_ERR_NOT_EMPTY);
  }
  tree_node_require_delete(n);
}

static void tree_node_on_deleted(lk_client *c, int err, void *arg)
{
  lk_tree_node *n = arg;
  tree_deletion *t = node_deletion(n);
  /* If a later delete finds no node, an earlier delete may have been executed,
   * or another client may have deleted the node. */
  bool is_first_delete_of_top =
      n->parent == NULL && n->times_listed == 0 && !n->in_doubt;

  (void)c;
  if (err == 0)
    t->deleted++;
  tree_node_replied(n);
  if (err == LK_ERR_NO_NODE && is_first_delete_of_top)
    tree_node_record_error(n, err);
  if (err == 0 || err == LK_ERR_NO_NODE)
    tree_node_deleted(n);
  else if (err == LK_ERR_NOT_EMPTY)
    tree_node_not_empty(n);
  else
    tree_node_request_failed(n, err);
  tree_deletion_continue(t);
}

static int tree_node_request_delete(lk_tree_node *n)
{
  tree_deletion *t = node_deletion(n);
  lk_call call = lk__call_until(t->deadline_ms);
  const char *path = tree_node_path(n);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_delete(t->client, path, ANY_VERSION, &call,
                                     tree_node_on_deleted, n);

  tree_node_count_request(n, err);
  if (err == 0)
    tree_node_delete_requested(n);
  return err;
}

/* ---- lists of children --------------------------------------------------- */

static void tree_node_on_names(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg)
{
  lk_tree_node *n = arg;
  tree_deletion *t = node_deletion(n);

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

static int tree_node_request_names(lk_tree_node *n)
{
  tree_deletion *t = node_deletion(n);
  lk_call call = lk__call_until(t->deadline_ms);
  const char *path = tree_node_path(n);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_get_children(t->client, path, &call,
                                           tree_node_on_names, n);

  tree_node_count_request(n, err);
  if (err == 0)
    t->lists++;
  return err;
}

/* ---- the next request ---------------------------------------------------- */

/* Sends the next request for a node. If it has to wait for its children, none
 * is needed: the last child puts the node on the stack again. */
static int tree_node_request_next(lk_tree_node *n)
{
  if (n->must_list)
    return tree_node_request_names(n);
  return tree_node_is_ready(n) ? tree_node_request_delete(n) : 0;
}

/* Do the next step for the node on top of the stack. A node with unread names
 * goes back to the stack, with a child above it. */
static int tree_deletion_step(tree_deletion *t)
{
  lk_tree_node *n = tree_node_pop(&t->tree);

  if (n->names_left > 0) {
    tree_node_push(n);
    return tree_node_add_child(n);
  }
  int err = tree_node_request_next(n);

  if (err != 0)
    tree_node_push(n);
  return err;
}

/* Whether another request may be sent. One is always allowed, so that the
 * deletion makes progress. */
static bool tree_deletion_has_room(const tree_deletion *t)
{
  bool may_list = t->lists < MAX_LISTS && t->tree.names_left < MAX_NAMES;

  return t->requests == 0 ||
         (t->requests < MAX_REQUESTS && t->bytes < LK_PORTION_BYTES &&
          (may_list || !t->tree.stack->must_list));
}

static void tree_deletion_continue(tree_deletion *t)
{
  while (t->err == 0 && !t->pause.running && t->tree.stack != NULL &&
         tree_deletion_has_room(t)) {
    int err = tree_deletion_step(t);

    if (err == LK_ERR_TOO_MANY && t->requests > 0)
      break; /* the next reply continues the deletion */
    if (lk__error_advice(t->client, err) == LK_ADVICE_RETRY_LATER)
      tree_deletion_pause(t);
    else if (err != 0)
      tree_deletion_record_refusal(t, err);
  }
  bool continues_after_pause = t->err == 0 && t->pause.running;

  if (t->requests == 0 && !continues_after_pause)
    tree_deletion_complete(t);
}

/* ---- calls --------------------------------------------------------------- */

/* Whether `path` is the root, or "/zookeeper" or a node below it, which the
 * servers need. The servers' path is the chroot followed by `path`: with the
 * chroot "/zookeeper" all paths are reserved, with another chroot none is.
 */
static bool is_reserved_path(const lk_client *c, const char *path)
{
  static const char reserved[] = "/zookeeper";
  size_t len = strlen(reserved);
  const char *path_start =
      lk_client_chroot(c)[0] == '\0' ? path : lk_client_chroot(c);

  return strcmp(path, "/") == 0 ||
         (strncmp(path_start, reserved, len) == 0 &&
          (path_start[len] == '\0' || path_start[len] == '/'));
}

/* Only the callbacks and `arg` of `options` are used. */
static int tree_deletion_begin(lk_client *c, const char *path,
                               const lk_call *call,
                               const tree_deletion *options)
{
  lk_call timing;
  int err = lk__call_options_copy(c, &timing, call);

  if (err != 0)
    return err;
  if (path == NULL || lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  if (is_reserved_path(c, path))
    return LK_ERR_BAD_ARGUMENT;
  tree_deletion *t = lk__mem_new(lk_client_mem(c), sizeof *t);

  if (t == NULL)
    return LK_ERR_NO_MEMORY;
  *t = *options;
  t->client = c;
  t->deadline_ms = lk__call_deadline(c, &timing);
  t->repeat = timing.repeat;
  t->tree.mem = lk_client_mem(c);
  lk__list_init(&t->tree.nodes);
  lk_tree_node *no_parent = NULL;
  lk_tree_node *top = tree_node_new(&t->tree, no_parent, path);

  err = top == NULL ? LK_ERR_NO_MEMORY : tree_node_request_delete(top);

  if (err != 0)
    tree_deletion_free(t);
  return err;
}

int lk_delete_recursive(lk_client *c, const char *path, const lk_call *call,
                        lk_progress_cb may_continue, lk_deleted_cb done,
                        void *arg)
{
  const tree_deletion options = {
      .may_continue = may_continue, .done = done, .arg = arg};

  return tree_deletion_begin(c, path, call, &options);
}

int lk_delete_recursive2(lk_client *c, const char *path, const lk_call *call,
                         lk_progress_cb may_continue, lk_deleted2_cb done,
                         void *arg)
{
  const tree_deletion options = {
      .may_continue = may_continue, .done2 = done, .arg = arg};

  return tree_deletion_begin(c, path, call, &options);
}
