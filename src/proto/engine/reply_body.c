/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/reply_body.h"

#include "proto/engine/invariants.h"
#include "proto/wire/multi.h"
#include "proto/wire/path.h"

/* ---- decode ------------------------------------------------------------- */

/* A path of a create's reply as a C string without chroot; NULL: it is not
 * one, or there is no memory for it. */
static const char *text_path(lk_client *c, lk_bytes path, int *err)
{
  lk_bytes own = lk__path_strip(c->hosts.chroot, c->hosts.chroot_len, path);

  *err = LK_ERR_PROTOCOL;
  if (path.at == NULL || memchr(own.at, '\0', own.len) != NULL)
    return NULL;
  char *s = lk__arena_take(&c->arena, own.len + 1, 1);

  if (s == NULL) {
    *err = LK_ERR_NO_MEMORY;
    return NULL;
  }
  memcpy(s, own.at, own.len);
  *err = 0;
  return s;
}

/* Paths of a list, without chroot. */
static int strip_all(const lk_client *c, lk_vec *paths)
{
  lk_bytes *items = paths->items;

  for (size_t i = 0; i < paths->count; i++) {
    if (items[i].at == NULL)
      return LK_ERR_PROTOCOL;
    items[i] = lk__path_strip(c->hosts.chroot, c->hosts.chroot_len, items[i]);
  }
  return 0;
}

int lk__reply_body_decode(lk_client *c, const lk_request *r, lk_reader *in,
                          lk_reply_body *out)
{
  int err = 0;

  if (r->op == LK_OPCODE_MULTI)
    return lk__multi_decode(in, r->parts, c->hosts.chroot, &c->arena,
                            &out->multi.results, &out->multi.outcome);
  if (r->op == LK_OPCODE_MULTI_READ)
    return lk__multi_read_decode(in, r->parts, &c->arena, &out->reads);
  const lk_opcode_info *info = lk__opcode_info(r->op);

  err = lk__record_decode(info->reply, out, in, &c->arena);
  if (err != 0)
    return err;
  switch (r->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    /* both shapes begin with the path */
    out->path.path.at = text_path(c, out->path.path, &err);
    break;
  case LK_OPCODE_GET_EPHEMERALS: err = strip_all(c, &out->names.names); break;
  default: break;
  }
  return err;
}

/* ---- tell --------------------------------------------------------------- */

static void tell_create(lk_client *c, const lk_request *r, int err,
                        const lk_reply_body *body)
{
  lk_create_cb done = (lk_create_cb)r->done;
  bool with_stat = r->op != LK_OPCODE_CREATE;

  done(c, err, err == 0 ? body->path.path.at : NULL,
       err == 0 && with_stat ? &body->path_stat.stat : NULL, r->arg);
}

static void tell_get(lk_client *c, const lk_request *r, int err,
                     const lk_reply_body *body)
{
  lk_get_cb done = (lk_get_cb)r->done;

  done(c, err, err == 0 ? &body->data.data : NULL,
       err == 0 ? &body->data.stat : NULL, r->arg);
}

static void tell_acl(lk_client *c, const lk_request *r, int err,
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

static void tell_children(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body)
{
  lk_children_cb done = (lk_children_cb)r->done;
  done(c, err, err == 0 ? body->names_stat.names.items : NULL,
       err == 0 ? body->names_stat.names.count : 0,
       err == 0 ? &body->names_stat.stat : NULL, r->arg);
}

static void tell_paths(lk_client *c, const lk_request *r, int err,
                       const lk_reply_body *body)
{
  lk_paths_cb done = (lk_paths_cb)r->done;

  done(c, err, err == 0 ? body->names.names.items : NULL,
       err == 0 ? body->names.names.count : 0, r->arg);
}

static void tell_who(lk_client *c, const lk_request *r, int err,
                     const lk_reply_body *body)
{
  lk_identities_cb done = (lk_identities_cb)r->done;

  done(c, err, err == 0 ? body->who.ids.items : NULL,
       err == 0 ? body->who.ids.count : 0, r->arg);
}

static void tell_multi(lk_client *c, const lk_request *r, int err,
                       const lk_reply_body *body)
{
  lk_multi_cb done = (lk_multi_cb)r->done;

  done(c, err == 0 ? body->multi.outcome : err,
       err == 0 ? body->multi.results : NULL, err == 0 ? r->parts : 0, r->arg);
}

static void tell_reads(lk_client *c, const lk_request *r, int err,
                       const lk_reply_body *body)
{
  lk_multi_read_cb done = (lk_multi_read_cb)r->done;

  done(c, err, err == 0 ? body->reads : NULL, err == 0 ? r->parts : 0, r->arg);
}

void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body)
{
  c->open--;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (r->done == NULL)
    return;
  switch (r->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: tell_create(c, r, err, body); break;
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_SET_DATA:
  case LK_OPCODE_SET_ACL:
    ((lk_stat_cb)r->done)(c, err, err == 0 ? &body->stat.stat : NULL, r->arg);
    break;
  case LK_OPCODE_GET_DATA:
  case LK_OPCODE_RECONFIG: tell_get(c, r, err, body); break;
  case LK_OPCODE_GET_ACL: tell_acl(c, r, err, body); break;
  case LK_OPCODE_GET_CHILDREN2: tell_children(c, r, err, body); break;
  case LK_OPCODE_GET_EPHEMERALS: tell_paths(c, r, err, body); break;
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
    ((lk_count_cb)r->done)(c, err, err == 0 ? body->count.count : 0, r->arg);
    break;
  case LK_OPCODE_WHO_AM_I: tell_who(c, r, err, body); break;
  case LK_OPCODE_MULTI: tell_multi(c, r, err, body); break;
  case LK_OPCODE_MULTI_READ: tell_reads(c, r, err, body); break;
  default: ((lk_done_cb)r->done)(c, err, r->arg); break;
  }
}
