/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

enum { MAX_PARENTS = 10 };

static void contender_judge_create(lk_contender *ct, int err,
                                   const lk_bytes *names, size_t count);
static void contender_judge_list(lk_contender *ct, int err,
                                 const lk_bytes *names, size_t count);

static bool contender_is_creating(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_CREATING ||
         ct->state == LK_CONTENDER_CREATING_PARENTS;
}

/* A permit that does not count the others: to be there is enough. */
static bool contender_needs_no_list(const lk_contender *ct)
{
  return ct->role->counts && ct->config->limit == NULL;
}

/* ---- create ------------------------------------------------------------ */

static bool is_own_base(const lk_contender *ct, lk_bytes name)
{
  lk_bytes base = lk__contender_name_base(ct);

  return name.len == base.len && memcmp(name.at, base.at, base.len) == 0;
}

lk_bytes lk__contender_find_own_name(const lk_contender *ct,
                                     const lk_bytes *names, size_t count)
{
  if (!lk__name_is_whole(ct->own.identity))
    return lk__names_find_own(names, count, lk__contender_name_base(ct));
  for (size_t i = 0; i < count; i++) {
    if (is_own_base(ct, names[i]))
      return names[i];
  }
  return lk_bytes_of(NULL, 0);
}

bool lk__contender_set_own_name(lk_contender *ct, lk_bytes name)
{
  char *at = lk__contender_own_name(ct);
  int64_t suffix;

  if (lk__name_is_whole(ct->own.identity)
          ? !is_own_base(ct, name)
          : !lk__name_is_ours(name, lk__contender_name_base(ct), &suffix))
    return false;
  memcpy(at, name.at, name.len);
  at[name.len] = '\0';
  ct->own.state = LK_OWN_CREATED;
  return true;
}

lk_own_state lk__own_state_after_create(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  if (err == LK_ERR_SESSION_EXPIRED) /* the node goes with its session */
    return LK_OWN_NONE;
  return outcome == LK_OUTCOME_IN_DOUBT || outcome == LK_OUTCOME_ABANDONED
             ? LK_OWN_IN_DOUBT
             : LK_OWN_NONE;
}

static int own_node_take_create_reply(lk_contender *ct, int err,
                                      const char *path, uint64_t zxid)
{
  size_t dir_len = strlen(ct->own.dir);

  if (err != 0) {
    ct->own.state = lk__own_state_after_create(err);
    return err;
  }
  ct->own.state = LK_OWN_IN_DOUBT;
  if (path == NULL || strncmp(path, ct->own.dir, dir_len) != 0 ||
      path[dir_len] != '/' ||
      !lk__contender_set_own_name(ct, lk_text(path + dir_len + 1)))
    return LK_ERR_PROTOCOL;
  ct->own.token = zxid;
  ct->own.verified_on = lk_client_connection(lk__contender_client(ct));
  ct->round.parents_missing = 0;
  return 0;
}

void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid)
{
  if (lk__contender_take_reply(ct)) {
    ct->round.create_err = own_node_take_create_reply(ct, err, path, zxid);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_go(ct);
    else if (contender_is_creating(ct) && contender_needs_no_list(ct))
      contender_judge_create(ct, 0, NULL, 0);
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

static void own_node_set_requested(lk_contender *ct)
{
  ct->own.state = LK_OWN_REQUESTED;
  ct->own.before_zxid = ct->lease->evidence->seen_zxid;
}

void lk__contender_mark_created_by_group(lk_contender *ct)
{
  (void)lk__contender_count_request(ct, 0);
  own_node_set_requested(ct);
}

static int contender_send_create(lk_contender *ct)
{
  int flags = LK_EPHEMERAL | LK_SEQUENTIAL;

  if (lk__name_is_whole(ct->own.identity))
    flags = LK_EPHEMERAL;
  ct->own.path[ct->own.base_len] = '\0';
  int err = lk__contender_count_request(
      ct,
      lk_create2(lk__contender_client(ct), ct->own.path, lk__contender_data(ct),
                 ct->config->acl, flags, NULL, on_own_created, ct));

  if (err == 0)
    own_node_set_requested(ct);
  return err;
}

/* ---- list -------------------------------------------------------------- */

void lk__contender_parent_missing(lk_contender *ct)
{
  if (ct->round.parent_err != 0)
    lk__contender_request_failed(ct, ct->round.parent_err);
  else if (ct->round.parents_missing++ == MAX_PARENTS)
    lk__contender_fail(ct, LK_ERR_NO_NODE);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_NO_PARENT);
}

/* Create and list were answered, each in its own way. */
static void contender_judge_create(lk_contender *ct, int err,
                                   const lk_bytes *names, size_t count)
{
  if (ct->round.create_err == LK_ERR_NO_NODE)
    lk__contender_parent_missing(ct);
  else if (ct->round.create_err != 0)
    lk__contender_request_failed(ct, ct->round.create_err);
  else if (contender_needs_no_list(ct))
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else
    contender_judge_list(ct, err, names, count);
}

static void contender_judge_list(lk_contender *ct, int err,
                                 const lk_bytes *names, size_t count)
{
  if (err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_list(ct, names, count);
}

/* Their owners tell which of these is ours. */
static void contender_read_candidates(lk_contender *ct, const lk_bytes *names,
                                      size_t count)
{
  int err = lk__candidates_take(ct, names, count);

  if (err != 0)
    lk__contender_fail(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_CANDIDATES);
}

/* After a transaction: what is not listed now was not executed, and will not
 * be. */
static void contender_judge_recovery(lk_contender *ct, int err,
                                     const lk_bytes *names, size_t count)
{
  lk_bytes ours = {NULL, 0};

  if (ct->round.transaction_err != 0) {
    lk__contender_request_failed(ct, ct->round.transaction_err);
    return;
  }
  if (err == 0)
    ours = lk__contender_find_own_name(ct, names, count);
  if (err != 0 && err != LK_ERR_NO_NODE) {
    lk__contender_request_failed(ct, err);
  } else if (ours.at != NULL && ct->own.identity == LK_IDENTITY_DATA) {
    contender_read_candidates(ct, names, count);
  } else if (ours.at == NULL) {
    ct->own.state = LK_OWN_NONE;
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  } else {
    lk__contender_set_own_name(ct, ours);
    lk__contender_take_list(ct, names, count);
  }
}

/* A directory that is missing is empty. */
static void contender_judge_first_list(lk_contender *ct, int err,
                                       const lk_bytes *names, size_t count)
{
  if (err != 0 && err != LK_ERR_NO_NODE)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_first_list(ct, names, err == 0 ? count : 0);
}

static void contender_judge_names(lk_contender *ct, int err,
                                  const lk_bytes *names, size_t count)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST:
    contender_judge_first_list(ct, err, names, count);
    break;
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
    contender_judge_create(ct, err, names, count);
    break;
  case LK_CONTENDER_LISTING: contender_judge_list(ct, err, names, count); break;
  case LK_CONTENDER_RECOVERING:
    contender_judge_recovery(ct, err, names, count);
    break;
  case LK_CONTENDER_CLEANING_UP:
    lk__cleanup_listed(ct, err, names, count);
    break;
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_READING_CANDIDATES:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_WAITING:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
}

static void on_list_reply(lk_client *c, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    if (err != 0 && ct->wait.watches_directory)
      ct->wait.watch = NULL;
    if (!lk__contender_fail_if_too_big(ct, err))
      contender_judge_names(ct, err, names, count);
  }
  lk__contender_unref(ct);
}

static void on_directory_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  if (event->type != LK_EVENT_ENDED && ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  lk__contender_unref(ct);
}

/* Where the pred cannot be read, any change of the directory is notice. */
static int contender_send_list(lk_contender *ct)
{
  /* The same one is watched again, or has gone. */
  if (ct->wait.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->wait.watch, false);
  ct->wait.watch = NULL;
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_directory_event,
                  .watch_arg = ct,
                  .watch = &ct->wait.watch};

  if (lk__contender_is_single_node(ct))
    return lk__single_node_read(ct);
  if (ct->cleanup.too_big && ct->state == LK_CONTENDER_CLEANING_UP)
    return lk__contender_list_by_session(ct);
  return lk__contender_count_request(
      ct, lk_get_children(lk__contender_client(ct), ct->own.dir,
                          ct->wait.watches_directory ? &call : NULL,
                          on_list_reply, ct));
}

static void on_recovery_transaction(lk_client *c, int err,
                                    const lk_op_result *results, size_t count,
                                    void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.transaction_err =
        lk__check_result_of(err) == LK_CHECK_UNKNOWN ? err : 0;
  lk__contender_unref(ct);
}

/* ---- directories ------------------------------------------------------- */

/* Whether one of them exists does not matter, and who may not create it is
 * told so before it is looked whether it does: the create that follows
 * decides. The reason counts that was given for the last one that is not
 * there. */
static void on_parent_created(lk_client *c, int err, const char *path,
                              const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)path;
  (void)stat;
  if (err == LK_ERR_UNIMPLEMENTED)
    ct->lease->no_containers = true;
  if (lk__contender_take_reply(ct)) {
    if (err == 0 || err == LK_ERR_NODE_EXISTS || err == LK_ERR_UNIMPLEMENTED)
      ct->round.parent_err = 0;
    else if (err != LK_ERR_NO_NODE)
      ct->round.parent_err = err;
  }
  lk__contender_unref(ct);
}

static int contender_send_create_parent(lk_contender *ct, const char *path,
                                        lk_bytes data, int flags)
{
  return lk_create(lk__contender_client(ct), path, data, ct->config->parent_acl,
                   flags, NULL, on_parent_created, ct);
}

static int contender_create_parent(lk_contender *ct, const char *path,
                                   lk_bytes data)
{
  bool plain = ct->lease->no_containers || ct->config->persistent_parents;
  int err = contender_send_create_parent(ct, path, data,
                                         plain ? LK_PERSISTENT : LK_CONTAINER);

  if (err == LK_ERR_UNIMPLEMENTED) { /* it said so before, to somebody else */
    ct->lease->no_containers = true;
    err = contender_send_create_parent(ct, path, data, LK_PERSISTENT);
  }
  return lk__contender_count_request(ct, err);
}

int lk__contender_create_parents(lk_contender *ct)
{
  lk_bytes own = ct->config->dir_data;
  int err = 0;

  for (char *p = ct->own.dir; *p != '\0' && err == 0; p++) {
    if (*p != '/' || p == ct->own.dir)
      continue;
    *p = '\0';
    err = contender_create_parent(ct, ct->own.dir, lk_bytes_of("", 0));
    *p = '/';
  }
  if (err != 0 || *ct->own.dir == '\0')
    return err;
  return contender_create_parent(ct, ct->own.dir,
                                 own.at == NULL ? lk_bytes_of("", 0) : own);
}

/* ---- what states begin with -------------------------------------------- */

int lk__enter_listing_first(lk_contender *ct)
{
  return contender_send_list(ct);
}

int lk__enter_creating(lk_contender *ct)
{
  if (ct->downgrade.writer != NULL && lk__contender_holds(ct->downgrade.writer))
    return lk__enter_creating_downgraded(ct);
  if (ct->own.state == LK_OWN_REQUESTED)
    return contender_send_list(ct);
  ct->downgrade.writer_token = 0;
  ct->round.parent_err = 0;
  int err = contender_send_create(ct);

  return err != 0 || contender_needs_no_list(ct) ? err
                                                 : contender_send_list(ct);
}

int lk__enter_creating_parents(lk_contender *ct)
{
  int err = lk__contender_create_parents(ct);

  return err != 0 ? err : lk__enter_creating(ct);
}

/* A transaction goes first, whatever it checks: when it is committed, a create
 * of the old connection was proposed before it, and is seen, or is refused from
 * now on. A sync would not do: a deposed leader answers that by itself. */
int lk__enter_recovering(lk_contender *ct)
{
  lk_op check = lk_op_check(*ct->own.dir == '\0' ? "/" : ct->own.dir, -1);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), &check, 1, NULL,
                   on_recovery_transaction, ct));

  return err != 0 ? err : contender_send_list(ct);
}

/* It may be granted by what is asked for, rather than behind others. */
static bool contender_list_may_grant(const lk_contender *ct)
{
  return ct->role->counts || ct->predecessors.count <= 1;
}

static void on_check_before_list(lk_client *c, int err,
                                 const lk_op_result *results, size_t count,
                                 void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.checked = lk__check_result_of(err) != LK_CHECK_UNKNOWN;
  lk__contender_unref(ct);
}

/* The check of own that a grant would need goes in front of the list; whether
 * own is there the list says as well. */
int lk__enter_listing(lk_contender *ct)
{
  int64_t now = lk_client_clock(lk__contender_client(ct));
  int err = 0;

  ct->round.checked = false;
  if (contender_list_may_grant(ct) && !lk__contender_lease_suffices(ct, now))
    err = lk__contender_check_own(ct, on_check_before_list);
  return err != 0 ? err : contender_send_list(ct);
}
