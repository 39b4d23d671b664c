/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine.h"
#include "proto/path.h"

/* ---- what may be sent --------------------------------------------------- */

static int check_call(const lk_call *call, bool watchable)
{
  if (call == NULL)
    return 0;
  if (call->size != sizeof *call || call->timeout_ms < 0 ||
      (call->on_event != NULL && !watchable))
    return LK_ERR_BAD_ARGUMENT;
  return 0;
}

/* A write that is asked again might be done twice. */
static bool asks_too_much(const lk_ask *ask, const lk_call *call)
{
  return call != NULL && call->repeat && lk__opcode_info(ask->op)->write;
}

static bool valid_flags(int flags)
{
  return (flags >= 0 && flags <= (LK_EPHEMERAL | LK_SEQUENTIAL)) ||
         flags == LK_CONTAINER;
}

static bool sequential(int flags)
{
  return (flags & LK_SEQUENTIAL) != 0;
}

static int check_op(const lk_op *op)
{
  bool creates = op->type == LK_OP_CREATE || op->type == LK_OP_CREATE2;

  switch (op->type) {
  case LK_OP_CREATE:
  case LK_OP_CREATE2:
    if (!valid_flags(op->flags))
      return LK_ERR_BAD_ARGUMENT;
    break;
  case LK_OP_DELETE:
  case LK_OP_SET:
  case LK_OP_CHECK:
    if (op->version < -1)
      return LK_ERR_BAD_ARGUMENT;
    break;
  default: return LK_ERR_BAD_ARGUMENT;
  }
  return lk__path_valid(op->path, creates && sequential(op->flags))
             ? 0
             : LK_ERR_BAD_PATH;
}

/* ---- sending ------------------------------------------------------------ */

/* Complete `ask` with what all requests have, and queue it. */
static int send(lk_client *c, lk_ask *ask, const lk_record *rec,
                const void *value, const lk_call *call)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (asks_too_much(ask, call))
    return LK_ERR_BAD_ARGUMENT;
  ask->rec = rec;
  ask->value = value;
  ask->chroot = c->hosts.chroot;
  ask->call = call;
  return lk__request_queue(c, ask);
}

/* A read, which may watch. */
static int read(lk_client *c, lk_ask *ask, const lk_call *call)
{
  struct lk_path_watch_request r = {.watch =
                                        call != NULL && call->on_event != NULL};
  int err = check_call(call, true);

  if (err != 0)
    return err;
  if (!lk__path_valid(ask->path, false))
    return LK_ERR_BAD_PATH;
  ask->path = lk__path_rest(c->hosts.chroot, ask->path, false);
  return send(c, ask, &lk__path_watch_request_record, &r, call);
}

int lk_exists(lk_client *c, const char *path, const lk_call *call,
              lk_stat_cb done, void *arg)
{
  lk_ask ask = {.op = LK_OPCODE_EXISTS,
                .path = path,
                .kind = LK_WATCH_DATA,
                .done = (void (*)(void))done,
                .arg = arg};

  return read(c, &ask, call);
}

int lk_get(lk_client *c, const char *path, const lk_call *call, lk_get_cb done,
           void *arg)
{
  lk_ask ask = {.op = LK_OPCODE_GET_DATA,
                .path = path,
                .kind = LK_WATCH_DATA,
                .done = (void (*)(void))done,
                .arg = arg};

  return read(c, &ask, call);
}

int lk_children(lk_client *c, const char *path, const lk_call *call,
                lk_children_cb done, void *arg)
{
  lk_ask ask = {.op = LK_OPCODE_GET_CHILDREN2,
                .path = path,
                .kind = LK_WATCH_CHILD,
                .done = (void (*)(void))done,
                .arg = arg};

  return read(c, &ask, call);
}

/* A request without a watch that names one node. */
static int request(lk_client *c, lk_ask *ask, bool sequence,
                   const lk_record *rec, const void *value, const lk_call *call)
{
  int err = check_call(call, false);

  if (err != 0)
    return err;
  if (!lk__path_valid(ask->path, sequence))
    return LK_ERR_BAD_PATH;
  ask->path = lk__path_rest(c->hosts.chroot, ask->path, sequence);
  return send(c, ask, rec, value, call);
}

static int create(lk_client *c, int32_t op, const char *path, lk_bytes data,
                  const lk_acls *acl, int flags, const lk_call *call,
                  lk_create_cb done, void *arg)
{
  if (!valid_flags(flags))
    return LK_ERR_BAD_ARGUMENT;
  if (acl == NULL)
    acl = &lk_acl_open;
  struct lk_create_request r = {.data = data,
                                .acl = lk__vec_of(acl->entries, acl->count),
                                .flags = flags};
  lk_ask ask = {.op = flags == LK_CONTAINER ? LK_OPCODE_CREATE_CONTAINER : op,
                .path = path,
                .done = (void (*)(void))done,
                .arg = arg};

  return request(c, &ask, sequential(flags), &lk__create_request_record, &r,
                 call);
}

int lk_create(lk_client *c, const char *path, lk_bytes data, const lk_acls *acl,
              int flags, const lk_call *call, lk_create_cb done, void *arg)
{
  return create(c, LK_OPCODE_CREATE, path, data, acl, flags, call, done, arg);
}

int lk_create2(lk_client *c, const char *path, lk_bytes data,
               const lk_acls *acl, int flags, const lk_call *call,
               lk_create_cb done, void *arg)
{
  return create(c, LK_OPCODE_CREATE2, path, data, acl, flags, call, done, arg);
}

int lk_delete(lk_client *c, const char *path, int32_t version,
              const lk_call *call, lk_done_cb done, void *arg)
{
  struct lk_path_version_request r = {.version = version};
  lk_ask ask = {.op = LK_OPCODE_DELETE,
                .path = path,
                .done = (void (*)(void))done,
                .arg = arg};

  if (version < -1)
    return LK_ERR_BAD_ARGUMENT;
  return request(c, &ask, false, &lk__path_version_request_record, &r, call);
}

int lk_set(lk_client *c, const char *path, lk_bytes data, int32_t version,
           const lk_call *call, lk_stat_cb done, void *arg)
{
  struct lk_set_data_request r = {.data = data, .version = version};
  lk_ask ask = {.op = LK_OPCODE_SET_DATA,
                .path = path,
                .done = (void (*)(void))done,
                .arg = arg};

  if (version < -1)
    return LK_ERR_BAD_ARGUMENT;
  return request(c, &ask, false, &lk__set_data_request_record, &r, call);
}

int lk_sync(lk_client *c, const char *path, const lk_call *call,
            lk_done_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_ask ask = {.op = LK_OPCODE_SYNC,
                .path = path,
                .done = (void (*)(void))done,
                .arg = arg};

  return request(c, &ask, false, &lk__path_request_record, &r, call);
}

int lk_multi(lk_client *c, const lk_op *ops, size_t count, const lk_call *call,
             lk_multi_cb done, void *arg)
{
  static const lk_op none;
  lk_ask ask = {.op = LK_OPCODE_MULTI,
                .ops = count == 0 ? &none : ops,
                .parts = count,
                .done = (void (*)(void))done,
                .arg = arg};
  int err = check_call(call, false);

  for (size_t i = 0; i < count && err == 0; i++)
    err = check_op(&ops[i]);
  return err != 0 ? err : send(c, &ask, NULL, NULL, call);
}

/* ---- identities ---------------------------------------------------------- */

static lk_auth *new_auth(lk_client *c, const char *scheme, lk_bytes auth)
{
  struct lk_request_header header = {LK_XID_AUTH, LK_OPCODE_AUTH};
  struct lk_auth_request r = {.scheme = lk_text(scheme), .auth = auth};
  size_t cap = 4 + 8 + 4 + 4 + strlen(scheme) + 4 + auth.len;
  lk_auth *a = lk__mem_new(&c->mem, sizeof *a + cap);
  lk_writer w;

  if (a == NULL)
    return NULL;
  lk__writer_init(&w, a->frame, cap);
  lk__writer_int(&w, (int32_t)(cap - 4));
  lk__record_encode(&lk__request_header_record, &header, &w);
  lk__record_encode(&lk__auth_request_record, &r, &w);
  a->len = w.len;
  return a;
}

int lk_add_auth(lk_client *c, const char *scheme, lk_bytes auth,
                lk_done_cb done, void *arg)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (scheme == NULL || scheme[0] == '\0' || auth.at == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (auth.len + strlen(scheme) + 32 > c->send_limit)
    return LK_ERR_TOO_BIG;
  lk_auth *a = new_auth(c, scheme, auth);

  if (a == NULL || (c->phase == LK_PHASE_LIVE &&
                    !lk__buf_append(&c->out, a->frame, a->len))) {
    lk__mem_free(&c->mem, a);
    return LK_ERR_NO_MEMORY;
  }
  a->done = done;
  a->arg = arg;
  lk_auth **last = &c->auths;

  while (*last != NULL)
    last = &(*last)->next;
  *last = a;
  if (c->phase == LK_PHASE_LIVE && c->auth_next == NULL)
    c->auth_next = a;
  lk__client_wake(c);
  return 0;
}
