/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/recovery.h"

#include "base/mem.h"
#include "recipes/error_advice.h"
#include "recipes/names.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/queue.h"

/* ---- the requests -------------------------------------------------------- */

static void on_recovery_transaction(lk_client *c, int err,
                                    const lk_op_result *results, size_t count,
                                    void *arg)
{
  lk_contender *ct = arg;

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.transaction_err = lk__transaction_was_ordered(c) ? 0 : err;
  lk__contender_unref(ct);
}

/* Send a transaction, on any path, and then the list. A create of the old
 * connection was either proposed before this transaction, and the list shows
 * it, or the servers will never execute it. A sync does not suffice: a deposed
 * leader replies to a sync without asking the other servers. */
int lk__recovery_begin(lk_contender *ct)
{
  enum { ANY_VERSION = -1 };
  lk_op check = lk_op_check(lk__own_node_directory(&ct->own), ANY_VERSION);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), &check, 1, LK_NO_OPTIONS,
                   on_recovery_transaction, ct));

  return err != 0 ? err : ct->machine->request_view(ct);
}

/* ---- the list of the session's nodes ------------------------------------- */

/* For a cleanup in a queue whose list is larger than the client accepts
 * (`receive_limit`): getEphemerals lists the nodes of this session alone.
 * Servers before 3.6 do not support it. */

static const lk_bytes *const no_names = NULL;

/* The name of the node at `path` if its parent is the directory of the queue.
 * Otherwise `at` of the result is NULL. */
static lk_bytes child_name_in_dir(const lk_contender *ct, lk_bytes path)
{
  const lk_bytes none = {0};
  size_t dir_len = strlen(ct->own.dir);
  const char *at = path.at;

  if (path.len <= dir_len || memcmp(at, ct->own.dir, dir_len) != 0 ||
      at[dir_len] != '/')
    return none;
  const char *name = at + dir_len + 1;
  size_t name_len = path.len - dir_len - 1;
  bool is_deeper = memchr(name, '/', name_len) != NULL;

  return is_deeper ? none : lk_bytes_of(name, name_len);
}

/* Pass the names of the nodes in the directory on as a list of the queue. */
static void contender_take_ephemerals(lk_contender *ct, const lk_bytes *paths,
                                      size_t count)
{
  /* One more, so that the array is not empty. */
  lk_bytes *names = lk__mem_new(&ct->lease->mem, (count + 1) * sizeof *names);
  size_t found = 0;

  if (names == NULL) {
    lk__contender_rules(ct)->listed(ct, LK_ERR_NO_MEMORY, no_names, 0);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    names[found] = child_name_in_dir(ct, paths[i]);
    if (names[found].at != NULL)
      found++;
  }
  /* A copy, since the callback may free the lease. */
  lk_mem mem = ct->lease->mem;

  lk__contender_rules(ct)->listed(ct, 0, names, found);
  lk__mem_free(&mem, names);
}

/* If the server does not support getEphemerals, the error is the one of the
 * list that getEphemerals replaces. */
static int error_of_list(int err)
{
  return err == LK_ERR_UNIMPLEMENTED ? LK_ERR_REPLY_TOO_BIG : err;
}

static void on_ephemerals_listed(lk_client *c, int err, const lk_bytes *paths,
                                 size_t count, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct) && ct->state == LK_CONTENDER_CLEANING_UP) {
    if (err == 0)
      contender_take_ephemerals(ct, paths, count);
    else
      lk__contender_rules(ct)->listed(ct, error_of_list(err), no_names, 0);
  }
  lk__contender_unref(ct);
}

int lk__contender_list_session(lk_contender *ct)
{
  /* The request is for paths with a prefix. While the number is not known, the
   * prefix must not end with the number of an earlier node. */
  if (ct->own.state == LK_OWN_IN_DOUBT)
    ct->own.path[ct->own.path_base_len] = '\0';
  int err = lk_ephemerals(lk__contender_client(ct), ct->own.path, LK_NO_OPTIONS,
                          on_ephemerals_listed, ct);

  return lk__contender_count_request(ct, error_of_list(err));
}

/* ---- possible own nodes -------------------------------------------------- */

/* If the token is known, the name is known as well, and only the node of that
 * name can be the own one. */
static bool name_may_be_own(const lk_own_node *own, lk_bytes name)
{
  const char *own_name = lk__own_node_name(own);

  return own->token == 0 || (name.len == strlen(own_name) &&
                             memcmp(name.at, own_name, name.len) == 0);
}

/* Collect the listed names that may be the own node. 0, or
   LK_ERR_NO_MEMORY. */
static int possible_nodes_set(lk_possible_nodes *s, const lk_mem *mem,
                              const lk_own_node *own, const lk_bytes *names,
                              size_t count)
{
  int64_t number;

  lk__possible_nodes_free(s, mem);
  s->numbers = lk__mem_new(mem, count * sizeof *s->numbers);
  if (s->numbers == NULL)
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    if (lk__name_has_base(names[i], lk__own_node_base(own), &number) &&
        name_may_be_own(own, names[i]))
      s->numbers[s->count++] = number;
  }
  lk__numbers_sort(s->numbers, s->count);
  s->total = s->next = s->count;
  /* The numbers are sorted: if the first and the last are in range, all are. */
  s->in_order = s->count > 0 && lk__sequence_is_in_range(s->numbers[0]) &&
                lk__sequence_is_in_range(s->numbers[s->count - 1]);
  return 0;
}

/* Whether to read the possible own nodes again; if so, that is prepared. */
static bool possible_nodes_rewind(lk_possible_nodes *s)
{
  if (s->found || s->err != 0 || !s->saw_revoked || s->takes_revoked)
    return false;
  s->takes_revoked = true;
  s->rest_is_older = false;
  s->count = s->next = s->total;
  return true;
}

void lk__possible_nodes_free(lk_possible_nodes *s, const lk_mem *mem)
{
  lk__mem_free(mem, s->numbers);
  *s = (lk_possible_nodes){0};
}

/* ---- READING_POSSIBLE_NODES ---------------------------------------------- */

/* If names are not unique (LK_IDENTITY_DATA), the list does not show which node
 * is the own one. So the possible own nodes are read, the newest first, until
 * the own node is found or the possible own nodes are older than the create.
 * The own node belongs to our session. If the token is known, the node's czxid
 * equals the token; otherwise the node has the data of the create, with our
 * UUID. */

static bool possible_node_is_of_session(const lk_contender *ct,
                                        const lk_stat *stat)
{
  return stat->ephemeral_owner ==
         lk_client_session(lk__contender_client(ct)).id;
}

/* Whether the possible own node may be the own node without its UUID, since a
 * revocation has replaced the data. A node that another contender of this
 * session knows as its own is none. */
static bool possible_node_is_revoked(const lk_contender *ct,
                                     const lk_bytes *data, const lk_stat *stat)
{
  bool is_new_enough = (uint64_t)stat->czxid > ct->own.requested_after_zxid;

  if (ct->own.token != 0 || !is_new_enough || !lk__is_revocation(*data) ||
      !possible_node_is_of_session(ct, stat))
    return false;
  return !lk__node_is_of_other_contender(ct, (uint64_t)stat->czxid);
}

static bool possible_node_is_own(const lk_contender *ct, const lk_bytes *data,
                                 const lk_stat *stat)
{
  if (!possible_node_is_of_session(ct, stat))
    return false;
  if (ct->own.token != 0)
    return ct->own.token == (uint64_t)stat->czxid;
  return data->len == ct->own.data_len &&
         memcmp(data->at, ct->own.data, data->len) == 0;
}

static void possible_nodes_take_reply(lk_contender *ct, int err,
                                      const lk_bytes *data, const lk_stat *stat)
{
  lk_possible_nodes *s = &ct->possible;
  /* Replies come in the order of the reads, from the end of the array. */
  int64_t number = s->numbers[--s->next];

  if (err == LK_ERR_NO_NODE || s->found)
    return;
  if (err != 0) {
    s->err = err;
    return;
  }
  lk__own_node_set_number(&ct->own, number);
  s->rest_is_older =
      s->in_order && (uint64_t)stat->czxid <= ct->own.requested_after_zxid;
  bool may_be_own = possible_node_is_revoked(ct, data, stat);

  s->saw_revoked = s->saw_revoked || may_be_own;
  if (possible_node_is_own(ct, data, stat) ||
      (may_be_own && s->takes_revoked)) {
    lk__own_node_set_found(&ct->own, (uint64_t)stat->czxid,
                           lk__contender_connection(ct));
    s->found = true;
  }
}

static lk_recovered possible_nodes_result(bool found, int err)
{
  if (found)
    return LK_RECOVERED_FOUND;
  return err != 0 ? LK_RECOVERED_FAILED : LK_RECOVERED_MISSING;
}

static void possible_nodes_end(lk_contender *ct, int err)
{
  bool found = ct->possible.found;

  lk__possible_nodes_free(&ct->possible, &ct->lease->mem);
  if (!found && err == 0)
    lk__own_node_set_missing(&ct->own);
  if (ct->state == LK_CONTENDER_CLEANING_UP)
    lk__cleanup_recovered(ct, possible_nodes_result(found, err), err);
  else if (found)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

static int possible_nodes_read_next(lk_contender *ct);

static void on_possible_node_read(lk_client *c, int err, const lk_bytes *data,
                                  const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    possible_nodes_take_reply(ct, err, data, stat);
    if (!lk__contender_fail_if_too_big(ct, err) &&
        lk__contender_has_all_replies(ct)) {
      err = possible_nodes_read_next(ct);
      if (err != 0)
        possible_nodes_end(ct, err);
    }
  }
  lk__contender_unref(ct);
}

enum { READS_AT_A_TIME = LK_MAX_PREDECESSOR_READS };

/* Read the newest possible own nodes that were not read yet, a few at a time.
 * If the own node was found, or none can be the own node, end. */
static int possible_nodes_read_next(lk_contender *ct)
{
  lk_possible_nodes *s = &ct->possible;
  bool done = s->found || s->err != 0 || s->rest_is_older || s->count == 0;
  int err = 0;

  if (done && !possible_nodes_rewind(s)) {
    possible_nodes_end(ct, s->err);
    return 0;
  }
  for (size_t i = 0; i < READS_AT_A_TIME && s->count > 0 && err == 0; i++) {
    lk__own_node_set_number(&ct->own, s->numbers[--s->count]);
    err = lk__contender_count_request(ct, lk_get(lk__contender_client(ct),
                                                 ct->own.path, LK_NO_OPTIONS,
                                                 on_possible_node_read, ct));
  }
  if (err != 0)
    lk__contender_ignore_replies(ct); /* to the reads that were sent */
  return err;
}

static int contender_enter_reading_possible_nodes(lk_contender *ct)
{
  return possible_nodes_read_next(ct);
}

const lk_contender_rules lk__rules_reading_possible_nodes = {
    .next = {LK_ON(LIST_NEEDED, LISTING), LK_ON_ANY_IN_QUEUE},
    .enter = contender_enter_reading_possible_nodes};

/* ---- RECOVERING ---------------------------------------------------------- */

int lk__contender_enter_recovering(lk_contender *ct)
{
  return lk__recovery_begin(ct);
}

/* The list completed with `*err`, which is set to the error of the transaction
 * if that failed. Behind a committed transaction, a node that is not listed
 * does not exist, and no delayed create will make it. */
static lk_recovered recovery_judge_list(lk_contender *ct, int *err,
                                        const lk_bytes *names, size_t count)
{
  if (ct->round.transaction_err != 0) {
    *err = ct->round.transaction_err;
    return LK_RECOVERED_FAILED;
  }
  if (*err == LK_ERR_NO_NODE) /* the directory does not exist */
    return LK_RECOVERED_MISSING;
  if (*err != 0)
    return LK_RECOVERED_FAILED;
  lk_bytes own_name = lk__own_node_find(&ct->own, names, count);

  if (own_name.at == NULL)
    return LK_RECOVERED_MISSING;
  if (ct->own.identity == LK_IDENTITY_DATA)
    return LK_RECOVERED_POSSIBLE_NODES;
  (void)lk__own_node_accept_name(&ct->own, own_name);
  return LK_RECOVERED_FOUND;
}

static void recovery_continue(lk_contender *ct, lk_recovered result, int err,
                              const lk_bytes *names, size_t count)
{
  switch (result) {
  case LK_RECOVERED_FAILED: lk__contender_request_failed(ct, err); break;
  case LK_RECOVERED_FOUND: lk__contender_take_list(ct, names, count); break;
  case LK_RECOVERED_MISSING:
    lk__own_node_set_missing(&ct->own);
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
    break;
  case LK_RECOVERED_POSSIBLE_NODES:
    err = possible_nodes_set(&ct->possible, &ct->lease->mem, &ct->own, names,
                             count);
    if (err != 0)
      lk__contender_fail(ct, err);
    else
      lk__contender_step(ct, LK_CONTENDER_ON_POSSIBLE_NODES);
    break;
  }
}

/* CLEANING_UP: report the result to the cleanup. */
static void recovery_report(lk_contender *ct, lk_recovered result, int err,
                            const lk_bytes *names, size_t count)
{
  if (result != LK_RECOVERED_POSSIBLE_NODES) {
    lk__cleanup_recovered(ct, result, err);
    return;
  }
  err = possible_nodes_set(&ct->possible, &ct->lease->mem, &ct->own, names,
                           count);
  if (err == 0)
    err = possible_nodes_read_next(ct);
  if (err != 0)
    lk__cleanup_recovered(ct, LK_RECOVERED_FAILED, err);
}

void lk__recovery_take_list(lk_contender *ct, int err, const lk_bytes *names,
                            size_t count)
{
  lk_recovered result = recovery_judge_list(ct, &err, names, count);

  if (ct->state == LK_CONTENDER_CLEANING_UP)
    recovery_report(ct, result, err, names, count);
  else
    recovery_continue(ct, result, err, names, count);
}

const lk_contender_rules lk__rules_recovering = {
    .next = {LK_ON(PREDECESSORS, SETTING_WATCHES), LK_ON(GRANT, HELD),
             LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(TOKEN_NEEDED, READING_OWN),
             LK_ON(POSSIBLE_NODES, READING_POSSIBLE_NODES), LK_ON_ANY_IN_QUEUE},
    .enter = lk__contender_enter_recovering,
    .listed = lk__recovery_take_list};
