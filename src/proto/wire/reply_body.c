/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/reply_body.h"

#include "proto/wire/multi.h"
#include "proto/wire/path.h"

/* Copy the path in the reply to a create as a C string without the chroot.
 * Returns NULL and sets `*err` if the path is absent or contains a NUL, or if
 * there is no memory. */
static const char *copy_created_path(const lk_reply_context *context,
                                     lk_bytes path, int *err)
{
  *err = LK_ERR_PROTOCOL;
  if (path.at == NULL)
    return NULL;
  path = lk__path_strip(context->chroot, context->chroot_len, path);
  if (memchr(path.at, '\0', path.len) != NULL)
    return NULL;
  char *copy = lk__arena_take(context->arena, path.len + 1, 1);

  if (copy == NULL) {
    *err = LK_ERR_NO_MEMORY;
    return NULL;
  }
  memcpy(copy, path.at, path.len);
  copy[path.len] = '\0';
  *err = 0;
  return copy;
}

/* Remove the chroot from each path of a list. */
static int strip_paths(const lk_reply_context *context, lk_vec *paths)
{
  lk_bytes *items = paths->items;

  for (size_t i = 0; i < paths->count; i++) {
    if (items[i].at == NULL)
      return LK_ERR_PROTOCOL;
    items[i] = lk__path_strip(context->chroot, context->chroot_len, items[i]);
  }
  return 0;
}

static int check_child_names(const lk_vec *names)
{
  return lk__child_names_valid(names->items, names->count) ? 0
                                                           : LK_ERR_PROTOCOL;
}

int lk__reply_body_decode(const lk_reply_context *context, lk_reader *in,
                          lk_reply_body *out)
{
  int err = 0;

  if (context->op == LK_OPCODE_MULTI)
    return lk__multi_decode(in, context->operations, context->chroot,
                            context->arena, &out->multi.results,
                            &out->multi.outcome);
  if (context->op == LK_OPCODE_MULTI_READ)
    return lk__multi_read_decode(in, context->operations, context->arena,
                                 &out->reads);
  const lk_opcode_info *info = lk__opcode_info(context->op);

  /* The struct of this record is a member of the union. */
  err = lk__record_decode(info->reply, out, in, context->arena);
  if (err != 0)
    return err;
  switch (context->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL:
    /* path_reply and path_stat_reply both begin with the path, so one member
     * serves both. Callbacks get only the C string, not its length. */
    out->path.path.at = copy_created_path(context, out->path.path, &err);
    break;
  case LK_OPCODE_GET_CHILDREN2:
    err = check_child_names(&out->names_stat.names);
    break;
  case LK_OPCODE_GET_EPHEMERALS:
    err = strip_paths(context, &out->names.names);
    break;
  default: break;
  }
  return err;
}
