/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/sync/shown.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char shown[2048];

void shown_clear(void)
{
  shown[0] = '\0';
}

const char *shown_text(void)
{
  return shown;
}

void shown_add(const char *format, ...)
{
  size_t len = strlen(shown);
  va_list args;

  va_start(args, format);
  vsnprintf(shown + len, sizeof shown - len, format, args);
  va_end(args);
}

static void add_bytes(const char *name, lk_bytes b)
{
  if (b.at == NULL) {
    shown_add(" %s=null", name);
    return;
  }
  ck_assert_int_eq(((const char *)b.at)[b.len],
                   '\0'); /* lk_sync_result says so */
  shown_add(" %s=\"%s\"", name, (const char *)b.at);
}

void shown_add_stat(const lk_stat *s)
{
  shown_add(" {%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
            " %d %d %d %" PRId64 " %d %d %" PRId64 "}",
            s->czxid, s->mzxid, s->ctime, s->mtime, (int)s->version,
            (int)s->cversion, (int)s->aversion, s->ephemeral_owner,
            (int)s->data_length, (int)s->num_children, s->pzxid);
}

static void add_names(const lk_bytes *names, size_t count)
{
  for (size_t i = 0; i < count; i++)
    add_bytes("name", names[i]);
}

static void add_lists(const lk_sync_result *r)
{
  if (r->names != NULL)
    add_names(r->names, r->count);
  for (size_t i = 0; r->acl != NULL && i < r->acl->count; i++) {
    shown_add(" perms=%d", (int)r->acl->entries[i].perms);
    add_bytes("scheme", r->acl->entries[i].scheme);
    add_bytes("id", r->acl->entries[i].id);
  }
  for (size_t i = 0; r->ids != NULL && i < r->count; i++) {
    add_bytes("scheme", r->ids[i].scheme);
    add_bytes("user", r->ids[i].user);
  }
}

static void add_parts(const lk_sync_result *r)
{
  for (size_t i = 0; r->results != NULL && i < r->count; i++) {
    const lk_op_result *o = &r->results[i];

    shown_add(" | %d %d", (int)o->type, o->err);
    if (o->path != NULL)
      shown_add(" %s", o->path);
    if (o->stat != NULL)
      shown_add_stat(o->stat);
  }
  for (size_t i = 0; r->reads != NULL && i < r->count; i++) {
    const lk_read_result *o = &r->reads[i];

    shown_add(" | %d %d", (int)o->type, o->err);
    if (o->type == LK_READ_GET)
      add_bytes("data", o->data);
    if (o->stat != NULL)
      shown_add_stat(o->stat);
    add_names(o->names, o->count);
  }
}

void shown_add_result(lk_sync_result *r)
{
  static const lk_stat empty_stat;

  if (r == NULL)
    return;
  shown_add(" result");
  if (r->path != NULL)
    shown_add(" %s", r->path);
  if (r->data.at != NULL)
    add_bytes("data", r->data);
  add_lists(r);
  add_parts(r);
  if (memcmp(&r->stat, &empty_stat, sizeof empty_stat) != 0)
    shown_add_stat(&r->stat);
  if (r->count != 0)
    shown_add(" count=%zu", r->count);
  if (r->zxid != 0)
    shown_add(" zxid=%" PRId64, r->zxid);
  lk_sync_result_free(r);
}
