/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "recipes/common/deadline.h"
#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"
#include "recipes/nodes/pause.h"

#include <latchkey/nodes.h>

/**
 * @file
 * Writes over lost connections. What is older than the last try was not done by
 * it: a node whose zxid is not larger than the largest that any answer before
 * its own has brought says for certain that it was not executed. What is
 * younger was done by it, or by somebody else.
 */

typedef enum verb { CREATE, SET, DELETE } verb;

typedef struct settle {
  lk_client *client;
  verb verb;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  int flags;
  int32_t version;
  bool sole;
  int64_t end_ms;
  void (*done)(void); /* as of the verb */
  void *arg;
  int64_t older;   /* zxid seen before the write's answer; 0: none */
  int64_t session; /* in which its answer was lost */
  lk_pause pause;
  bool looks; /* after a pause it is looked for; else written */

  /* a look */
  size_t open; /* requests under way */
  int refused; /* why one could not be made */
  int proof_err;
  int read_err;
  lk_stat stat; /* of the node, if `read_err` is 0 */
  bool same;    /* it holds our data */
  bool calm;    /* no child of the parent has come or gone since */
} settle;

static void give_back(settle *s)
{
  const lk_mem *mem = lk_client_mem(s->client);

  lk__pause_stop(&s->pause, s->client);
  lk__give(mem, s->acl);
  lk__give(mem, s);
}

static void tell(const settle *s, int err, const char *path,
                 const lk_stat *stat)
{
  if (s->done == NULL)
    return;
  switch (s->verb) {
  case CREATE:
    ((lk_create_cb)s->done)(s->client, err, path, stat, s->arg);
    break;
  case SET: ((lk_stat_cb)s->done)(s->client, err, stat, s->arg); break;
  case DELETE: ((lk_done_cb)s->done)(s->client, err, s->arg); break;
  }
}

static void end(settle *s, int err, const char *path, const lk_stat *stat)
{
  tell(s, err, path, stat);
  give_back(s);
}

static void fail(settle *s, int err)
{
  end(s, err, NULL, NULL);
}

static bool is_ephemeral(const settle *s)
{
  return s->verb == CREATE && (s->flags & LK_EPHEMERAL) != 0;
}

static void look(settle *s);
static void write(settle *s);

/* ---- a pause ----------------------------------------------------------- */

static void on_rested(void *arg, int err)
{
  settle *s = arg;

  if (err != 0)
    fail(s, err);
  else if (s->looks)
    look(s);
  else
    write(s);
}

static void rest(settle *s, bool looks)
{
  s->looks = looks;
  lk__pause_start(&s->pause, s->client, s->end_ms, on_rested, s);
}

/* A session that the client gave up may still execute what was sent in it. */
static bool wait_for_session_end(settle *s)
{
  int64_t now = lk_client_clock(s->client);
  int64_t over = lk_client_abandoned_session_end(s->client);

  if (now >= over || now >= s->end_ms)
    return false;
  s->looks = true;
  lk__pause_until(&s->pause, s->client, over < s->end_ms ? over : s->end_ms,
                  on_rested, s);
  return true;
}

/* ---- the write --------------------------------------------------------- */

static void see(settle *s)
{
  int64_t zxid = lk_client_zxid(s->client);

  s->older = zxid > s->older ? zxid : s->older;
}

/* The answer was lost, here or behind the server. If here, all that were not
 * came before it. */
static void lost(settle *s, int err)
{
  if (err == LK_ERR_IN_DOUBT && !lk__error_is_loss_behind_server(s->client, err))
    see(s);
  s->session = lk_client_session(s->client).id;
  if (is_ephemeral(s) && err == LK_ERR_SESSION_EXPIRED)
    fail(s, err);
  else if (s->verb == CREATE && (s->flags & LK_SEQUENTIAL) != 0)
    fail(s, LK_ERR_IN_DOUBT);
  else
    look(s);
}

static void written(settle *s, int err, const char *path, const lk_stat *stat)
{
  if (err == LK_ERR_NOT_SENT)
    write(s);
  else if (lk__error_meaning(err).outcome == LK_OUTCOME_IN_DOUBT)
    lost(s, err);
  else if (lk__error_advice(s->client, err) == LK_ADVICE_RETRY_LATER)
    rest(s, false);
  else
    end(s, err, path, stat);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)c;
  written(arg, err, path, stat);
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  (void)c;
  written(arg, err, NULL, stat);
}

static void on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  written(arg, err, NULL, NULL);
}

/* To a client that has had no answer every node would be younger than the
 * write: the answer to this comes before that of the write. */
static void glance(settle *s, const lk_call *call)
{
  if (lk_client_zxid(s->client) == 0)
    (void)lk_exists(s->client, "/", call, NULL, NULL);
}

static int ask(settle *s)
{
  lk_client *c = s->client;
  lk_call call = lk__call_until(s->end_ms);

  see(s);
  glance(s, &call);
  switch (s->verb) {
  case CREATE:
    return lk_create2(c, s->path, s->data, s->acl, s->flags, &call, on_created,
                      s);
  case SET: return lk_set(c, s->path, s->data, s->version, &call, on_set, s);
  case DELETE: return lk_delete(c, s->path, s->version, &call, on_deleted, s);
  }
  return LK_ERR_STATE;
}

static void write(settle *s)
{
  int err = ask(s);

  if (lk__error_advice(s->client, err) == LK_ADVICE_RETRY_LATER)
    rest(s, false);
  else if (err != 0)
    fail(s, err);
}

/* ---- what became of it ------------------------------------------------- */

static void settle_ephemeral(settle *s)
{
  if (lk_client_session(s->client).id != s->session)
    fail(s, LK_ERR_SESSION_EXPIRED);
  else if (s->read_err == LK_ERR_NO_NODE)
    write(s);
  else if (s->stat.czxid <= s->older || s->stat.ephemeral_owner != s->session)
    fail(s, LK_ERR_NODE_EXISTS);
  else
    end(s, 0, s->path, &s->stat);
}

static void settle_create(settle *s)
{
  if (s->read_err == LK_ERR_NO_NODE && (s->sole || s->calm))
    write(s);
  else if (s->read_err == LK_ERR_NO_NODE || s->older == 0)
    fail(s, LK_ERR_IN_DOUBT); /* it may have come and gone, or been there */
  else if (s->stat.czxid <= s->older || (s->sole && !s->same))
    fail(s, LK_ERR_NODE_EXISTS);
  else if (s->sole)
    end(s, 0, s->path, &s->stat);
  else
    fail(s, LK_ERR_IN_DOUBT);
}

/* The one change since was made by somebody who wrote something else. */
static bool is_anothers(const settle *s)
{
  return s->version != -1 && s->stat.czxid <= s->older && !s->same &&
         (uint32_t)s->stat.version == (uint32_t)s->version + 1;
}

static bool is_unwritten(const settle *s)
{
  return s->stat.mzxid <= s->older ||
         (s->sole && (!s->same || s->stat.version == s->version));
}

static void settle_set(settle *s)
{
  if (s->read_err == LK_ERR_NO_NODE)
    fail(s, s->sole ? LK_ERR_NO_NODE : LK_ERR_IN_DOUBT);
  else if (is_unwritten(s))
    write(s);
  else if (s->sole)
    end(s, 0, NULL, &s->stat);
  else
    fail(s, is_anothers(s) ? LK_ERR_BAD_VERSION : LK_ERR_IN_DOUBT);
}

static void settle_delete(settle *s)
{
  if (s->read_err == 0 && (s->sole || s->stat.czxid <= s->older))
    write(s);
  else
    fail(s, s->sole ? 0 : LK_ERR_IN_DOUBT);
}

static void judge(settle *s)
{
  switch (s->verb) {
  case CREATE:
    if (is_ephemeral(s))
      settle_ephemeral(s);
    else
      settle_create(s);
    break;
  case SET: settle_set(s); break;
  case DELETE: settle_delete(s); break;
  }
}

/* ---- the look ---------------------------------------------------------- */

/* A transaction that a server has judged was ordered behind the write. */
static bool was_ordered(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  return outcome == LK_OUTCOME_EXECUTED || outcome == LK_OUTCOME_REFUSED;
}

static int first_trouble(const settle *s)
{
  if (s->refused != 0)
    return s->refused;
  return s->proof_err != 0 ? s->proof_err : s->read_err;
}

/* All of it was answered. */
static void looked(settle *s)
{
  bool known = s->read_err == 0 || s->read_err == LK_ERR_NO_NODE;

  if (s->refused == 0 && s->proof_err == 0 && known) {
    judge(s);
    return;
  }
  int err = first_trouble(s);

  switch (lk__error_advice(s->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: look(s); break;
  case LK_ADVICE_RETRY_LATER: rest(s, true); break;
  case LK_ADVICE_GIVE_UP:
    fail(s, err == LK_ERR_NO_AUTH ? LK_ERR_IN_DOUBT : err);
    break;
  }
}

static void answered(settle *s)
{
  if (--s->open == 0)
    looked(s);
}

static void on_proof(lk_client *c, int err, const lk_op_result *results,
                     size_t count, void *arg)
{
  settle *s = arg;

  (void)c;
  (void)results;
  (void)count;
  s->proof_err = was_ordered(err) ? 0 : err;
  answered(s);
}

static void on_node(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  settle *s = arg;

  (void)c;
  s->read_err = err;
  if (err == 0) {
    s->stat = *stat;
    s->same = data->len == s->data.len &&
              (data->len == 0 || memcmp(data->at, s->data.at, data->len) == 0);
  }
  answered(s);
}

static void on_parent(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  settle *s = arg;

  (void)c;
  s->calm = err == 0 && stat->pzxid <= s->older;
  answered(s);
}

static int ask_parent(settle *s, const lk_call *call)
{
  char *slash = strrchr(s->path, '/');
  char *cut = slash == s->path ? slash + 1 : slash;
  char kept = *cut;

  *cut = '\0';
  int err = lk_exists(s->client, s->path, call, on_parent, s);

  *cut = kept;
  return err;
}

static int ask_look(settle *s)
{
  lk_op check = lk_op_check("/", -1);
  lk_call call = lk__call_until(s->end_ms);
  int err = lk_multi(s->client, &check, 1, &call, on_proof, s);

  if (err != 0)
    return err;
  s->open++;
  if (s->verb == CREATE && !s->sole) {
    err = ask_parent(s, &call);
    s->open += err == 0;
  }
  if (err == 0) {
    err = lk_get(s->client, s->path, &call, on_node, s);
    s->open += err == 0;
  }
  return err;
}

/* A transaction goes first, whatever it checks: when it has been executed, so
 * has been what the old connection had proposed, and nothing more of it will
 * be; unless the session was given up here, and not at the servers. */
static void look(settle *s)
{
  if (wait_for_session_end(s))
    return;
  s->calm = false;
  s->refused = ask_look(s);
  if (s->open == 0)
    looked(s);
}

/* ---- beginning --------------------------------------------------------- */

/* Path and data stand behind it. */
static settle *new_settle(lk_client *c, const char *path, lk_bytes data)
{
  size_t path_size = strlen(path) + 1;

  if (data.len > SIZE_MAX - sizeof(settle) - path_size)
    return NULL;
  settle *s = lk__take(lk_client_mem(c), sizeof *s + path_size + data.len);

  if (s == NULL)
    return NULL;
  s->client = c;
  s->path = (char *)(s + 1);
  memcpy(s->path, path, path_size);
  s->data = data;
  if (data.at != NULL)
    s->data.at = s->path + path_size;
  if (data.len > 0)
    memcpy(s->path + path_size, data.at, data.len);
  return s;
}

/* Begin with what `what` says. */
static int begin(lk_client *c, const settle *what, const char *path,
                 lk_bytes data, const lk_acls *acl, const lk_call *call)
{
  lk_call own;
  int err = lk__call_options_take(c, &own, call);

  if (err != 0)
    return err;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  settle *s = new_settle(c, path, data);

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->verb = what->verb;
  s->flags = what->flags;
  s->version = what->version;
  s->sole = what->sole;
  s->done = what->done;
  s->arg = what->arg;
  s->end_ms = lk__call_deadline(c, &own);
  if (acl != NULL)
    s->acl = lk__acls_copy(lk_client_mem(c), acl);
  err = acl != NULL && s->acl == NULL ? LK_ERR_NO_MEMORY : ask(s);

  if (err != 0)
    give_back(s);
  return err;
}

int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                       const lk_acls *acl, int flags, bool sole,
                       const lk_call *call, lk_create_cb done, void *arg)
{
  const settle what = {.verb = CREATE,
                       .flags = flags,
                       .sole = sole,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return begin(c, &what, path, data, acl, call);
}

int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                    int32_t version, bool sole, const lk_call *call,
                    lk_stat_cb done, void *arg)
{
  const settle what = {.verb = SET,
                       .version = version,
                       .sole = sole,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return begin(c, &what, path, data, NULL, call);
}

int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                       bool sole, const lk_call *call, lk_done_cb done,
                       void *arg)
{
  const settle what = {.verb = DELETE,
                       .version = version,
                       .sole = sole,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return begin(c, &what, path, lk_bytes_of(NULL, 0), NULL, call);
}
