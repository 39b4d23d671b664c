/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/request_completion.h"

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"

/* These functions invoke the callback of one kind of request. After an error it
 * gets NULL and 0 instead of the values of the body. */

static void complete_create(lk_client *c, const lk_request *r, int err,
                            const lk_reply_body *body)
{
  lk_create_cb done = (lk_create_cb)r->done;
  bool with_stat = r->op != LK_OPCODE_CREATE;

  done(c, err, err == 0 ? body->path.path.at : NULL,
       err == 0 && with_stat ? &body->path_stat.stat : NULL, r->arg);
}

static void complete_get(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_get_cb done = (lk_get_cb)r->done;

  done(c, err, err == 0 ? &body->data.data : NULL,
       err == 0 ? &body->data.stat : NULL, r->arg);
}

static void complete_acl(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_acl_cb done = (lk_acl_cb)r->done;

  if (err != 0) {
    done(c, err, NULL, NULL, r->arg);
    return;
  }
  lk_acls acl = {body->acl.acl.items, body->acl.acl.count};

  done(c, 0, &acl, &body->acl.stat, r->arg);
}

static void complete_children(lk_client *c, const lk_request *r, int err,
                              const lk_reply_body *body)
{
  lk_children_cb done = (lk_children_cb)r->done;

  done(c, err, err == 0 ? body->names_stat.names.items : NULL,
       err == 0 ? body->names_stat.names.count : 0,
       err == 0 ? &body->names_stat.stat : NULL, r->arg);
}

static void complete_paths(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_paths_cb done = (lk_paths_cb)r->done;

  done(c, err, err == 0 ? body->paths.paths.items : NULL,
       err == 0 ? body->paths.paths.count : 0, r->arg);
}

static void complete_who(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_identities_cb done = (lk_identities_cb)r->done;

  done(c, err, err == 0 ? body->who.ids.items : NULL,
       err == 0 ? body->who.ids.count : 0, r->arg);
}

static void complete_multi(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_multi_cb done = (lk_multi_cb)r->done;

  /* The reply to a failed multi has no error, but its results have. */
  done(c, err == 0 ? body->multi.outcome : err,
       err == 0 ? body->multi.results : NULL, err == 0 ? r->operations : 0,
       r->arg);
}

static void complete_reads(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_multi_read_cb done = (lk_multi_read_cb)r->done;

  done(c, err, err == 0 ? body->reads : NULL, err == 0 ? r->operations : 0,
       r->arg);
}

void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body)
{
  c->requests.open--;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (r->done == NULL)
    return;
  switch (r->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: complete_create(c, r, err, body); break;
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_SET_DATA:
  case LK_OPCODE_SET_ACL:
    ((lk_stat_cb)r->done)(c, err, err == 0 ? &body->stat.stat : NULL, r->arg);
    break;
  case LK_OPCODE_GET_DATA:
  case LK_OPCODE_RECONFIG: complete_get(c, r, err, body); break;
  case LK_OPCODE_GET_ACL: complete_acl(c, r, err, body); break;
  case LK_OPCODE_GET_CHILDREN2: complete_children(c, r, err, body); break;
  case LK_OPCODE_GET_EPHEMERALS: complete_paths(c, r, err, body); break;
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
    ((lk_count_cb)r->done)(c, err, err == 0 ? body->count.count : 0, r->arg);
    break;
  case LK_OPCODE_WHO_AM_I: complete_who(c, r, err, body); break;
  case LK_OPCODE_MULTI: complete_multi(c, r, err, body); break;
  case LK_OPCODE_MULTI_READ: complete_reads(c, r, err, body); break;
  default: ((lk_done_cb)r->done)(c, err, r->arg); break;
  }
}
