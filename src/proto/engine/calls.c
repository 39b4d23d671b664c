/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/calls.h"

#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/requests.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

/* ---- options ------------------------------------------------------------- */

int lk__call_take_watch_options(lk_client *c, lk_call_spec *spec,
                                const lk_call *call)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_call);

  if (call == NULL)
    return 0;
  spec->call = &spec->options;
  return lk__client_copy_options(c, &what, &spec->options, call);
}

static bool asks_for_watch(const lk_call_spec *spec)
{
  return spec->call != NULL && spec->call->on_event != NULL;
}

/* The requests of these callers cannot set a watch. */
int lk__call_take_options(lk_client *c, lk_call_spec *spec, const lk_call *call)
{
  int err = lk__call_take_watch_options(c, spec, call);

  return err == 0 && asks_for_watch(spec) ? LK_ERR_BAD_ARGUMENT : err;
}

/* ---- checks and queueing ------------------------------------------------- */

/* Whether the options fit the request. A write is not repeated: it could be
 * executed twice. A request that is repeated waits for the next connection. */
static bool options_fit(const lk_call_spec *spec)
{
  const lk_call *call = spec->call;

  if (call == NULL)
    return true;
  bool fails_offline = call->offline == LK_OFFLINE_FAIL;

  return (call->offline == LK_OFFLINE_WAIT || fails_offline) &&
         !(call->repeat && (fails_offline || lk__opcode_info(spec->op)->write));
}

int lk__call_send(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                  const void *value)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (!options_fit(spec))
    return LK_ERR_BAD_ARGUMENT;
  if (c->connection.phase == LK_PHASE_LIVE)
    err = lk__request_support_error(c, spec->op);
  if (err != 0)
    return err;
  spec->rec = rec;
  spec->value = value;
  if (spec->chroot == NULL)
    spec->chroot = c->hosts.chroot;
  return lk__request_queue(c, spec);
}

static int call_on_path(lk_client *c, lk_call_spec *spec, lk_path_use use,
                        const lk_record *rec, const void *value,
                        const lk_call *call)
{
  int err = lk__call_take_options(c, spec, call);

  if (err != 0)
    return err;
  if (!lk__path_valid(spec->path, use))
    return LK_ERR_BAD_PATH;
  spec->path = lk__path_rest(c->hosts.chroot, spec->path, use);
  return lk__call_send(c, spec, rec, value);
}

/* Queue a request that names the node spec->path and sets no watch. */
static int call_on_node(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                        const void *value, const lk_call *call)
{
  return call_on_path(c, spec, LK_PATH_OF_NODE, rec, value, call);
}

/* Queue a request that creates a node with `flags`. */
static int call_create(lk_client *c, lk_call_spec *spec, int flags,
                       const lk_record *rec, const void *value,
                       const lk_call *call)
{
  return call_on_path(c, spec, lk__create_path_use(flags), rec, value, call);
}

/* Queue a read of one node, which may set a watch. */
static int call_read(lk_client *c, lk_call_spec *spec, const lk_call *call)
{
  int err = lk__call_take_watch_options(c, spec, call);

  if (err != 0)
    return err;
  if (!lk__path_valid(spec->path, LK_PATH_OF_NODE))
    return LK_ERR_BAD_PATH;
  if (spec->chroot == NULL) {
    spec->path = lk__path_rest(c->hosts.chroot, spec->path, LK_PATH_OF_NODE);
    spec->chroot = c->hosts.chroot;
  }
  struct lk_path_watch_request r = {.watch = asks_for_watch(spec)};

  return lk__call_send(c, spec, &lk__path_watch_request_record, &r);
}

/* ---- nodes --------------------------------------------------------------- */

/* The path of each request is in lk_call_spec, so the structs of the bodies
 * leave it empty. */

int lk_exists(lk_client *c, const char *path, const lk_call *call,
              lk_stat_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_EXISTS,
                       .path = path,
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_read(c, &spec, call);
}

int lk_get(lk_client *c, const char *path, const lk_call *call, lk_get_cb done,
           void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_DATA,
                       .path = path,
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_read(c, &spec, call);
}

int lk_get_children(lk_client *c, const char *path, const lk_call *call,
                    lk_children_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_CHILDREN2,
                       .path = path,
                       .kind = LK_WATCH_KIND_CHILD,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_read(c, &spec, call);
}

int lk_delete(lk_client *c, const char *path, int32_t version,
              const lk_call *call, lk_done_cb done, void *arg)
{
  struct lk_path_version_request r = {.version = version};
  lk_call_spec spec = {.op = LK_OPCODE_DELETE,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  if (version < -1)
    return LK_ERR_BAD_ARGUMENT;
  return call_on_node(c, &spec, &lk__path_version_request_record, &r, call);
}

int lk_set(lk_client *c, const char *path, lk_bytes data, int32_t version,
           const lk_call *call, lk_stat_cb done, void *arg)
{
  struct lk_set_data_request r = {.data = data, .version = version};
  lk_call_spec spec = {.op = LK_OPCODE_SET_DATA,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  if (version < -1)
    return LK_ERR_BAD_ARGUMENT;
  return call_on_node(c, &spec, &lk__set_data_request_record, &r, call);
}

int lk_server_sync(lk_client *c, const char *path, const lk_call *call,
                   lk_done_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_SYNC,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_on_node(c, &spec, &lk__path_request_record, &r, call);
}

int lk_get_acl(lk_client *c, const char *path, const lk_call *call,
               lk_acl_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_GET_ACL,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_on_node(c, &spec, &lk__path_request_record, &r, call);
}

int lk_set_acl(lk_client *c, const char *path, const lk_acls *acl,
               int32_t version, const lk_call *call, lk_stat_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_SET_ACL,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  if (version < -1 || acl == NULL)
    return LK_ERR_BAD_ARGUMENT;
  struct lk_set_acl_request r = {.acl = lk__vec_of(acl->entries, acl->count),
                                 .version = version};

  return call_on_node(c, &spec, &lk__set_acl_request_record, &r, call);
}

int lk_count_descendants(lk_client *c, const char *path, const lk_call *call,
                         lk_count_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_GET_ALL_CHILDREN_NUMBER,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_on_node(c, &spec, &lk__path_request_record, &r, call);
}

/* The prefix is compared with the paths as text and need not be a valid path,
 * so only its "/" is checked. */
int lk_ephemerals(lk_client *c, const char *prefix, const lk_call *call,
                  lk_paths_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_GET_EPHEMERALS,
                       .path = prefix,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_options(c, &spec, call);

  if (err != 0)
    return err;
  if (prefix == NULL || prefix[0] == '\0')
    spec.path = "/";
  if (spec.path[0] != '/')
    return LK_ERR_BAD_PATH;
  return lk__call_send(c, &spec, &lk__path_request_record, &r);
}

/* ---- creates ------------------------------------------------------------- */

static struct lk_create_request create_body(lk_bytes data, const lk_acls *acl,
                                            int32_t flags)
{
  if (acl == NULL)
    acl = lk_acl_open();
  return (struct lk_create_request){.data = data,
                                    .acl = lk__vec_of(acl->entries, acl->count),
                                    .flags = flags};
}

static int queue_create(lk_client *c, int32_t op, const char *path,
                        lk_bytes data, const lk_acls *acl, int flags,
                        const lk_call *call, lk_create_cb done, void *arg)
{
  if (!lk__create_flags_valid(flags))
    return LK_ERR_BAD_ARGUMENT;
  struct lk_create_request r = create_body(data, acl, flags);
  lk_call_spec spec = {.op = lk__create_opcode(op, flags),
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_create(c, &spec, flags, &lk__create_request_record, &r, call);
}

int lk_create(lk_client *c, const char *path, lk_bytes data, const lk_acls *acl,
              int flags, const lk_call *call, lk_create_cb done, void *arg)
{
  return queue_create(c, LK_OPCODE_CREATE, path, data, acl, flags, call, done,
                      arg);
}

int lk_create2(lk_client *c, const char *path, lk_bytes data,
               const lk_acls *acl, int flags, const lk_call *call,
               lk_create_cb done, void *arg)
{
  return queue_create(c, LK_OPCODE_CREATE2, path, data, acl, flags, call, done,
                      arg);
}

int lk_create_ttl(lk_client *c, const char *path, lk_bytes data,
                  const lk_acls *acl, int flags, int64_t ttl_ms,
                  const lk_call *call, lk_create_cb done, void *arg)
{
  if (!lk__create_ttl_valid(flags, ttl_ms))
    return LK_ERR_BAD_ARGUMENT;
  struct lk_create_ttl_request r = {
      .create = create_body(data, acl, lk__create_ttl_flags(flags)),
      .ttl_ms = ttl_ms};
  lk_call_spec spec = {.op = LK_OPCODE_CREATE_TTL,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_create(c, &spec, flags, &lk__create_ttl_request_record, &r, call);
}

/* ---- multi and multiRead ------------------------------------------------- */

static lk_op create_operation(int32_t type, const char *path, lk_bytes data,
                              const lk_acls *acl, int flags)
{
  return (lk_op){.type = type,
                 .flags = flags,
                 .version = -1,
                 .path = path,
                 .data = data,
                 .acl = acl};
}

lk_op lk_op_create(const char *path, lk_bytes data, const lk_acls *acl,
                   int flags)
{
  return create_operation(LK_OP_CREATE, path, data, acl, flags);
}

lk_op lk_op_create2(const char *path, lk_bytes data, const lk_acls *acl,
                    int flags)
{
  return create_operation(LK_OP_CREATE2, path, data, acl, flags);
}

lk_op lk_op_create_ttl(const char *path, lk_bytes data, const lk_acls *acl,
                       int flags, int64_t ttl_ms)
{
  lk_op op = create_operation(LK_OP_CREATE_TTL, path, data, acl, flags);

  op.ttl_ms = ttl_ms;
  return op;
}

lk_op lk_op_delete(const char *path, int32_t version)
{
  return (lk_op){.type = LK_OP_DELETE, .version = version, .path = path};
}

lk_op lk_op_set(const char *path, lk_bytes data, int32_t version)
{
  return (lk_op){
      .type = LK_OP_SET, .version = version, .path = path, .data = data};
}

lk_op lk_op_check(const char *path, int32_t version)
{
  return (lk_op){.type = LK_OP_CHECK, .version = version, .path = path};
}

lk_read lk_read_get(const char *path)
{
  return (lk_read){.type = LK_READ_GET, .path = path};
}

lk_read lk_read_get_children(const char *path)
{
  return (lk_read){.type = LK_READ_GET_CHILDREN, .path = path};
}

/* A program with newer headers may use the reserved members. */
static bool is_unused(const uint64_t reserved[2])
{
  return (reserved[0] | reserved[1]) == 0;
}

static int check_operation(const lk_op *op)
{
  lk_path_use path_use = LK_PATH_OF_NODE;

  if (!is_unused(op->reserved))
    return LK_ERR_BAD_ARGUMENT;
  switch (op->type) {
  case LK_OP_CREATE:
  case LK_OP_CREATE2:
    if (!lk__create_flags_valid(op->flags))
      return LK_ERR_BAD_ARGUMENT;
    path_use = lk__create_path_use(op->flags);
    break;
  case LK_OP_CREATE_TTL:
    if (!lk__create_ttl_valid(op->flags, op->ttl_ms))
      return LK_ERR_BAD_ARGUMENT;
    path_use = lk__create_path_use(op->flags);
    break;
  case LK_OP_DELETE:
  case LK_OP_SET:
  case LK_OP_CHECK:
    if (op->version < -1)
      return LK_ERR_BAD_ARGUMENT;
    break;
  default: return LK_ERR_BAD_ARGUMENT;
  }
  return lk__path_valid(op->path, path_use) ? 0 : LK_ERR_BAD_PATH;
}

int lk_multi(lk_client *c, const lk_op *ops, size_t count, const lk_call *call,
             lk_multi_cb done, void *arg)
{
  static const lk_op none; /* `ops` must not be NULL: see lk_call_spec */
  lk_call_spec spec = {.op = LK_OPCODE_MULTI,
                       .ops = count == 0 ? &none : ops,
                       .operations = count,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_options(c, &spec, call);

  for (size_t i = 0; i < count && err == 0; i++)
    err = check_operation(&ops[i]);
  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}

static int check_read_operation(const lk_read *r)
{
  if ((r->type != LK_READ_GET && r->type != LK_READ_GET_CHILDREN) ||
      !is_unused(r->reserved))
    return LK_ERR_BAD_ARGUMENT;
  return lk__path_valid(r->path, LK_PATH_OF_NODE) ? 0 : LK_ERR_BAD_PATH;
}

int lk_multi_read(lk_client *c, const lk_read *reads, size_t count,
                  const lk_call *call, lk_multi_read_cb done, void *arg)
{
  static const lk_read none; /* `reads` must not be NULL: see lk_call_spec */
  lk_call_spec spec = {.op = LK_OPCODE_MULTI_READ,
                       .reads = count == 0 ? &none : reads,
                       .operations = count,
                       .done = (void (*)(void))done,
                       .arg = arg};
  int err = lk__call_take_options(c, &spec, call);

  for (size_t i = 0; i < count && err == 0; i++)
    err = check_read_operation(&reads[i]);
  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}

/* ---- the configuration of the ensemble ----------------------------------- */

/* The node of the configuration is never below the client's chroot, so the
 * chroot of this request is empty. */
int lk_get_config(lk_client *c, const lk_call *call, lk_get_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_DATA,
                       .chroot = "",
                       .path = "/zookeeper/config",
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return call_read(c, &spec, call);
}

int lk_reconfig(lk_client *c, const lk_reconfiguration *change,
                const lk_call *call, lk_get_cb done, void *arg)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_reconfiguration);
  lk_reconfiguration own;
  int err = lk__client_copy_options(c, &what, &own, change);

  if (err != 0)
    return err;
  struct lk_reconfig_request r = {.joining = lk_text(own.joining),
                                  .leaving = lk_text(own.leaving),
                                  .new_members = lk_text(own.members),
                                  .config_id = own.version};
  lk_call_spec spec = {
      .op = LK_OPCODE_RECONFIG, .done = (void (*)(void))done, .arg = arg};
  bool incremental = own.joining != NULL || own.leaving != NULL;
  bool is_new_list = own.members != NULL;

  err = lk__call_take_options(c, &spec, call);
  /* A change is either incremental or a new list of all members. */
  if (err == 0 && incremental == is_new_list)
    err = LK_ERR_BAD_ARGUMENT;
  return err != 0 ? err
                  : lk__call_send(c, &spec, &lk__reconfig_request_record, &r);
}
