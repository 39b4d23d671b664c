/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/call.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/grant.h"
#include "recipes/queue/own_node_create.h"
#include "recipes/queue/queue_listing.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/request_errors.h"

/* How many times the directory may be missing before the contender fails. */
enum { MAX_PARENTS_MISSING = 10 };

/* ---- the own node ------------------------------------------------------- */

static bool contender_is_creating(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_CREATING ||
         ct->state == LK_CONTENDER_CREATING_PARENTS;
}

static int own_node_take_create_reply(lk_contender *ct, int err,
                                      const char *path, uint64_t zxid)
{
  if (err != 0) {
    lk__own_node_create_failed(&ct->own, err);
    return err;
  }
  err =
      lk__own_node_created(&ct->own, path, zxid, lk__contender_connection(ct));
  if (err == 0)
    ct->round.parents_missing = 0;
  return err;
}

static void contender_judge_create_without_list(lk_contender *ct)
{
  const lk_bytes *no_names = NULL;

  lk__contender_judge_create(ct, 0, no_names, 0);
}

void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid)
{
  if (lk__contender_take_reply(ct)) {
    ct->round.create_err = own_node_take_create_reply(ct, err, path, zxid);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_continue(ct);
    else if (contender_is_creating(ct) && lk__contender_needs_no_list(ct))
      contender_judge_create_without_list(ct);
  }
  lk__contender_unref(ct);
}

static void on_own_created(lk_client *c, int err, const char *path,
                           const lk_stat *stat, void *arg)
{
  (void)c;
  lk__contender_own_created(arg, err, path,
                            stat == NULL ? 0 : (uint64_t)stat->czxid);
}

void lk__contender_mark_created_jointly(lk_contender *ct)
{
  const int sent = 0;

  (void)lk__contender_count_request(ct, sent);
  lk__own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
}

static int contender_send_create(lk_contender *ct)
{
  int flags = LK_EPHEMERAL | LK_SEQUENTIAL;

  if (lk__identity_is_unnumbered(ct->own.identity))
    flags = LK_EPHEMERAL;
  /* Cut off the number of an earlier node: the server appends a new one. */
  ct->own.path[ct->own.path_base_len] = '\0';
  int err = lk__contender_count_request(
      ct,
      lk_create2(lk__contender_client(ct), ct->own.path, lk__contender_data(ct),
                 ct->config->acl, flags, LK_NO_OPTIONS, on_own_created, ct));

  if (err == 0)
    lk__own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
  return err;
}

/* ---- directories -------------------------------------------------------- */

/* An error is not final, since a server refuses a create without permission
 * before it looks whether the directory exists. The create of the own node
 * shows whether a directory is missing; then the kept error of the last
 * directory is reported. */
static void on_parent_created(lk_client *c, int err, const char *path,
                              const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (err == LK_ERR_UNIMPLEMENTED)
    ct->lease->queues.no_containers = true;
  if (lk__contender_take_reply(ct)) {
    /* After LK_ERR_UNIMPLEMENTED, the directory is requested again, not as a
     * container. */
    if (err == 0 || err == LK_ERR_NODE_EXISTS || err == LK_ERR_UNIMPLEMENTED)
      ct->round.parent_err = 0;
    else if (err != LK_ERR_NO_NODE)
      ct->round.parent_err = err;
  }
  lk__contender_unref(ct);
}

static int contender_send_create_of_parent(lk_contender *ct, const char *path,
                                           lk_bytes data, int flags)
{
  return lk_create(lk__contender_client(ct), path, data, ct->config->parent_acl,
                   flags, LK_NO_OPTIONS, on_parent_created, ct);
}

static int contender_create_parent(lk_contender *ct, const char *path,
                                   lk_bytes data)
{
  bool persistent =
      ct->lease->queues.no_containers || ct->config->persistent_parents;
  int err = contender_send_create_of_parent(
      ct, path, data, persistent ? LK_PERSISTENT : LK_CONTAINER);

  /* The client knows from an earlier request that the server does not support
   * containers, and refuses to send the create. */
  if (err == LK_ERR_UNIMPLEMENTED) {
    ct->lease->queues.no_containers = true;
    err = contender_send_create_of_parent(ct, path, data, LK_PERSISTENT);
  }
  return lk__contender_count_request(ct, err);
}

/* Each of them begins with "/", unless the directory is the root. */
static size_t count_directories(const char *dir)
{
  size_t count = 0;

  while ((dir = strchr(dir, '/')) != NULL) {
    dir++;
    count++;
  }
  return count;
}

int lk__contender_create_parents(lk_contender *ct)
{
  const lk_bytes empty = lk_bytes_of("", 0);
  lk_bytes dir_data = ct->config->dir_data;
  int err = 0;

  if (count_directories(ct->own.dir) >
      lk__portion_of_creates(lk__contender_client(ct), ct->own.dir,
                             ct->config->parent_acl))
    return LK_ERR_TOO_BIG;
  /* Cut the path behind each directory in turn. */
  for (char *p = ct->own.dir; *p != '\0' && err == 0; p++) {
    if (*p != '/' || p == ct->own.dir)
      continue;
    *p = '\0';
    err = contender_create_parent(ct, ct->own.dir, empty);
    *p = '/';
  }
  bool dir_is_root = *ct->own.dir == '\0';

  if (err != 0 || dir_is_root)
    return err;
  return contender_create_parent(ct, ct->own.dir,
                                 dir_data.at == NULL ? empty : dir_data);
}

void lk__contender_parent_missing(lk_contender *ct)
{
  if (ct->round.parent_err != 0)
    lk__contender_request_failed(ct, ct->round.parent_err);
  else if (ct->round.parents_missing++ == MAX_PARENTS_MISSING)
    lk__contender_fail(ct, LK_ERR_NO_NODE);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_NO_PARENT);
}

/* ---- CREATING, CREATING_PARENTS ----------------------------------------- */

void lk__contender_judge_create(lk_contender *ct, int err,
                                const lk_bytes *names, size_t count)
{
  if (ct->round.create_err == LK_ERR_NO_NODE)
    lk__contender_parent_missing(ct);
  else if (ct->round.create_err != 0)
    lk__contender_request_failed(ct, ct->round.create_err);
  else if (lk__contender_needs_no_list(ct))
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else
    lk__contender_judge_list(ct, err, names, count);
}

int lk__contender_enter_creating(lk_contender *ct, lk_contender_state from)
{
  (void)from;
  if (ct->downgrade.writer != NULL && lk__contender_holds(ct->downgrade.writer))
    return ct->downgrade.send_create(ct);
  /* A joint acquisition has sent the create. */
  if (ct->own.state == LK_OWN_REQUESTED)
    return ct->machine->request_view(ct);
  ct->downgrade.writer_token = 0;
  ct->round.parent_err = 0;
  int err = contender_send_create(ct);

  if (err == 0 && !lk__contender_needs_no_list(ct))
    err = ct->machine->request_view(ct);
  return err;
}

int lk__contender_enter_creating_parents(lk_contender *ct,
                                         lk_contender_state from)
{
  int err = lk__contender_create_parents(ct);

  return err != 0 ? err : lk__contender_enter_creating(ct, from);
}

#define STEPS_OF_CREATING                                                     \
  {                                                                           \
    LK_ON(NO_PARENT, CREATING_PARENTS), LK_ON(PREDECESSORS, SETTING_WATCHES), \
        LK_ON(GRANT, HELD), LK_ON(CHECK_NEEDED, CHECKING_OWN),                \
        LK_ON_ANY_IN_QUEUE                                                    \
  }

const lk_contender_rules lk__rules_creating = {
    .next = STEPS_OF_CREATING,
    .enter = lk__contender_enter_creating,
    .listed = lk__contender_judge_create};

const lk_contender_rules lk__rules_creating_parents = {
    .next = STEPS_OF_CREATING,
    .enter = lk__contender_enter_creating_parents,
    .listed = lk__contender_judge_create};
