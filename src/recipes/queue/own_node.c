/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/own_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error_meaning.h"
#include "recipes/call.h"
#include "recipes/create_with_czxid.h"
#include "recipes/names.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/queue.h"

/* ---- name and data ------------------------------------------------------- */

static size_t own_node_path_base_len(lk_node_identity identity, const char *dir,
                                     const char *name)
{
  return strlen(dir) + 1 + lk__name_unique_part_len(identity) + strlen(name);
}

/* The length of `data`, a space and the UUID; 0 if the UUID is in the name. */
static size_t own_node_data_len(lk_node_identity identity, lk_bytes data)
{
  size_t space_len = data.len > 0 ? 1 : 0;

  return identity == LK_IDENTITY_DATA ? data.len + space_len + LK_UUID_LEN : 0;
}

size_t lk__own_node_size(lk_node_identity identity, const char *dir,
                         const char *name, lk_bytes data)
{
  size_t dir_size = strlen(dir) + 1;
  size_t path_size =
      own_node_path_base_len(identity, dir, name) + LK_NUMBER_MAX_LEN + 1;

  return dir_size + path_size + own_node_data_len(identity, data);
}

static void own_node_set_data(lk_own_node *own, lk_bytes data)
{
  size_t path_size = own->path_base_len + LK_NUMBER_MAX_LEN + 1;

  own->data = own->path + path_size;
  own->data_len = own_node_data_len(own->identity, data);
  if (data.len == 0)
    return;
  memcpy(own->data, data.at, data.len);
  own->data[data.len] = ' ';
}

void lk__own_node_init(lk_own_node *own, char *memory,
                       lk_node_identity identity, const char *dir,
                       const char *name, lk_bytes data)
{
  size_t dir_len = strlen(dir);

  own->identity = identity;
  own->path_base_len = own_node_path_base_len(identity, dir, name);
  own->dir = memory;
  own->path = own->dir + dir_len + 1;
  memcpy(own->dir, dir, dir_len + 1);
  memcpy(own->path, dir, dir_len);
  own->path[dir_len] = '/';
  /* The unique part, between the slash and `name`, is written later. */
  memcpy(own->path + own->path_base_len - strlen(name), name, strlen(name) + 1);
  if (identity == LK_IDENTITY_DATA)
    own_node_set_data(own, data);
}

/* Make a new unique part from 16 random bytes, so that the next create makes a
   node of another name or with other data. */
static void own_node_set_unique_part(lk_own_node *own,
                                     const unsigned char random[16])
{
  /* Cut off the number of an earlier node. */
  own->path[own->path_base_len] = '\0';
  lk__name_write_unique_part(own->identity, own->unique_part, random);
  if (own->identity == LK_IDENTITY_DATA)
    memcpy(own->data + own->data_len - LK_UUID_LEN, own->unique_part,
           LK_UUID_LEN);
  else
    memcpy(lk__own_node_name(own), own->unique_part, strlen(own->unique_part));
}

lk_bytes lk__own_node_base(const lk_own_node *own)
{
  return lk_bytes_of(lk__own_node_name(own),
                     own->path_base_len - strlen(own->dir) - 1);
}

void lk__own_node_set_number(lk_own_node *own, int64_t number)
{
  snprintf(own->path + own->path_base_len, LK_NUMBER_MAX_LEN + 1, "%010" PRId64,
           number);
}

static bool name_equals_own_base(const lk_own_node *own, lk_bytes name)
{
  return lk__names_are_equal(name, lk__own_node_base(own));
}

lk_bytes lk__own_node_find(const lk_own_node *own, const lk_bytes *names,
                           size_t count)
{
  if (!lk__identity_is_unnumbered(own->identity))
    return lk__names_find_own(names, count, lk__own_node_base(own));
  for (size_t i = 0; i < count; i++) {
    if (name_equals_own_base(own, names[i]))
      return names[i];
  }
  return lk_bytes_of(NULL, 0);
}

/* ---- whether the node exists --------------------------------------------- */

/* The create of the node was sent. `seen_zxid` is the largest zxid that was
   seen before. */
static void own_node_requested(lk_own_node *own, uint64_t seen_zxid)
{
  own->state = LK_OWN_REQUESTED;
  own->requested_after_zxid = seen_zxid;
}

bool lk__own_node_accept_name(lk_own_node *own, lk_bytes name)
{
  char *at = lk__own_node_name(own);
  int64_t number;
  bool name_fits =
      lk__identity_is_unnumbered(own->identity)
          ? name_equals_own_base(own, name)
          : lk__name_has_base(name, lk__own_node_base(own), &number);

  if (!name_fits)
    return false;
  memcpy(at, name.at, name.len);
  at[name.len] = '\0';
  own->state = LK_OWN_CREATED;
  return true;
}

void lk__own_node_set_found(lk_own_node *own, uint64_t token,
                            uint64_t connection)
{
  own->state = LK_OWN_CREATED;
  own->token = token;
  own->verified_on = connection;
}

/* The create completed with success and `path`. Returns 0, or LK_ERR_PROTOCOL
   if `path` is not the requested path with a sequence number. */
static int own_node_created(lk_own_node *own, const char *path, uint64_t token,
                            uint64_t connection)
{
  size_t dir_len = strlen(own->dir);

  if (path == NULL || strncmp(path, own->dir, dir_len) != 0 ||
      path[dir_len] != '/' ||
      !lk__own_node_accept_name(own, lk_text(path + dir_len + 1))) {
    own->state = LK_OWN_IN_DOUBT;
    return LK_ERR_PROTOCOL;
  }
  lk__own_node_set_found(own, token, connection);
  return 0;
}

static lk_own_state own_state_after_failed_create(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  if (err == LK_ERR_SESSION_EXPIRED) /* the node was deleted with the session */
    return LK_OWN_NONE;
  return outcome == LK_OUTCOME_IN_DOUBT || outcome == LK_OUTCOME_ABANDONED
             ? LK_OWN_IN_DOUBT
             : LK_OWN_NONE;
}

/* The create completed with the error `err`. */
static void own_node_create_failed(lk_own_node *own, int err)
{
  own->state = own_state_after_failed_create(err);
}

/* The node does not exist any more: clear its state, also the token. */
static void own_node_clear(lk_own_node *own)
{
  own->state = LK_OWN_NONE;
  own->token = 0;
  own->unreadable = false;
}

/* Unlike own_node_clear(), this keeps the token and `unreadable`. The next
 * create sets the token anew. */
void lk__own_node_set_missing(lk_own_node *own)
{
  own->state = LK_OWN_NONE;
}

bool lk__own_node_needs_verification(const lk_own_node *own,
                                     uint64_t connection)
{
  return lk__identity_shares_names(own->identity) &&
         own->verified_on != connection;
}

/* ---- the request of the create ------------------------------------------- */

static void own_node_draw_unique_part(lk_contender *ct)
{
  unsigned char random[16];

  if (ct->own.identity == LK_IDENTITY_NONE)
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  own_node_set_unique_part(&ct->own, random);
}

void lk__contender_prepare_create(lk_contender *ct)
{
  ct->wait.watches_directory = ct->role->is_permit;
  own_node_draw_unique_part(ct);
}

void lk__contender_mark_created_jointly(lk_contender *ct)
{
  const int sent = 0;

  (void)lk__contender_count_request(ct, sent);
  own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
}

static void on_own_created(lk_client *c, int err, const char *path,
                           const lk_stat *stat, void *arg)
{
  lk__contender_own_created(arg, err, path,
                            (uint64_t)lk__created_czxid(c, err, stat));
}

static int contender_send_create(lk_contender *ct)
{
  int flags = LK_EPHEMERAL | LK_SEQUENTIAL;

  if (lk__identity_is_unnumbered(ct->own.identity))
    flags = LK_EPHEMERAL;
  /* Cut off the number of an earlier node: the server appends a new one. */
  ct->own.path[ct->own.path_base_len] = '\0';
  int err = lk__contender_count_request(
      ct, lk__create_with_czxid(lk__contender_client(ct), ct->own.path,
                                lk__contender_data(ct), ct->config->acl, flags,
                                on_own_created, ct));

  if (err == 0)
    own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
  return err;
}

/* ---- the directories above the node -------------------------------------- */

/* How many times the directory may be missing before the contender fails. */
enum { MAX_PARENTS_MISSING = 10 };

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

/* ---- downgrades ---------------------------------------------------------- */

/* A downgrade creates a read node for an owner that holds the write side. As in
 * Curator 5.5 and later, the read node gets the number of the write node, so
 * all waiters behind the writer also wait for the reader. A transaction checks
 * that the write node exists and creates the read node. While the write node
 * exists no other client holds, so success grants the read side without a wait.
 */

void lk__downgrade_set_writer(lk_contender *ct, lk_contender *writer)
{
  lk__contender_ref(writer);
  ct->downgrade.writer = writer;
}

/* The write node does not exist, so the reader has to queue like any other. The
 * writer is notified first. Its callback may cancel the reader, so the state of
 * the reader is checked again. */
static void downgrade_writer_is_missing(lk_contender *ct)
{
  lk__contender_own_checked(ct->downgrade.writer, LK_CHECK_MISSING);
  if (ct->state == LK_CONTENDER_CREATING)
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
}

static void downgrade_judge(lk_contender *ct, int err)
{
  if (err == 0)
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  else if (err == LK_ERR_NO_NODE)
    downgrade_writer_is_missing(ct);
  else
    lk__contender_request_failed(ct, err);
}

static void on_downgraded_created(lk_client *c, int err,
                                  const lk_op_result *results, size_t count,
                                  void *arg)
{
  lk_contender *ct = arg;
  const lk_reply *reply = lk_client_reply(c);

  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct)) {
    uint64_t czxid = reply == NULL ? 0 : (uint64_t)reply->zxid;

    if (err == 0)
      lk__own_node_set_found(&ct->own, czxid, lk__contender_connection(ct));
    else
      own_node_create_failed(&ct->own, err);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_continue(ct);
    else
      downgrade_judge(ct, err);
  }
  lk__contender_unref(ct);
}

static const char *own_node_number_text(const lk_contender *ct)
{
  return ct->own.path + ct->own.path_base_len;
}

/* Create the own node. 0, or why the request was refused. */
static int downgrade_send_create(lk_contender *ct)
{
  enum { ANY_VERSION = -1, COUNT = 2 };
  const lk_contender *writer = ct->downgrade.writer;
  lk_op ops[COUNT];

  snprintf(ct->own.path + ct->own.path_base_len, LK_NUMBER_MAX_LEN + 1, "%s",
           own_node_number_text(writer));
  ops[0] = lk_op_check(writer->own.path, ANY_VERSION);
  ops[1] = lk_op_create(ct->own.path, ct->config->data, ct->config->acl,
                        LK_EPHEMERAL);
  int err = lk__contender_count_request(
      ct, lk_multi(lk__contender_client(ct), ops, COUNT, LK_NO_OPTIONS,
                   on_downgraded_created, ct));

  if (err == 0) {
    own_node_requested(&ct->own, ct->lease->evidence->seen_zxid);
    ct->downgrade.writer_token = lk__contender_token(writer);
  }
  return err;
}

/* ---- CREATING, CREATING_PARENTS ------------------------------------------ */

/* Whether the contender holds as soon as its node exists: a permit without a
    limit. */
static inline bool contender_needs_no_list(const lk_contender *ct)
{
  return ct->role->is_permit && ct->config->limit == NULL;
}

int lk__contender_enter_creating(lk_contender *ct)
{
  if (ct->downgrade.writer != NULL && lk__contender_holds(ct->downgrade.writer))
    return downgrade_send_create(ct);
  /* A joint acquisition has sent the create. */
  if (ct->own.state == LK_OWN_REQUESTED)
    return ct->machine->request_view(ct);
  ct->downgrade.writer_token = 0;
  ct->round.parent_err = 0;
  int err = contender_send_create(ct);

  if (err == 0 && !contender_needs_no_list(ct))
    err = ct->machine->request_view(ct);
  return err;
}

int lk__contender_enter_creating_parents(lk_contender *ct)
{
  int err = lk__contender_create_parents(ct);

  return err != 0 ? err : lk__contender_enter_creating(ct);
}

static bool contender_is_creating(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_CREATING ||
         ct->state == LK_CONTENDER_CREATING_PARENTS;
}

static int own_node_take_create_reply(lk_contender *ct, int err,
                                      const char *path, uint64_t zxid)
{
  if (err != 0) {
    own_node_create_failed(&ct->own, err);
    return err;
  }
  err = own_node_created(&ct->own, path, zxid, lk__contender_connection(ct));
  if (err == 0)
    ct->round.parents_missing = 0;
  return err;
}

/* The create of the own node and the list behind it completed. `err` is the
   error of the list; that of the create is in ct->round. */
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
    lk__contender_judge_list(ct, err, names, count);
}

static void contender_judge_create_without_list(lk_contender *ct)
{
  const lk_bytes *no_names = NULL;

  contender_judge_create(ct, 0, no_names, 0);
}

void lk__contender_own_created(lk_contender *ct, int err, const char *path,
                               uint64_t zxid)
{
  if (lk__contender_take_reply(ct)) {
    ct->round.create_err = own_node_take_create_reply(ct, err, path, zxid);
    if (ct->state == LK_CONTENDER_CLEANING_UP)
      lk__cleanup_continue(ct);
    else if (contender_is_creating(ct) && contender_needs_no_list(ct))
      contender_judge_create_without_list(ct);
  }
  lk__contender_unref(ct);
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
    .listed = contender_judge_create};

const lk_contender_rules lk__rules_creating_parents = {
    .next = STEPS_OF_CREATING,
    .enter = lk__contender_enter_creating_parents,
    .listed = contender_judge_create};

/* ---- reads and the watch ------------------------------------------------- */

/* The access list of the node forbids reads. */
static inline void own_node_set_unreadable(lk_own_node *own)
{
  own->unreadable = true;
}

void lk__contender_own_unreadable(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_UNWATCHED};

  if (ct->own.unreadable)
    return;
  own_node_set_unreadable(&ct->own);
  lk__contender_notify(ct, &notice);
}

/* Take the token from a read of the own path. Returns LK_ERR_NO_NODE if the
 * node there is not the own one: it belongs to another session or contender. If
 * contenders share names, the token tells their nodes apart. */
static int own_node_take_stat(lk_contender *ct, const lk_stat *stat)
{
  uint64_t connection = lk__contender_connection(ct);
  lk_own_node *own = &ct->own;

  if (stat->ephemeral_owner != lk_client_session(lk__contender_client(ct)).id)
    return LK_ERR_NO_NODE;
  if (lk__identity_shares_names(own->identity) && own->token != 0 &&
      own->token != (uint64_t)stat->czxid)
    return LK_ERR_NO_NODE;
  lk__own_node_watched(own, connection);
  lk__own_node_set_found(own, (uint64_t)stat->czxid, connection);
  return 0;
}

void lk__contender_note_revocation(lk_contender *ct, const lk_bytes *data)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};

  if (ct->holding.revoked || !lk__is_revocation(*data))
    return;
  ct->holding.revoked = true;
  if (lk__contender_holds(ct))
    lk__contender_notify(ct, &notice);
}

/* The watch on the node has fired or was cancelled. */
static inline void own_node_unwatched(lk_own_node *own)
{
  own->watch = NULL;
  own->watched_on = 0;
  own->verified_on = 0;
}

static void on_own_read(lk_client *c, int err, const lk_bytes *data,
                        const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct)) {
    if (err == 0)
      err = own_node_take_stat(ct, stat);
    else if (err == LK_ERR_NO_AUTH)
      ct->own.watch = NULL; /* a read that fails sets no watch */
    else
      own_node_unwatched(&ct->own);
    ct->round.own_err = err;
    if (err == LK_ERR_NO_AUTH)
      lk__contender_own_unreadable(ct);
    if (lk__contender_holds(ct))
      lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
    else
      lk__contender_continue_if_all_read(ct);
    if (err == 0)
      lk__contender_note_revocation(ct, data);
  }
  lk__contender_unref(ct);
}

static void on_own_event(lk_client *c, lk_watch *w, const lk_event *event,
                         void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  lk__contender_ref(ct);
  own_node_unwatched(&ct->own);
  if (ct->machine->on_foreign_node != NULL && ct->own.state != LK_OWN_CREATED) {
    ct->machine->on_foreign_node(ct, event->type);
  } else if (event->type == LK_EVENT_DELETED) {
    if (lk__contender_holds(ct))
      lk__contender_lose(ct, LK_ERR_NO_NODE);
    else
      lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (lk__lease_is_online(ct->lease)) {
    /* The data changed, or the watch has ended without its connection. */
    int err = lk__contender_watch_own(ct);

    /* A holder does not fail: the next heartbeat sets its watch again. */
    if (err != 0 && !lk__contender_holds(ct))
      lk__contender_fail(ct, err);
  }
  lk__contender_unref(ct);
}

int lk__contender_read_own(lk_contender *ct, lk_get_cb done)
{
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_own_event,
                  .watch_arg = ct,
                  .watch = &ct->own.watch};

  return lk__contender_count_request(
      ct, lk_get(lk__contender_client(ct), ct->own.path, &call, done, ct));
}

int lk__contender_watch_own(lk_contender *ct)
{
  return lk__contender_read_own(ct, on_own_read);
}

int lk__contender_ensure_own_watch(lk_contender *ct)
{
  if (ct->own.watch != NULL || ct->own.unreadable)
    return 0;
  return lk__contender_watch_own(ct);
}

/* ---- checks -------------------------------------------------------------- */

lk_check_result lk__check_result_of(int err)
{
  switch (err) {
  case 0:
  case LK_ERR_BAD_VERSION:
  case LK_ERR_NO_AUTH: return LK_CHECK_EXISTS;
  case LK_ERR_NO_NODE: return LK_CHECK_MISSING;
  default: return LK_CHECK_UNKNOWN;
  }
}

lk_check_result lk__contender_check_result(const lk_contender *ct, int err)
{
  lk_check_result result = lk__check_result_of(err);

  return result == LK_CHECK_EXISTS && !ct->machine->check_proves_own(ct)
             ? LK_CHECK_UNKNOWN
             : result;
}

int lk__contender_check_own(lk_contender *ct, lk_multi_cb done)
{
  enum { ANY_VERSION = -1 };
  lk_op check = lk_op_check(ct->own.path, ANY_VERSION);

  return lk__contender_count_request(
      ct,
      lk_multi(lk__contender_client(ct), &check, 1, LK_NO_OPTIONS, done, ct));
}

/* ---- a node that does not exist any more --------------------------------- */

/* A contender fails when its node was deleted by others this many times. */
enum { MAX_TIMES_MISSING = 3 };

void lk__contender_forget_own(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  own_node_clear(&ct->own);
  ct->downgrade.writer_token = 0;
  ct->round.checked = false;
  ct->holding.revoked = false;
  ct->wait.reported_position = 0;
}

void lk__contender_own_missing(lk_contender *ct, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  lk__contender_forget_own(ct);
  ct->own.times_missing++;
  if (ct->own.times_missing == MAX_TIMES_MISSING) {
    lk__contender_fail(ct, err);
    return;
  }
  lk__contender_prepare_create(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  lk__contender_notify(ct, &notice);
}
