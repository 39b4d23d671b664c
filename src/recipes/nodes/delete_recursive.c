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
 * A tree is deleted. Every node is first asked to go as if it were a leaf, as
 * most are; one that is not is listed, and the same done with its children.
 * Who has nobody left below is asked to go in the same write as the last of
 * them: a server executes in order.
 */

enum {
  MAX_REQUESTS = 256,
  MAX_LISTS = 16,   /* of these */
  MAX_NAMES = 4096, /* with more in memory, no list as long as it can wait */
  MAX_ROUNDS = 10   /* lists of one directory */
};

typedef struct tree tree;

/* A node that is to go. */
typedef struct item {
  lk_link all;
  tree *tree;
  struct item *up;    /* NULL: the top */
  struct item *below; /* in the stack of those for whom there is work */
  bool stacked;
  bool asked;      /* its delete is under way */
  bool gone;       /* it is kept for its children's sake */
  bool unlisted;   /* it has children that nobody knows */
  bool doubtful;   /* an answer to its delete was lost */
  bool counted;    /* among `up->waits` */
  size_t waits;    /* children whose delete is yet to be asked for */
  size_t kids;     /* items whose `up` this is */
  unsigned rounds; /* how often it was listed */
  char *names;     /* each with a NUL */
  const char *next;
  size_t left; /* of the names */
  char path[];
} item;

struct tree {
  lk_client *client;
  lk_progress_cb more;
  lk_deleted_cb done;
  void *arg;
  int64_t end_ms;
  bool repeat;
  int err;
  size_t deleted;
  size_t requests; /* under way */
  size_t lists;    /* of these */
  size_t names;    /* in memory */
  item *stack;
  lk_link items;
  lk_pause pause;
};

/* ---- items ------------------------------------------------------------- */

static const lk_mem *mem_of(const tree *t)
{
  return lk_client_mem(t->client);
}

static item *new_item(tree *t, item *up, const char *path, const char *name)
{
  size_t len = strlen(path);
  size_t more = strlen(name);
  item *i = lk__take(mem_of(t), sizeof *i + len + more + 2);

  if (i == NULL)
    return NULL;
  memcpy(i->path, path, len);
  if (more > 0) {
    i->path[len] = '/';
    memcpy(i->path + len + 1, name, more);
  }
  i->tree = t;
  i->up = up;
  if (up != NULL)
    up->kids++;
  lk__list_add(&t->items, &i->all);
  return i;
}

static void drop_names(item *i)
{
  i->tree->names -= i->left;
  i->left = 0;
  lk__give(mem_of(i->tree), i->names);
  i->names = NULL;
}

static void free_item(item *i)
{
  drop_names(i);
  lk__list_remove(&i->all);
  lk__give(mem_of(i->tree), i);
}

static void push(item *i)
{
  if (i->stacked || i->asked || i->gone)
    return;
  i->stacked = true;
  i->below = i->tree->stack;
  i->tree->stack = i;
}

static item *pop(tree *t)
{
  item *i = t->stack;

  t->stack = i->below;
  i->stacked = false;
  return i;
}

/* There is work again for one whose delete had been asked for. */
static void reopen(item *i)
{
  if (i->up != NULL && !i->counted) {
    i->counted = true;
    i->up->waits++;
  }
  if (i->waits == 0)
    push(i);
}

/* Nobody above waits for it to be asked to go. */
static void close(item *i)
{
  if (!i->counted)
    return;
  i->counted = false;
  if (--i->up->waits == 0)
    push(i->up);
}

/* Those above may have waited for this one to be gone. */
static void is_gone(item *i)
{
  i->gone = true;
  close(i);
  while (i != NULL && i->gone && i->kids == 0) {
    item *up = i->up;

    if (up != NULL)
      up->kids--;
    free_item(i);
    i = up;
  }
}

/* ---- the end ----------------------------------------------------------- */

static void free_tree(tree *t)
{
  lk__pause_stop(&t->pause, t->client);
  while (!lk__list_empty(&t->items))
    free_item(LK_OWNER(t->items.next, item, all));
  lk__give(mem_of(t), t);
}

static void end(tree *t)
{
  lk_client *c = t->client;
  lk_deleted_cb done = t->done;
  void *arg = t->arg;
  size_t deleted = t->deleted;
  int err = t->err;

  free_tree(t);
  if (done != NULL)
    done(c, err, deleted, arg);
}

static void fail(tree *t, int err)
{
  if (t->err == 0)
    t->err = err;
}

/* ---- asking ------------------------------------------------------------ */

static void on_deleted(lk_client *c, int err, void *arg);
static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg);

static int asked(item *i, int err)
{
  i->asked = err == 0;
  i->tree->requests += err == 0;
  return err;
}

static int ask_delete(item *i)
{
  tree *t = i->tree;
  lk_call call = lk__call_until(t->end_ms);
  int err = lk_delete(t->client, i->path, -1, &call, on_deleted, i);

  if (asked(i, err) == 0)
    close(i);
  return err;
}

static int ask_names(item *i)
{
  tree *t = i->tree;
  lk_call call = lk__call_until(t->end_ms);
  int err = lk_get_children(t->client, i->path, &call, on_names, i);

  t->lists += err == 0;
  return asked(i, err);
}

/* The next of its names becomes an item. */
static int ask_child(item *i)
{
  item *child = new_item(i->tree, i, i->path, i->next);

  if (child == NULL)
    return LK_ERR_NO_MEMORY;
  i->next += strlen(i->next) + 1;
  i->left--;
  i->tree->names--;
  if (i->left == 0)
    drop_names(i);
  i->waits++;
  child->counted = true;
  push(child);
  return 0;
}

/* What is to be done for the uppermost of the stack. */
static int work(tree *t)
{
  item *i = pop(t);
  int err;

  if (i->left > 0) {
    push(i);
    err = ask_child(i);
  } else {
    err = i->unlisted ? ask_names(i) : i->waits > 0 ? 0 : ask_delete(i);
    if (err != 0)
      push(i);
  }
  return err;
}

static bool has_room(const tree *t)
{
  bool reads = t->lists < MAX_LISTS && t->names < MAX_NAMES;

  return t->requests == 0 ||
         (t->requests < MAX_REQUESTS && (reads || !t->stack->unlisted));
}

static void on_rested(void *arg, int err);

static void rest(tree *t)
{
  if (!t->pause.on)
    lk__pause_start(&t->pause, t->client, t->end_ms, on_rested, t);
}

static void pump(tree *t)
{
  while (t->err == 0 && !t->pause.on && t->stack != NULL && has_room(t)) {
    int err = work(t);

    if (err == LK_ERR_TOO_MANY && t->requests > 0)
      break; /* there will be room */
    if (lk__error_advice(t->client, err) == LK_ADVICE_RETRY_LATER)
      rest(t);
    else if (err != 0)
      fail(t, err);
  }
  if (t->requests == 0 && !(t->err == 0 && t->pause.on))
    end(t);
}

/* ---- answers ----------------------------------------------------------- */

static void on_rested(void *arg, int err)
{
  tree *t = arg;

  if (err != 0)
    fail(t, err);
  pump(t);
}

/* A request came to nothing. */
static void on_trouble(item *i, int err)
{
  tree *t = i->tree;

  i->doubtful = true;
  switch (lk__error_advice(t->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    if (!t->repeat)
      fail(t, err);
    break;
  case LK_ADVICE_RETRY_LATER: rest(t); break;
  case LK_ADVICE_GIVE_UP: fail(t, err); break;
  }
  reopen(i);
}

/* Of those whose children are all asked to go and have not gone. */
static void on_not_empty(item *i)
{
  if (i->waits == 0) {
    i->unlisted = true;
    if (i->rounds == MAX_ROUNDS)
      fail(i->tree, LK_ERR_NOT_EMPTY);
  }
  reopen(i);
}

static void answered(item *i)
{
  tree *t = i->tree;

  i->asked = false;
  t->requests--;
  if (t->more != NULL && t->err == 0 && !t->more(t->client, t->deleted, t->arg))
    fail(t, LK_ERR_CANCELLED);
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  item *i = arg;
  tree *t = i->tree;
  bool first = i->up == NULL && i->rounds == 0 && !i->doubtful;

  (void)c;
  t->deleted += err == 0;
  answered(i);
  if (err == LK_ERR_NO_NODE && first)
    fail(t, err);
  if (err == 0 || err == LK_ERR_NO_NODE)
    is_gone(i);
  else if (err == LK_ERR_NOT_EMPTY)
    on_not_empty(i);
  else
    on_trouble(i, err);
  pump(t);
}

/* Names that would lead elsewhere no server has. */
static bool is_name(lk_bytes name)
{
  return name.len > 0 && memchr(name.at, '\0', name.len) == NULL &&
         memchr(name.at, '/', name.len) == NULL;
}

static int take_names(item *i, const lk_bytes *names, size_t count)
{
  size_t size = 0;

  for (size_t n = 0; n < count; n++) {
    if (!is_name(names[n]))
      return LK_ERR_PROTOCOL;
    size += names[n].len + 1;
  }
  i->unlisted = false;
  i->rounds++;
  if (count == 0)
    return 0;
  i->names = lk__take(mem_of(i->tree), size);
  if (i->names == NULL)
    return LK_ERR_NO_MEMORY;
  char *at = i->names;

  for (size_t n = 0; n < count; n++) {
    memcpy(at, names[n].at, names[n].len);
    at += names[n].len + 1;
  }
  i->next = i->names;
  i->left = count;
  i->tree->names += count;
  return 0;
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  item *i = arg;
  tree *t = i->tree;

  (void)c;
  (void)stat;
  t->lists--;
  answered(i);
  if (err == LK_ERR_NO_NODE) {
    is_gone(i); /* by another's hand */
    pump(t);
    return;
  }
  if (err == 0)
    err = take_names(i, names, count);
  if (err != 0)
    on_trouble(i, err);
  else
    push(i);
  pump(t);
}

/* ---- beginning --------------------------------------------------------- */

/* Whether the server keeps its own there, as seen without a chroot. */
static bool is_reserved(const lk_client *c, const char *path)
{
  static const char own[] = "/zookeeper";
  size_t len = sizeof own - 1;
  const char *whole =
      lk_client_chroot(c)[0] == '\0' ? path : lk_client_chroot(c);

  return strcmp(path, "/") == 0 || (strncmp(whole, own, len) == 0 &&
                                    (whole[len] == '\0' || whole[len] == '/'));
}

int lk_delete_recursive(lk_client *c, const char *path, const lk_call *call,
                        lk_progress_cb more, lk_deleted_cb done, void *arg)
{
  lk_call own;
  int err = lk__call_options_take(c, &own, call);

  if (err != 0)
    return err;
  if (path == NULL || lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  if (is_reserved(c, path))
    return LK_ERR_BAD_ARGUMENT;
  tree *t = lk__take(lk_client_mem(c), sizeof *t);

  if (t == NULL)
    return LK_ERR_NO_MEMORY;
  t->client = c;
  t->more = more;
  t->done = done;
  t->arg = arg;
  t->end_ms = lk__call_deadline(c, &own);
  t->repeat = own.repeat;
  lk__list_init(&t->items);
  item *top = new_item(t, NULL, path, "");

  err = top == NULL ? LK_ERR_NO_MEMORY : ask_delete(top);

  if (err != 0)
    free_tree(t);
  return err;
}
