/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/nodes/create_with_parents.h"

#include <latchkey/nodes.h>

#include "base/acl.h"
#include "base/error_meaning.h"
#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/error_advice.h"

/**
 * @file
 * Creates a node and its missing parents. The first request creates the node
 * alone, as if the parents existed. If it fails with LK_ERR_NO_NODE, creates of
 * all parents and of the node are sent in one write. If these would be large
 * together, some wait for the replies to those before them.
 */

/* Another client, or the servers' deletion of empty containers, may delete the
 * parents again before the node is created. Then they are created once more. */
enum { MAX_ROUNDS = 10 };

typedef struct create_with_parents {
  lk_client *client;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  lk_acls *parent_acl;
  int flags;
  bool without_stat; /* the callback needs no Stat */
  int parent_flags;
  int64_t deadline_ms;
  lk_create_cb done;
  void *arg;
  unsigned rounds;    /* how many times the parents were requested */
  size_t portion;     /* the most requests under way */
  size_t outstanding; /* requests without a reply */
  bool sending;       /* more requests of this round follow */
  char *end_of_next;  /* behind the name of the parent that is requested next;
                         NULL: the node is next */
  int node_err;       /* why the node was not created in this round */
  int parent_err;     /* why the lowest parent may not exist, or 0 */
  bool top_refused;   /* the create of the top parent failed with
                         LK_ERR_NO_NODE: the chroot does not exist */
} create_with_parents;

static void create_with_parents_free(create_with_parents *cp)
{
  const lk_mem *mem = lk_client_mem(cp->client);

  lk__mem_free(mem, cp->acl);
  lk__mem_free(mem, cp->parent_acl);
  lk__mem_free(mem, cp);
}

static void create_with_parents_complete(create_with_parents *cp, int err,
                                         const char *path, const lk_stat *stat)
{
  lk_client *c = cp->client;
  lk_create_cb done = cp->done;
  void *arg = cp->arg;

  create_with_parents_free(cp);
  if (done != NULL)
    done(c, err, path, stat, arg);
}

/* ---- requests ------------------------------------------------------------ */

static void on_node_replied(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg);

static int send_node_create(create_with_parents *cp)
{
  lk_call call = lk__call_until(cp->deadline_ms);
  int err = cp->without_stat
                ? lk_create(cp->client, cp->path, cp->data, cp->acl, cp->flags,
                            &call, on_node_replied, cp)
                : lk_create2(cp->client, cp->path, cp->data, cp->acl, cp->flags,
                             &call, on_node_replied, cp);

  if (err != 0)
    return err;
  cp->outstanding++;
  cp->sending = false;
  return 0;
}

/* Whether the node may exist after the reply `err` to its create. */
static bool parent_may_exist(int err)
{
  return err == 0 || (err != LK_ERR_NO_NODE &&
                      lk__error_meaning(err).outcome == LK_OUTCOME_REFUSED);
}

static void create_with_parents_continue(create_with_parents *cp);

/* An error for one parent is not reported yet. Servers check permissions before
 * they check whether the node exists, so LK_ERR_NO_AUTH may mean that the
 * parent exists. Whether it does is shown by the reply to the next create. If
 * that reply is LK_ERR_NO_NODE, the error of the parent above it is kept. */
static void on_parent_replied(lk_client *c, int err, const char *path,
                              const lk_stat *stat, void *arg)
{
  create_with_parents *cp = arg;

  (void)c;
  (void)path;
  (void)stat;
  /* A server that replies LK_ERR_UNIMPLEMENTED closes the connection, so all
   * later requests fail as well. */
  if (cp->parent_err == LK_ERR_UNIMPLEMENTED)
    err = LK_ERR_UNIMPLEMENTED;
  if (err == 0 || err == LK_ERR_NODE_EXISTS)
    cp->parent_err = 0;
  else if (err != LK_ERR_NO_NODE)
    cp->parent_err = err;
  if (!parent_may_exist(err))
    cp->sending = false; /* what is below it would fail, too */
  cp->outstanding--;
  create_with_parents_continue(cp);
}

static void on_top_parent_replied(lk_client *c, int err, const char *path,
                                  const lk_stat *stat, void *arg)
{
  create_with_parents *cp = arg;

  cp->top_refused = err == LK_ERR_NO_NODE;
  on_parent_replied(c, err, path, stat, arg);
}

static char *end_of_top_parent(const create_with_parents *cp)
{
  return strchr(cp->path + 1, '/');
}

static int send_parent_create(create_with_parents *cp)
{
  lk_call call = lk__call_until(cp->deadline_ms);
  char *end = cp->end_of_next;
  bool is_top = end == end_of_top_parent(cp);

  *end = '\0'; /* cut the path behind the name of the parent */
  int err = lk_create(cp->client, cp->path, lk_bytes_of("", 0), cp->parent_acl,
                      cp->parent_flags, &call,
                      is_top ? on_top_parent_replied : on_parent_replied, cp);

  *end = '/';
  if (err != 0)
    return err;
  cp->outstanding++;
  cp->end_of_next = strchr(end + 1, '/');
  return 0;
}

/* Requests the parents from the top down, then the node. */
static void send_creates(create_with_parents *cp)
{
  while (cp->sending && cp->outstanding < cp->portion) {
    int err =
        cp->end_of_next != NULL ? send_parent_create(cp) : send_node_create(cp);

    if (err == LK_ERR_TOO_MANY && cp->outstanding > 0)
      return; /* the next reply continues */
    if (err != 0) {
      cp->node_err = lk__error_of_unsent(err);
      cp->sending = false;
    }
  }
}

/* ---- replies ------------------------------------------------------------- */

/* After LK_ERR_NO_NODE for the node: why it must not be retried with its
 * parents, or 0. */
static int retry_refusal(const create_with_parents *cp)
{
  if (cp->parent_err != 0)
    return cp->parent_err;
  return end_of_top_parent(cp) != NULL && !cp->top_refused &&
                 cp->rounds < MAX_ROUNDS
             ? 0
             : LK_ERR_NO_NODE;
}

static void begin_round_with_parents(create_with_parents *cp)
{
  cp->rounds++;
  cp->sending = true;
  cp->end_of_next = end_of_top_parent(cp);
  cp->node_err = LK_ERR_NO_NODE;
  send_creates(cp);
}

/* Sends what remains of this round. At its end, begins the next one, or
 * completes the call. */
static void create_with_parents_continue(create_with_parents *cp)
{
  send_creates(cp);
  if (cp->outstanding == 0 && cp->node_err == LK_ERR_NO_NODE) {
    cp->node_err = retry_refusal(cp);
    if (cp->node_err == 0)
      begin_round_with_parents(cp);
  }
  if (cp->outstanding == 0)
    create_with_parents_complete(cp, cp->node_err, NULL, NULL);
}

/* Servers reply in order, so the node's reply follows those of its parents. If
 * requests fail at the deadline instead, replies for parents may still be
 * outstanding. Then the last of them completes the call with `node_err`. */
static void on_node_replied(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg)
{
  create_with_parents *cp = arg;

  (void)c;
  cp->outstanding--;
  if (err == 0) {
    create_with_parents_complete(cp, 0, path, stat);
    return;
  }
  if (cp->parent_err == LK_ERR_UNIMPLEMENTED)
    err = LK_ERR_UNIMPLEMENTED; /* see on_parent_replied() */
  cp->node_err = err;
  create_with_parents_continue(cp);
}

/* ---- call ---------------------------------------------------------------- */

/* Returns NULL for NULL. Sets `*no_memory` to true if there is no memory. */
static lk_acls *copy_optional_acl(const lk_mem *mem, const lk_acls *acl,
                                  bool *no_memory)
{
  if (acl == NULL)
    return NULL;
  lk_acls *copy = lk__acls_copy(mem, acl);

  if (copy == NULL)
    *no_memory = true;
  return copy;
}

/* Path and data are copied into the allocation of the struct. NULL: no memory.
 */
static create_with_parents *
create_with_parents_new(lk_client *c, const char *path, lk_bytes data,
                        const lk_acls *acl, const lk_acls *parent_acl)
{
  const lk_mem *mem = lk_client_mem(c);
  size_t path_size = strlen(path) + 1;
  bool no_memory = false;

  if (data.len > SIZE_MAX - sizeof(create_with_parents) - path_size)
    return NULL;
  create_with_parents *cp = lk__mem_new(mem, sizeof *cp + path_size + data.len);

  if (cp == NULL)
    return NULL;
  cp->client = c;
  cp->path = (char *)(cp + 1);
  memcpy(cp->path, path, path_size);
  cp->data = data;
  if (data.at != NULL)
    cp->data.at = cp->path + path_size;
  if (data.len > 0)
    memcpy(cp->path + path_size, data.at, data.len);
  cp->acl = copy_optional_acl(mem, acl, &no_memory);
  cp->parent_acl = copy_optional_acl(mem, parent_acl, &no_memory);
  if (!no_memory)
    return cp;
  create_with_parents_free(cp);
  return NULL;
}

static int create_with_parents_begin(create_with_parents *cp)
{
  cp->portion = lk__portion_of_creates(cp->client, cp->path, cp->parent_acl);
  int err = send_node_create(cp);

  if (err != 0)
    create_with_parents_free(cp);
  return err;
}

int lk_create_with_parents(lk_client *c, const char *path, lk_bytes data,
                           const lk_acls *acl, int flags,
                           const lk_parents_config *parents,
                           const lk_call *call, lk_create_cb done, void *arg)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_parents_config);
  lk_parents_config parent_options;
  lk_call timing;
  int err = lk__call_options_copy(c, &timing, call);

  if (err == 0)
    err = lk__client_copy_options(c, &sized, &parent_options, parents);
  if (err != 0 || timing.repeat)
    return LK_ERR_BAD_ARGUMENT;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  create_with_parents *cp =
      create_with_parents_new(c, path, data, acl, parent_options.acl);

  if (cp == NULL)
    return LK_ERR_NO_MEMORY;
  cp->flags = flags;
  cp->parent_flags = parent_options.containers ? LK_CONTAINER : LK_PERSISTENT;
  cp->deadline_ms = lk__call_deadline(c, &timing);
  cp->done = done;
  cp->arg = arg;
  return create_with_parents_begin(cp);
}

int lk__create_directories(lk_client *c, const char *path, const lk_acls *acl,
                           int flags, lk_create_cb done, void *arg)
{
  const lk_bytes empty = lk_bytes_of("", 0);
  create_with_parents *cp = create_with_parents_new(c, path, empty, acl, acl);

  if (cp == NULL)
    return LK_ERR_NO_MEMORY;
  cp->flags = flags;
  cp->without_stat = true;
  cp->parent_flags = flags;
  cp->deadline_ms = INT64_MAX;
  cp->done = done;
  cp->arg = arg;
  return create_with_parents_begin(cp);
}
