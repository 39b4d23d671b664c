/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"

enum { MAX_PARENTS = 10 };

static void judge_created(lk_contender *ct, int err, const lk_bytes *names,
                          size_t count);
static void judge_list(lk_contender *ct, int err, const lk_bytes *names,
                       size_t count);

static bool is_creating(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_CREATING ||
         ct->state == LK_CONTENDER_CREATING_PARENTS;
}

/* A permit that does not count the others: to be there is enough. */
static bool is_unlisted(const lk_contender *ct)
{
  return ct->role->counts && ct->config->limit == NULL;
}

/* ---- create ------------------------------------------------------------ */

static bool is_base(const lk_contender *ct, lk_bytes name)
{
  lk_bytes base = lk__contender_name_base(ct);

  return name.len == base.len && memcmp(name.at, base.at, base.len) == 0;
}

lk_bytes lk__contender_find_own_name(const lk_contender *ct,
                                     const lk_bytes *names, size_t count)
{
  if (!lk__name_is_whole(ct->unique))
    return lk__names_find_own(names, count, lk__contender_name_base(ct));
  for (size_t i = 0; i < count; i++) {
    if (is_base(ct, names[i]))
      return names[i];
  }
  return lk_bytes_of(NULL, 0);
}

bool lk__contender_set_own_name(lk_contender *ct, lk_bytes name)
{
  char *at = lk__contender_own_name(ct);
  int64_t suffix;

  if (lk__name_is_whole(ct->unique)
          ? !is_base(ct, name)
          : !lk__name_is_ours(name, lk__contender_name_base(ct), &suffix))
    return false;
  memcpy(at, name.at, name.len);
  at[name.len] = '\0';
  ct->own = LK_OWN_CREATED;
  return true;
}

lk_own_state lk__own_state_after_create(int err)
{
  switch (err) {
  case LK_ERR_NOT_SENT: return LK_OWN_NONE;
  case LK_ERR_CONNECTION_LOSS:
  case LK_ERR_OPERATION_TIMEOUT: return LK_OWN_IN_DOUBT;
  default: return err > -1000 ? LK_OWN_NONE : LK_OWN_IN_DOUBT;
  }
}

static int take_created(lk_contender *ct, int err, const char *path,
                        uint64_t zxid)
{
  size_t dir_len = strlen(ct->dir);

  if (err != 0) {
    ct->own = lk__own_state_after_create(err);
    return err;
  }
  ct->own = LK_OWN_IN_DOUBT;
  if (path == NULL || strncmp(path, ct->dir, dir_len) != 0 ||
      path[dir_len] != '/' ||
      !lk__contender_set_own_name(ct, lk_text(path + dir_len + 1)))
    return LK_ERR_PROTOCOL;
  ct->token = zxid;
  ct->seen_on = lk_client_connection(lk__contender_client(ct));
  ct->parents = 0;
  return 0;
}

void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid)
{
  if (lk__contender_take_reply(ct)) {
    ct->create_err = take_created(ct, err, path, zxid);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_go(ct);
    else if (is_creating(ct) && is_unlisted(ct))
      judge_created(ct, 0, NULL, 0);
  }
  lk__contender_unref(ct);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  lk__contender_own_created(arg, err, path,
                            stat == NULL ? 0 : (uint64_t)stat->czxid);
}

static void asked(lk_contender *ct)
{
  ct->own = LK_OWN_REQUESTED;
  ct->older = ct->lease->seen_zxid;
}

void lk__contender_mark_created_by_group(lk_contender *ct)
{
  (void)lk__contender_count_request(ct, 0);
  asked(ct);
}

static int ask_create(lk_contender *ct)
{
  int flags = LK_EPHEMERAL | LK_SEQUENTIAL;

  if (lk__name_is_whole(ct->unique))
    flags = LK_EPHEMERAL;
  ct->node[ct->base_len] = '\0';
  int err = lk__contender_count_request(
      ct, lk_create2(lk__contender_client(ct), ct->node, lk__contender_data(ct),
                     ct->config->acl, flags, NULL, on_created, ct));

  if (err == 0)
    asked(ct);
  return err;
}

/* ---- list -------------------------------------------------------------- */

void lk__contender_parent_missing(lk_contender *ct)
{
  if (ct->parent_err != 0)
    lk__contender_request_failed(ct, ct->parent_err);
  else if (ct->parents++ == MAX_PARENTS)
    lk__contender_fail(ct, LK_ERR_NO_NODE);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_NO_PARENT);
}

/* Create and list were answered, each in its own way. */
static void judge_created(lk_contender *ct, int err, const lk_bytes *names,
                          size_t count)
{
  if (ct->create_err == LK_ERR_NO_NODE)
    lk__contender_parent_missing(ct);
  else if (ct->create_err != 0)
    lk__contender_request_failed(ct, ct->create_err);
  else if (is_unlisted(ct))
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else
    judge_list(ct, err, names, count);
}

static void judge_list(lk_contender *ct, int err, const lk_bytes *names,
                       size_t count)
{
  if (err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_list(ct, names, count);
}

/* Their owners tell which of these is ours. */
static void look_closer(lk_contender *ct, const lk_bytes *names, size_t count)
{
  int err = lk__candidates_take(ct, names, count);

  if (err != 0)
    lk__contender_fail(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_CANDIDATES);
}

/* After a transaction: what is not listed now was not executed, and will not
 * be. */
static void judge_looked(lk_contender *ct, int err, const lk_bytes *names,
                         size_t count)
{
  lk_bytes ours = {NULL, 0};

  if (ct->proof_err != 0) {
    lk__contender_request_failed(ct, ct->proof_err);
    return;
  }
  if (err == 0)
    ours = lk__contender_find_own_name(ct, names, count);
  if (err != 0 && err != LK_ERR_NO_NODE) {
    lk__contender_request_failed(ct, err);
  } else if (ours.at != NULL && ct->unique == LK_IDENTITY_DATA) {
    look_closer(ct, names, count);
  } else if (ours.at == NULL) {
    ct->own = LK_OWN_NONE;
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  } else {
    lk__contender_set_own_name(ct, ours);
    lk__contender_take_list(ct, names, count);
  }
}

/* A directory that is missing is empty. */
static void judge_peeked(lk_contender *ct, int err, const lk_bytes *names,
                         size_t count)
{
  if (err != 0 && err != LK_ERR_NO_NODE)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_first_list(ct, names, err == 0 ? count : 0);
}

static void judge_names(lk_contender *ct, int err, const lk_bytes *names,
                        size_t count)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST: judge_peeked(ct, err, names, count); break;
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
    judge_created(ct, err, names, count);
    break;
  case LK_CONTENDER_LISTING: judge_list(ct, err, names, count); break;
  case LK_CONTENDER_RECOVERING: judge_looked(ct, err, names, count); break;
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

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    if (err != 0 && ct->by_children)
      ct->pred_watch = NULL;
    if (!lk__contender_fail_if_too_big(ct, err))
      judge_names(ct, err, names, count);
  }
  lk__contender_unref(ct);
}

static void on_children(lk_client *c, lk_watch *w, const lk_event *event,
                        void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  ct->pred_watch = NULL;
  if (event->type != LK_EVENT_ENDED && ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  lk__contender_unref(ct);
}

/* Where the pred cannot be read, any change of the directory is news. */
static int ask_names(lk_contender *ct)
{
  /* The same one is watched again, or has gone. */
  if (ct->pred_watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->pred_watch, false);
  ct->pred_watch = NULL;
  lk_call call = {.size = sizeof call,
                  .until_break = true,
                  .on_event = on_children,
                  .watch_arg = ct,
                  .watch = &ct->pred_watch};

  if (lk__contender_is_single_node(ct))
    return lk__single_node_read(ct);
  if (ct->too_long && ct->state == LK_CONTENDER_CLEANING_UP)
    return lk__contender_list_by_session(ct);
  return lk__contender_count_request(
      ct, lk_children(lk__contender_client(ct), ct->dir,
                      ct->by_children ? &call : NULL, on_names, ct));
}

static void on_proven(lk_client *c, int err, const lk_op_result *results,
                      size_t count, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->proof_err = lk__check_result_of(err) == LK_CHECK_UNKNOWN ? err : 0;
  lk__contender_unref(ct);
}

/* ---- directories ------------------------------------------------------- */

/* Whether one of them exists does not matter, and who may not create it is
 * told so before it is looked whether it does: the create that follows
 * decides. The reason counts that was given for the last one that is not
 * there. */
static void on_parent(lk_client *c, int err, const char *path,
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
      ct->parent_err = 0;
    else if (err != LK_ERR_NO_NODE)
      ct->parent_err = err;
  }
  lk__contender_unref(ct);
}

static int make_parent(lk_contender *ct, const char *path, lk_bytes data,
                       int flags)
{
  return lk_create(lk__contender_client(ct), path, data, ct->config->parent_acl,
                   flags, NULL, on_parent, ct);
}

static int ask_parent(lk_contender *ct, const char *path, lk_bytes data)
{
  bool plain = ct->lease->no_containers || ct->config->persistent_parents;
  int err = make_parent(ct, path, data, plain ? LK_PERSISTENT : LK_CONTAINER);

  if (err == LK_ERR_UNIMPLEMENTED) { /* it said so before, to somebody else */
    ct->lease->no_containers = true;
    err = make_parent(ct, path, data, LK_PERSISTENT);
  }
  return lk__contender_count_request(ct, err);
}

int lk__contender_create_parents(lk_contender *ct)
{
  lk_bytes own = ct->config->dir_data;
  int err = 0;

  for (char *p = ct->dir; *p != '\0' && err == 0; p++) {
    if (*p != '/' || p == ct->dir)
      continue;
    *p = '\0';
    err = ask_parent(ct, ct->dir, lk_bytes_of("", 0));
    *p = '/';
  }
  if (err != 0 || *ct->dir == '\0')
    return err;
  return ask_parent(ct, ct->dir, own.at == NULL ? lk_bytes_of("", 0) : own);
}

/* ---- what states begin with -------------------------------------------- */

int lk__enter_listing_first(lk_contender *ct)
{
  return ask_names(ct);
}

int lk__enter_creating(lk_contender *ct)
{
  if (ct->beside != NULL && lk__contender_holds(ct->beside))
    return lk__enter_creating_downgraded(ct);
  if (ct->own == LK_OWN_REQUESTED)
    return ask_names(ct);
  ct->lent = 0;
  ct->parent_err = 0;
  int err = ask_create(ct);

  return err != 0 || is_unlisted(ct) ? err : ask_names(ct);
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
  lk_op check = lk_op_check(*ct->dir == '\0' ? "/" : ct->dir, -1);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), &check, 1, NULL, on_proven, ct));

  return err != 0 ? err : ask_names(ct);
}

/* It may be granted by what is asked for, rather than behind others. */
static bool may_be_first(const lk_contender *ct)
{
  return ct->role->counts || ct->ahead.count <= 1;
}

static void on_checked(lk_client *c, int err, const lk_op_result *results,
                       size_t count, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->checked = lk__check_result_of(err) != LK_CHECK_UNKNOWN;
  lk__contender_unref(ct);
}

/* The check of own that a grant would need goes in front of the list; whether
 * own is there the list says as well. */
int lk__enter_listing(lk_contender *ct)
{
  int64_t now = lk_client_clock(lk__contender_client(ct));
  int err = 0;

  ct->checked = false;
  if (may_be_first(ct) && !lk__contender_lease_suffices(ct, now))
    err = lk__contender_check_own(ct, on_checked);
  return err != 0 ? err : ask_names(ct);
}
