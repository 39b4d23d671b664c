/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/shown.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *shown_directory;
static char shown[4096];
static bool in_result; /* of the blocking interface: texts end with a NUL */

/* ck_assert() writes to a file each time, so that a thread may be cancelled. */
static void check(bool holds, const char *what)
{
  if (!holds)
    ck_abort_msg("%s", what);
}

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
  check(!in_result || ((const char *)b.at)[b.len] == '\0', "no NUL behind it");
  shown_add(" %s=\"%.*s\"", name, (int)b.len, (const char *)b.at);
}

static void add_path(lk_bytes b)
{
  char text[256];
  const char *path = text;

  snprintf(text, sizeof text, "%.*s", (int)b.len, (const char *)b.at);
  if (shown_directory != NULL) {
    size_t len = strlen(shown_directory);

    check(strncmp(path, shown_directory, len) == 0, path);
    path += len + strlen("/");
    path += strcspn(path, "/");
  }
  shown_add(" %s", path);
}

void shown_add_path(const char *path)
{
  add_path(lk_text(path));
}

void shown_add_data(lk_bytes data)
{
  add_bytes("data", data);
}

void shown_add_stat(const lk_stat *s)
{
  if (s == NULL)
    return;
  if (shown_directory != NULL) {
    shown_add(" {version %d, aversion %d, %d children}", (int)s->version,
              (int)s->aversion, (int)s->num_children);
    return;
  }
  shown_add(" {%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
            " %d %d %d %" PRId64 " %d %d %" PRId64 "}",
            s->czxid, s->mzxid, s->ctime, s->mtime, (int)s->version,
            (int)s->cversion, (int)s->aversion, s->ephemeral_owner,
            (int)s->data_length, (int)s->num_children, s->pzxid);
}

static int compare_names(const void *a, const void *b)
{
  const lk_bytes *x = a, *y = b;
  size_t len = x->len < y->len ? x->len : y->len;

  return memcmp(x->at, y->at, len);
}

void shown_add_names(const lk_bytes *names, size_t count)
{
  lk_bytes sorted[8];

  check(count <= 8, "too many names");
  if (count == 0)
    return;
  memcpy(sorted, names, count * sizeof sorted[0]);
  qsort(sorted, count, sizeof sorted[0], compare_names);
  for (size_t i = 0; i < count; i++) {
    if (sorted[i].len > 0 && *(const char *)sorted[i].at == '/')
      add_path(sorted[i]);
    else
      add_bytes("name", sorted[i]);
  }
}

void shown_add_acl(const lk_acls *acl)
{
  for (size_t i = 0; i < acl->count; i++) {
    shown_add(" perms=%d", (int)acl->entries[i].perms);
    add_bytes("scheme", acl->entries[i].scheme);
    add_bytes("id", acl->entries[i].id);
  }
}

void shown_add_ids(const lk_identity *ids, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    add_bytes("scheme", ids[i].scheme);
    add_bytes("user", ids[i].user);
  }
}

void shown_add_results(const lk_op_result *results, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const lk_op_result *o = &results[i];

    shown_add(" | %d %d", (int)o->type, o->err);
    if (o->path != NULL)
      shown_add_path(o->path);
    shown_add_stat(o->stat);
  }
}

void shown_add_reads(const lk_read_result *reads, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    const lk_read_result *o = &reads[i];

    shown_add(" | %d %d", (int)o->type, o->err);
    if (o->type == LK_READ_GET)
      add_bytes("data", o->data);
    shown_add_stat(o->stat);
    shown_add_names(o->names, o->count);
  }
}

void shown_add_result(lk_sync_result *r)
{
  static const lk_stat empty_stat;

  if (r == NULL)
    return;
  in_result = true;
  if (shown_directory == NULL)
    shown_add(" result");
  if (r->path != NULL)
    shown_add_path(r->path);
  if (r->data.at != NULL)
    shown_add_data(r->data);
  if (r->names != NULL)
    shown_add_names(r->names, r->count);
  if (r->acl != NULL)
    shown_add_acl(r->acl);
  if (r->ids != NULL)
    shown_add_ids(r->ids, r->count);
  if (r->results != NULL)
    shown_add_results(r->results, r->count);
  if (r->reads != NULL)
    shown_add_reads(r->reads, r->count);
  if (memcmp(&r->stat, &empty_stat, sizeof empty_stat) != 0)
    shown_add_stat(&r->stat);
  if (shown_directory == NULL && r->count != 0)
    shown_add(" count=%zu", r->count);
  if (shown_directory == NULL && r->zxid != 0)
    shown_add(" zxid=%" PRId64, r->zxid);
  in_result = false;
  lk_sync_result_free(r);
}
