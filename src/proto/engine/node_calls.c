/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The requests that name one node. The functions of calls.h take its path from
 * lk_call_spec, so the structs of the bodies leave it empty. */

#include "proto/engine/calls.h"
#include "proto/wire/opcode.h"

int lk_exists(lk_client *c, const char *path, const lk_call *call,
              lk_stat_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_EXISTS,
                       .path = path,
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_read(c, &spec, call);
}

int lk_get(lk_client *c, const char *path, const lk_call *call, lk_get_cb done,
           void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_DATA,
                       .path = path,
                       .kind = LK_WATCH_KIND_DATA,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_read(c, &spec, call);
}

int lk_get_children(lk_client *c, const char *path, const lk_call *call,
                    lk_children_cb done, void *arg)
{
  lk_call_spec spec = {.op = LK_OPCODE_GET_CHILDREN2,
                       .path = path,
                       .kind = LK_WATCH_KIND_CHILD,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_read(c, &spec, call);
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
  return lk__call_on_node(c, &spec, &lk__path_version_request_record, &r, call);
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
  return lk__call_on_node(c, &spec, &lk__set_data_request_record, &r, call);
}

int lk_sync(lk_client *c, const char *path, const lk_call *call,
            lk_done_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_SYNC,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_on_node(c, &spec, &lk__path_request_record, &r, call);
}

int lk_get_acl(lk_client *c, const char *path, const lk_call *call,
               lk_acl_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_GET_ACL,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_on_node(c, &spec, &lk__path_request_record, &r, call);
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

  return lk__call_on_node(c, &spec, &lk__set_acl_request_record, &r, call);
}

int lk_count_descendants(lk_client *c, const char *path, const lk_call *call,
                         lk_count_cb done, void *arg)
{
  struct lk_path_request r = {0};
  lk_call_spec spec = {.op = LK_OPCODE_GET_ALL_CHILDREN_NUMBER,
                       .path = path,
                       .done = (void (*)(void))done,
                       .arg = arg};

  return lk__call_on_node(c, &spec, &lk__path_request_record, &r, call);
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
