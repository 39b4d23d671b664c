/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/reply_body.h"

#include "proto/wire/multi.h"
#include "proto/wire/path.h"

/* A path of a create's reply as a C string without chroot; NULL: it is not
 * one, or there is no memory for it. */
static const char *text_path(const lk_reply_context *x, lk_bytes path, int *err)
{
  lk_bytes own = lk__path_strip(x->chroot, x->chroot_len, path);

  *err = LK_ERR_PROTOCOL;
  if (path.at == NULL || memchr(own.at, '\0', own.len) != NULL)
    return NULL;
  char *s = lk__arena_take(x->arena, own.len + 1, 1);

  if (s == NULL) {
    *err = LK_ERR_NO_MEMORY;
    return NULL;
  }
  memcpy(s, own.at, own.len);
  *err = 0;
  return s;
}

/* Paths of a list, without chroot. */
static int strip_paths(const lk_reply_context *x, lk_vec *paths)
{
  lk_bytes *items = paths->items;

  for (size_t i = 0; i < paths->count; i++) {
    if (items[i].at == NULL)
      return LK_ERR_PROTOCOL;
    items[i] = lk__path_strip(x->chroot, x->chroot_len, items[i]);
  }
  return 0;
}

int lk__reply_body_decode(const lk_reply_context *x, lk_reader *in,
                          lk_reply_body *out)
{
  int err = 0;

  if (x->op == LK_OPCODE_MULTI)
    return lk__multi_decode(in, x->operations, x->chroot, x->arena,
                            &out->multi.results, &out->multi.outcome);
  if (x->op == LK_OPCODE_MULTI_READ)
    return lk__multi_read_decode(in, x->operations, x->arena, &out->reads);
  const lk_opcode_info *info = lk__opcode_info(x->op);

  err = lk__record_decode(info->reply, out, in, x->arena);
  if (err != 0)
    return err;
  switch (x->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    /* both shapes begin with the path */
    out->path.path.at = text_path(x, out->path.path, &err);
    break;
  case LK_OPCODE_GET_EPHEMERALS: err = strip_paths(x, &out->names.names); break;
  default: break;
  }
  return err;
}
