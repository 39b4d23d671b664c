/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"
#include "sim/world/actor.h"
#include "sim/world/conditions.h"
#include "sim/world/sessions.h"

#include <string.h>

/* Invariants of a client: its requests, identities and session states. The
 * functions wrong_…() return what is wrong with a reply, or NULL. */

enum { SUFFIX_DIGITS = 10 }; /* of a sequence number */

/* ---- completion --------------------------------------------------------- */

static bool is_write(const sim_request *r)
{
  return r->verb == SIM_CREATE || r->verb == SIM_SET || r->verb == SIM_MULTI;
}

static void check_not_sent(sim_checker *checker, const sim_request *r)
{
  if (is_write(r) && r->err == LK_ERR_NOT_SENT &&
      sim_is_written(checker, r->data))
    sim_violated(checker, "%s has NOT_SENT, and was written to %s", r->data,
                 r->path);
}

/* An accepted request completes once; NOT_SENT is not executed. */
void sim_request_ends_once(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_REQUEST_ENDED) {
    if (f->request->in_call || f->request->completions > 1)
      sim_violated(checker, "request %" PRIu64 " on %s %s", f->request->number,
                   f->request->path,
                   f->request->in_call ? "ends in its call" : "ends again");
    return;
  }
  for (const sim_request *r = f->life->requests; r != NULL; r = r->next) {
    if (r->completions == 0 && f->was_freed)
      sim_violated(checker, "request %" PRIu64 " on %s never ends", r->number,
                   r->path);
    check_not_sent(checker, r);
  }
}

/* ---- replies ------------------------------------------------------------ */

static const char *wrong_node(const sim_entry *e, const lk_stat *stat,
                              int64_t zxid)
{
  const sim_version *v = sim_version_at(e, zxid);

  if (v == NULL || stat->czxid != e->created_zxid)
    return "another node";
  if (stat->mzxid != v->zxid || stat->version != v->version)
    return "another version";
  return NULL;
}

static bool same_text(const char *text, const lk_bytes *data)
{
  return data->len == strlen(text) && memcmp(data->at, text, data->len) == 0;
}

static const char *wrong_read(const sim_checker *checker, const sim_request *r,
                              const sim_result *res, int64_t zxid)
{
  const sim_entry *e = sim_history_at(&checker->history, r->path, zxid);
  const char *wrong;

  if (res->err == LK_ERR_NO_NODE)
    return e == NULL ? NULL : "NO_NODE, and the node existed";
  if (e == NULL)
    return "a node that did not exist";
  wrong = wrong_node(e, res->stat, zxid);
  if (wrong == NULL && r->verb == SIM_GET &&
      !same_text(sim_version_at(e, zxid)->data, res->data))
    wrong = "other data";
  return wrong;
}

static bool is_listed(const sim_result *res, const char *name)
{
  for (size_t i = 0; i < res->count; i++) {
    if (same_text(name, &res->names[i]))
      return true;
  }
  return false;
}

static const char *wrong_list(const sim_checker *checker, const sim_result *res,
                              int64_t zxid)
{
  size_t count = 0;

  if (res->err != 0)
    return NULL;
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (!sim_is_request_node(e) || !sim_entry_existed_at(e, zxid))
      continue;
    count++;
    if (!is_listed(res, e->name))
      return "a list without one of the names";
  }
  return count == res->count ? NULL : "a list with too many names";
}

static const char *wrong_write(const sim_checker *checker, const sim_request *r,
                               const char *path, int64_t zxid)
{
  const sim_entry *e = sim_history_at(&checker->history, path, zxid);
  const sim_version *v = e == NULL ? NULL : sim_version_at(e, zxid);

  if (v == NULL || v->zxid != zxid)
    return "success, and that transaction did not write it";
  return strcmp(v->data, r->data) == 0
             ? NULL
             : "success, and that transaction wrote something else";
}

static const char *wrong_create(const sim_checker *checker,
                                const sim_request *r, const sim_result *res,
                                int64_t zxid)
{
  size_t len = strlen(r->path);

  if (res->err == LK_ERR_NODE_EXISTS)
    return sim_history_at(&checker->history, r->path, zxid) == NULL
               ? "NODE_EXISTS"
               : NULL;
  if (res->err != 0)
    return NULL;
  if (strncmp(res->path, r->path, len) != 0 ||
      strlen(res->path) != len + (r->sequential ? SUFFIX_DIGITS : 0))
    return "another path";
  return wrong_write(checker, r, res->path, zxid);
}

static const char *wrong_delete(const sim_checker *checker,
                                const sim_request *r, const sim_result *res,
                                int64_t zxid)
{
  if (res->err == LK_ERR_NO_NODE)
    return sim_history_at(&checker->history, r->path, zxid) == NULL
               ? NULL
               : "NO_NODE, and the node existed";
  if (res->err != 0)
    return NULL;
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e->deleted_zxid == zxid && strcmp(e->path, r->path) == 0)
      return NULL;
  }
  return "success, and that transaction did not delete it";
}

static const char *wrong_set(const sim_checker *checker, const sim_request *r,
                             const sim_result *res, int64_t zxid)
{
  if (res->err == LK_ERR_NO_NODE)
    return sim_history_at(&checker->history, r->path, zxid) == NULL
               ? NULL
               : "NO_NODE, and the node existed";
  return res->err != 0 ? NULL : wrong_write(checker, r, r->path, zxid);
}

static const char *wrong_reply(const sim_checker *checker, const sim_request *r,
                               const sim_result *res, int64_t zxid)
{
  bool is_of_rare_requester = r->verb >= SIM_BATCH;

  if (is_of_rare_requester)
    return sim_wrong_rare_reply(checker, r, res, zxid);
  if (res->err != 0 && res->err != LK_ERR_NO_NODE &&
      res->err != LK_ERR_NODE_EXISTS)
    return NULL;
  switch ((int)r->verb) {
  case SIM_GET:
  case SIM_EXISTS: return wrong_read(checker, r, res, zxid);
  case SIM_CHILDREN: return wrong_list(checker, res, zxid);
  case SIM_CREATE: return wrong_create(checker, r, res, zxid);
  case SIM_DELETE: return wrong_delete(checker, r, res, zxid);
  case SIM_SET:
  case SIM_MULTI: return wrong_set(checker, r, res, zxid);
  case SIM_SYNC:
  default: break;
  }
  return NULL;
}

/* A reply is true at its zxid. */
/* Whether a server in trouble has refused the request. */
static bool is_refused_in_trouble(const sim_checker *checker, int err)
{
  return sim_fault_is_possible(checker->world, SIM_FAULT_ERRORS) &&
         (err == LK_ERR_SYSTEM || err == LK_ERR_UNIMPLEMENTED ||
          err == LK_ERR_OPERATION_TIMEOUT || err == LK_ERR_REQUEST_TIMEOUT);
}

void sim_reply_matches(sim_checker *checker, const sim_fact *f)
{
  const sim_request *r = f->request;
  const lk_reply *reply = lk_client_reply(r->process->client);
  const char *wrong;

  if (reply == NULL || is_refused_in_trouble(checker, f->result->err))
    return;
  wrong = wrong_reply(checker, r, f->result, reply->zxid);
  if (wrong != NULL)
    sim_violated(checker,
                 "request %" PRIu64 " on %s is answered at 0x%" PRIx64 ": %s",
                 r->number, r->path, (uint64_t)reply->zxid, wrong);
}

/* Replies come in the order of the requests, with growing zxids. UNIMPLEMENTED
 * is reported by the client itself, ahead of earlier requests and without a
 * zxid. */
void sim_order(sim_checker *checker, const sim_fact *f)
{
  sim_life *l = sim_life_of(checker, f->request->process);
  const lk_reply *reply = lk_client_reply(l->process->client);

  if (reply == NULL || f->err == LK_ERR_UNIMPLEMENTED)
    return;
  if (f->request->number <= l->last_answered)
    sim_violated(checker, "request %" PRIu64 " is answered after %" PRIu64,
                 f->request->number, l->last_answered);
  if (reply->zxid < l->top_zxid)
    sim_violated(checker, "%s is answered at 0x%" PRIx64 " after 0x%" PRIx64,
                 l->process->name, (uint64_t)reply->zxid,
                 (uint64_t)l->top_zxid);
  l->last_answered = f->request->number;
  l->top_zxid = reply->zxid;
}

/* ---- reliable writes ---------------------------------------------------- */

static size_t count_executions(const sim_checker *checker, const sim_write *x)
{
  size_t n = 0;

  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (e->lock_index != SIM_NO_LOCK || strcmp(e->path, x->path) != 0)
      continue;
    for (const sim_version *v = e->newest; v != NULL; v = v->older) {
      if (strcmp(v->data, x->data) == 0)
        n++;
    }
  }
  return n;
}

static bool is_refused(int err)
{
  return err == LK_ERR_NOT_SENT || err == LK_ERR_NO_NODE ||
         err == LK_ERR_NODE_EXISTS || err == LK_ERR_BAD_VERSION;
}

static void check_write(sim_checker *checker, const sim_write *x)
{
  size_t n = count_executions(checker, x);
  bool is_lost = x->ended && x->err == 0 && n == 0;
  bool is_executed_though_refused = x->ended && is_refused(x->err) && n > 0;

  if (n > 1 || is_lost || is_executed_though_refused)
    sim_violated(checker, "%s of %s says %s and was executed %zu times",
                 x->data, x->path, lk_error_name(x->err), n);
}

/* Only reliable writers delete nodes of their own, which no other client
 * creates or deletes. */
static void check_delete(sim_checker *checker, const sim_write *x)
{
  bool exists = sim_history_find(&checker->history, x->path) != NULL;

  if ((x->err == 0 || x->err == LK_ERR_NO_NODE) && exists)
    sim_violated(checker, "%s is deleted and exists", x->path);
}

/* A reliable write with result 0 was executed once, a refused one never, and
 * none twice. After a wipe a client repeats a write that the servers have
 * forgotten, so nothing is checked. */
void sim_reliable_write(sim_checker *checker, const sim_fact *f)
{
  if (checker->world->wipes > 0)
    return;
  if (f->type == SIM_WRITE_ENDED && f->write->verb == SIM_DELETE) {
    check_delete(checker, f->write);
    return;
  }
  if (f->type == SIM_WRITE_ENDED) {
    check_write(checker, f->write);
    return;
  }
  for (const sim_write *x = checker->writes; x != NULL; x = x->next) {
    if (x->verb != SIM_DELETE)
      check_write(checker, x);
  }
}

/* ---- identities --------------------------------------------------------- */

static bool may_end_adding(int err)
{
  return err == 0 || err == LK_ERR_CLOSED || err == LK_ERR_SESSION_EXPIRED;
}

/* On each connection an identity is sent before all later requests. */
void sim_identities(sim_checker *checker, const sim_fact *f)
{
  const sim_identity_use *x = f->identity_use;
  const char *name = x->actor->name;

  if (x->completions > 1)
    sim_violated(checker, "%s gets a callback twice", name);
  if (x->verb == SIM_ADD_AUTH && !may_end_adding(f->err))
    sim_violated(checker, "%s adds an identity, which ends with %s", name,
                 lk_error_name(f->err));
  if (x->missing)
    sim_violated(checker,
                 "%s has %u identities, and the server does not know them",
                 name, x->identities_before);
  if (f->err == LK_ERR_NO_AUTH || f->err == LK_ERR_INVALID_ACL)
    sim_violated(checker, "%s gets %s, and has an identity for it", name,
                 lk_error_name(f->err));
}

/* ---- trees -------------------------------------------------------------- */

/* A node created with its parents exists, a deleted tree does not. Missing
 * parents and existing children cause no error. After a wipe only the errors
 * are checked, since the nodes are gone. */
void sim_deep(sim_checker *checker, const sim_fact *f)
{
  const sim_write *x = f->write;
  const sim_tree *committed =
      sim_ensemble_committed_tree(checker->world->ensemble);
  bool exists = sim_tree_find(committed, x->path) != NULL;
  bool creates = x->verb == SIM_CREATE;

  if (f->err == 0 && exists != creates && checker->world->wipes == 0)
    sim_violated(checker, "%s %s %s, and it %s", x->actor->name,
                 creates ? "creates" : "deletes", x->path,
                 exists ? "exists" : "does not exist");
  if ((creates && f->err == LK_ERR_NO_NODE) || f->err == LK_ERR_NOT_EMPTY)
    sim_violated(checker, "%s gets %s for %s", x->actor->name,
                 lk_error_name(f->err), x->path);
}

/* ---- sessions ----------------------------------------------------------- */

/* The client must not send a write to a read-only server: the refusal would
 * arrive ahead of earlier replies. */
static void check_sent(sim_checker *checker, const sim_fact *f)
{
  const lk_opcode_info *info = lk__opcode_info(f->op);

  if (f->life->state == LK_STATE_READ_ONLY && !info->served_read_only &&
      f->op != LK_OPCODE_CLOSE_SESSION)
    sim_violated(checker, "%s sends %s to a server without a quorum",
                 f->life->process->name, info->name);
}

/* The session state changes along known edges. Two changes depend on the
 * session: a client with a session does not connect to a read-only server, and
 * only a client with a session finds it expired. */
void sim_session_states(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_SENT) {
    check_sent(checker, f);
    return;
  }
  bool read_only_with_session = f->from == LK_STATE_SUSPENDED &&
                                f->state == LK_STATE_READ_ONLY &&
                                f->life->session != NULL;
  bool expired_without_session = f->from == LK_STATE_SUSPENDED &&
                                 f->state == LK_STATE_EXPIRED &&
                                 f->life->session == NULL;

  if (!sim_session_may_change((int)f->from, (int)f->state,
                              f->life->process->has_resumed) ||
      read_only_with_session || expired_without_session)
    sim_violated(checker, "%s is %s after %s", f->life->process->name,
                 lk_state_text(f->state), lk_state_text(f->from));
}

/* A freed client leaves no memory. The memory is counted after the job in which
 * the client was freed. */
void sim_memory_returns(sim_checker *checker, const sim_fact *f)
{
  if (f->type == SIM_PROCESS_ENDED) {
    f->life->must_be_empty = f->was_freed;
    return;
  }
  for (size_t i = 0; i < checker->world->nprocesses; i++) {
    const sim_process *p = &checker->world->processes[i];

    if (checker->lives[i].must_be_empty && p->client == NULL && p->memory > 0)
      sim_violated(checker, "%s has %zu bytes left", p->name, p->memory);
    checker->lives[i].must_be_empty = false;
  }
}
