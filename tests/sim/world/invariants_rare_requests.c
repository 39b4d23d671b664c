/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "sim/world/conditions.h"

#include <string.h>

/* Checks replies to rare requesters against the change log. The functions
 * wrong_… return what is wrong; NULL: nothing. */

enum {
  SUFFIX_DIGITS = 10, /* of a sequence number */
  ANY_VERSION = -1
};

static bool same_text(const char *text, lk_bytes b)
{
  return b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

static bool is_readable(const sim_change *c)
{
  return (c->perms & LK_PERM_READ) != 0;
}

static const sim_change *parent_of(const sim_checker *checker, const char *path,
                                   int64_t zxid)
{
  char dir[SIM_CHANGE_PATH] = "";
  const char *end = strrchr(path, '/');

  memcpy(dir, path, (size_t)(end - path));
  return sim_change_log_at(&checker->change_log, dir, zxid);
}

static bool same_stat(const sim_change *c, const lk_stat *s)
{
  return s->czxid == c->stat.czxid && s->mzxid == c->stat.mzxid &&
         s->version == c->stat.version && s->aversion == c->stat.aversion &&
         s->ephemeral_owner == c->stat.ephemeral_owner &&
         s->data_length == c->stat.data_length;
}

/* ---- reads -------------------------------------------------------------- */

/* The error that a server must return for a read of a node. */
static int err_of_read(const sim_change *c)
{
  if (c == NULL)
    return LK_ERR_NO_NODE;
  return is_readable(c) ? 0 : LK_ERR_NO_AUTH;
}

/* The names must be exactly those of the children. */
static const char *wrong_names(const sim_checker *checker, const char *path,
                               const lk_bytes *names, size_t count,
                               int64_t zxid)
{
  char child[SIM_CHANGE_PATH];

  for (size_t i = 0; i < count; i++) {
    size_t len = strlen(path) + strlen("/") + names[i].len;

    if (len >= sizeof child)
      return "a name that is too long";
    snprintf(child, sizeof child, "%s/%.*s", path, (int)names[i].len,
             (const char *)names[i].at);
    if (sim_change_log_at(&checker->change_log, child, zxid) == NULL)
      return "the name of a node that was not there";
    for (size_t k = 0; k < i; k++) {
      if (names[k].len == names[i].len &&
          memcmp(names[k].at, names[i].at, names[i].len) == 0)
        return "a name twice";
    }
  }
  return count ==
                 sim_change_log_count_children(&checker->change_log, path, zxid)
             ? NULL
             : "another number of names";
}

enum { TYPE_OF_ERROR = -1 }; /* lk_read_result.type of a read that failed */

/* Checks the result `r` of the read `e` of a multiRead. */
static const char *wrong_read_result(const sim_checker *checker,
                                     const sim_request_op *e,
                                     const lk_read_result *r, int64_t zxid)
{
  const sim_change *c = sim_change_log_at(&checker->change_log, e->path, zxid);

  if (r->err != err_of_read(c))
    return "another error";
  if (r->err != 0)
    return r->type == TYPE_OF_ERROR ? NULL : "an error with another label";
  if (r->type != e->type)
    return "another label";
  if (e->type == LK_READ_GET_CHILDREN)
    return wrong_names(checker, e->path, r->names, r->count, zxid);
  if (r->stat == NULL || !same_stat(c, r->stat))
    return "another Stat";
  return same_text(c->data, r->data) ? NULL : "other data";
}

/* All results of a multiRead are of one zxid. */
void sim_multi_read(sim_checker *checker, const sim_fact *f)
{
  const sim_request *r = f->request;
  const lk_reply *reply = lk_client_reply(r->process->client);

  if (r->verb != SIM_READS || reply == NULL || f->result->err != 0)
    return;
  if (f->result->count != r->nops)
    sim_violated(checker, "request %" PRIu64 " brings %zu parts of %zu",
                 r->number, f->result->count, r->nops);
  for (size_t i = 0; i < r->nops && i < f->result->count; i++) {
    const char *wrong = wrong_read_result(checker, &r->ops[i],
                                          &f->result->read[i], reply->zxid);

    if (wrong != NULL)
      sim_violated(checker, "request %" PRIu64 " brings %s of %s at 0x%" PRIx64,
                   r->number, wrong, r->ops[i].path, (uint64_t)reply->zxid);
  }
}

/* ---- other requests ----------------------------------------------------- */

static const char *wrong_owned(const sim_checker *checker, const sim_request *r,
                               const sim_result *res, int64_t zxid)
{
  int64_t session = lk_client_session(r->process->client).id;
  size_t count = 0;

  for (size_t i = 0; i < res->count; i++) {
    char path[SIM_CHANGE_PATH];

    if (res->names[i].len >= sizeof path)
      return "a path that is too long";
    snprintf(path, sizeof path, "%.*s", (int)res->names[i].len,
             (const char *)res->names[i].at);
    const sim_change *c = sim_change_log_at(&checker->change_log, path, zxid);

    if (c == NULL || c->stat.ephemeral_owner != session)
      return "the path of a node that is not its session's";
  }
  if (session == 0) /* a client without a session on a read-only server */
    return res->count == 0 ? NULL : "paths without a session";
  for (size_t i = 0; i < sim_change_log_first_after(&checker->change_log, zxid);
       i++) {
    const sim_change *c = &checker->change_log.changes[i];
    bool is_below_path = strncmp(c->path, r->path, strlen(r->path)) == 0;

    if (!is_below_path || c->stat.ephemeral_owner != session)
      continue;
    if (c->type == LK_EVENT_CREATED)
      count++;
    else if (c->type == LK_EVENT_DELETED)
      count--;
  }
  return count == res->count ? NULL : "another number of paths";
}

static const char *wrong_acl(const sim_change *c, const sim_result *res)
{
  if (res->acl->count != 1 || res->acl->entries[0].perms != c->perms ||
      !same_text("world", res->acl->entries[0].scheme))
    return "another list";
  return same_stat(c, res->stat) ? NULL : "another Stat";
}

/* The change of that type that a transaction made to a node; NULL: none. */
static const sim_change *change_at(const sim_checker *checker,
                                   lk_event_type type, const char *path,
                                   int64_t zxid)
{
  size_t i = sim_change_log_first_after(&checker->change_log, zxid - 1);

  for (; i < checker->change_log.count &&
         checker->change_log.changes[i].zxid == zxid;
       i++) {
    const sim_change *c = &checker->change_log.changes[i];

    if (c->type == type && strcmp(c->path, path) == 0)
      return c;
  }
  return NULL;
}

/* Checks the path that a create returned. `c`: the change that the transaction
 * made at that path; NULL: none. */
static const char *wrong_create(const sim_request_op *e, const char *path,
                                const sim_change *c)
{
  size_t len = strlen(e->path);
  bool sequential = (e->flags & LK_SEQUENTIAL) != 0;

  if (c == NULL || strcmp(path, c->path) != 0)
    return "a path that it did not create";
  if (strncmp(path, e->path, len) != 0 ||
      strlen(path) != len + (sequential ? SUFFIX_DIGITS : 0))
    return "a path that was not requested";
  return strcmp(c->data, e->data) == 0 ? NULL : "a path with other data";
}

const char *sim_wrong_rare_reply(const sim_checker *checker,
                                 const sim_request *r, const sim_result *res,
                                 int64_t zxid)
{
  const sim_change *c = sim_change_log_at(&checker->change_log, r->path, zxid);
  bool reads_node = r->verb == SIM_LIST || r->verb == SIM_COUNT;
  bool is_unknown = sim_fault_is_possible(checker->world, SIM_FAULT_OLDER) ||
                    (r->verb == SIM_COUNT && !checker->all_count_descendants);
  bool refused = res->err == LK_ERR_THROTTLED ||
                 (res->err == LK_ERR_UNIMPLEMENTED && is_unknown);

  if (reads_node && !refused && res->err != err_of_read(c))
    return "another error";
  if (res->err != 0)
    return NULL;
  switch ((int)r->verb) {
  case SIM_MAKE:
    return wrong_create(r->ops, res->path,
                        change_at(checker, LK_EVENT_CREATED, res->path, zxid));
  case SIM_LIST:
    return wrong_names(checker, r->path, res->names, res->count, zxid);
  case SIM_COUNT:
    return res->count == sim_change_log_count_below(&checker->change_log,
                                                    r->path, zxid)
               ? NULL
               : "another count";
  case SIM_EPHEMERALS: return wrong_owned(checker, r, res, zxid);
  case SIM_WHO_AM_I:
    /* without added identities, the client's address is the only one */
    return res->count == 1 || sim_has_condition(checker->world, SIM_IDENTITIES)
               ? NULL
               : "another number of identities";
  case SIM_GET_ACL:
    return c == NULL ? "the access list of a missing node" : wrong_acl(c, res);
  case SIM_SET_ACL:
    c = change_at(checker, SIM_ACCESS_CHANGED, r->path, zxid);
    return c != NULL && c->perms == r->perms
               ? NULL
               : "success, and it was not executed";
  case SIM_RECONFIG: return "success, and reconfiguration is disabled";
  default: return NULL;
  }
}

/* ---- transactions ------------------------------------------------------- */

static bool is_create(const sim_request_op *e)
{
  return e->type == LK_OP_CREATE || e->type == LK_OP_CREATE2 ||
         e->type == LK_OP_CREATE_TTL;
}

/* The type of change that an operation makes; it is not a check. */
static lk_event_type change_of(const sim_request_op *e)
{
  if (is_create(e))
    return LK_EVENT_CREATED;
  return e->type == LK_OP_SET ? LK_EVENT_CHANGED : LK_EVENT_DELETED;
}

/* Checks the result of an operation of a successful transaction against the
 * change that it made. */
static const char *wrong_result(const sim_request_op *e, const lk_op_result *r,
                                const sim_change *c)
{
  if (r->err != 0)
    return "an error in a multi that succeeded";
  if (is_create(e))
    return r->path == NULL ? "no path" : wrong_create(e, r->path, c);
  if (r->type != e->type)
    return "another label";
  if (e->type != LK_OP_SET)
    return NULL;
  return r->stat != NULL && same_stat(c, r->stat) &&
                 strcmp(c->data, e->data) == 0
             ? NULL
             : "another Stat, or data";
}

/* The changes of the transaction are those of its operations, in order. */
static const char *wrong_batch(const sim_checker *checker, const sim_request *r,
                               const sim_result *res, int64_t zxid)
{
  size_t at = sim_change_log_first_after(&checker->change_log, zxid - 1);
  size_t end = sim_change_log_first_after(&checker->change_log, zxid);

  if (res->count != r->nops)
    return "another number of results";
  for (size_t i = 0; i < r->nops; i++) {
    const sim_request_op *e = &r->ops[i];
    const sim_change *c = at < end ? &checker->change_log.changes[at] : NULL;
    const char *wrong;

    if (e->type != LK_OP_CHECK &&
        (c == NULL || c->type != change_of(e) ||
         strncmp(c->path, e->path, strlen(e->path)) != 0))
      return "success, and an operation was not executed";
    wrong = wrong_result(e, &res->done[i], c);
    if (wrong != NULL)
      return wrong;
    if (e->type != LK_OP_CHECK)
      at++;
  }
  return at == end ? NULL : "success, and more was executed";
}

/* Whether one of the operations may concern the node of the other one, or a
 * parent of it. The path of a sequential node begins with the requested one. */
static bool may_interfere(const sim_request_op *a, const sim_request_op *b)
{
  return strncmp(a->path, b->path, strlen(a->path)) == 0 ||
         strncmp(a->path, b->path, strlen(b->path)) == 0;
}

/* Whether a child that is deleted by a closeSession was just deleted. While a
 * closeSession is outstanding, the leader still counts the session's nodes as
 * children of their parents (PrepRequestProcessor does not update these). A
 * delete of a parent then fails with NOT_EMPTY. */
static bool had_child_of_session(const sim_checker *checker, const char *path,
                                 int64_t zxid)
{
  enum { MOST_PENDING = 64 };
  size_t i = sim_change_log_first_after(&checker->change_log, zxid);

  for (; i > 0; i--) {
    const sim_change *c = &checker->change_log.changes[i - 1];

    if (zxid - c->zxid > MOST_PENDING)
      return false;
    if (c->type == LK_EVENT_DELETED && c->stat.ephemeral_owner != 0 &&
        sim_is_child(c, path))
      return true;
  }
  return false;
}

/* Whether the tree at `zxid` explains the error of an operation. Only called if
 * no earlier operation of the transaction has changed the node. */
static bool error_has_reason(const sim_checker *checker,
                             const sim_request_op *e, int err, int64_t zxid)
{
  const sim_change *c = sim_change_log_at(&checker->change_log, e->path, zxid);
  const sim_change *dir = parent_of(checker, e->path, zxid);

  switch (err) {
  case LK_ERR_NO_NODE: return (is_create(e) ? dir : c) == NULL;
  case LK_ERR_NODE_EXISTS: return is_create(e) && c != NULL;
  case LK_ERR_NO_CHILDREN_FOR_EPHEMERALS:
    return is_create(e) && dir != NULL && dir->stat.ephemeral_owner != 0;
  case LK_ERR_BAD_VERSION:
    return c != NULL && e->version != ANY_VERSION &&
           e->version != c->stat.version;
  case LK_ERR_NOT_EMPTY:
    return e->type == LK_OP_DELETE &&
           (sim_change_log_count_children(&checker->change_log, e->path, zxid) >
                0 ||
            had_child_of_session(checker, e->path, zxid));
  case LK_ERR_NO_AUTH:
    return e->type == LK_OP_CHECK && c != NULL && !is_readable(c);
  case LK_ERR_SESSION_EXPIRED: return true; /* the session is about to end */
  default: return false;
  }
}

static const char *wrong_failure(const sim_checker *checker,
                                 const sim_request *r, const sim_result *res,
                                 int64_t zxid)
{
  size_t failed = 0;

  if (sim_change_log_first_after(&checker->change_log, zxid - 1) !=
      sim_change_log_first_after(&checker->change_log, zxid))
    return "an error, and something was executed";
  if (res->count != r->nops)
    return "another number of results";
  while (failed < res->count && res->done[failed].err == 0)
    failed++;
  if (failed == res->count || res->done[failed].err != res->err)
    return "an error that none of its operations has";
  for (size_t i = failed + 1; i < res->count; i++) {
    if (res->done[i].err != LK_ERR_RUNTIME_INCONSISTENCY)
      return "a result behind the one that failed";
  }
  if (res->err == LK_ERR_SESSION_MOVED && failed == 0 &&
      checker->moved_in_results)
    return NULL;
  /* An operation before the failed one may be the reason of its error. */
  for (size_t i = 0; i < failed; i++) {
    if (may_interfere(&r->ops[i], &r->ops[failed]))
      return NULL;
  }
  return error_has_reason(checker, &r->ops[failed], res->err, zxid)
             ? NULL
             : "an error without a reason";
}

static void check_multi_reply(sim_checker *checker, const sim_request *r,
                              const sim_result *res, const lk_reply *reply)
{
  const char *wrong = NULL;

  if (res->err == 0)
    wrong = wrong_batch(checker, r, res, reply->zxid);
  else if (reply->err == 0) /* one of the operations has failed */
    wrong = wrong_failure(checker, r, res, reply->zxid);
  else if (res->count != 0)
    wrong = "results of a request that was refused";
  if (wrong != NULL)
    sim_violated(checker,
                 "request %" PRIu64 ", a multi, is answered at 0x%" PRIx64
                 " with %d: %s",
                 r->number, (uint64_t)reply->zxid, res->err, wrong);
}

/* A transaction whose reply was lost: one transaction has executed all its
 * writes, or none was executed. */
static void check_executed_whole(sim_checker *checker, const sim_request *r)
{
  size_t writes = 0;
  size_t written = 0;
  int64_t zxid = 0; /* of the write before; 0: it was not executed */

  for (size_t i = 0; i < r->nops; i++) {
    const sim_request_op *e = &r->ops[i];
    int64_t at;

    if (!is_create(e) && e->type != LK_OP_SET)
      continue;
    writes++;
    at = sim_change_log_zxid_of(&checker->change_log, e->data);
    if (at != 0)
      written++;
    if (at != 0 && zxid != 0 && at != zxid)
      sim_violated(checker,
                   "request %" PRIu64
                   ", a multi, is executed in several transactions",
                   r->number);
    zxid = at;
  }
  if (written != 0 && written != writes)
    sim_violated(checker, "request %" PRIu64 ", a multi, is executed in part",
                 r->number);
  if (written != 0 && r->err == LK_ERR_NOT_SENT)
    sim_violated(checker,
                 "request %" PRIu64 ", a multi, has NOT_SENT, and was executed",
                 r->number);
}

/* A transaction is executed whole or not at all, with the results of its
 * operations. */
void sim_multi_whole(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_REQUEST_ENDED) {
    const lk_reply *reply = lk_client_reply(f->request->process->client);

    if (f->request->verb == SIM_BATCH && reply != NULL)
      check_multi_reply(checker, f->request, f->result, reply);
    return;
  }
  for (const sim_request *r = f->life->requests; r != NULL; r = r->next) {
    if (r->verb == SIM_BATCH)
      check_executed_whole(checker, r);
  }
}
