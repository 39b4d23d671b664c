/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/normal_form.h"

#include "proto/wire/multi.h"
#include "support/wire.h"

#include <stdlib.h>

/* ---- zxids, times, sessions --------------------------------------------- */

/* A zxid that appears for the first time belongs to a transaction of this
 * moment. */
static normal_moment *moment_of(normal_form *p, int64_t zxid)
{
  size_t want = (size_t)zxid + 1;

  if (want > p->nmoments) {
    size_t room = want * 2;
    normal_moment *more = realloc(p->moments, room * sizeof *more);

    if (more == NULL)
      abort();
    p->moments = more;
    for (; p->nmoments < want; p->nmoments++)
      more[p->nmoments] = (normal_moment){p->from_ms, p->to_ms, 0};
  }
  return &p->moments[zxid];
}

static int64_t normal_zxid(normal_form *p, int64_t zxid)
{
  if (zxid <= 0)
    return zxid;
  zxid -= p->zxid_base;
  if (zxid > 0 && zxid < 100000000)
    moment_of(p, zxid);
  return zxid;
}

int64_t normal_to_zxid(const normal_form *p, int64_t zxid)
{
  return zxid <= 0 ? zxid : zxid + p->zxid_base;
}

static int64_t normal_time(normal_form *p, int64_t zxid, int64_t ms)
{
  normal_moment *m;

  if (zxid <= 0 || (size_t)zxid >= p->nmoments)
    return ms;
  m = &p->moments[zxid];
  if (m->at_ms == 0 && ms >= m->from_ms && ms <= m->to_ms)
    m->at_ms = ms;
  return ms == m->at_ms ? zxid : ms;
}

static size_t find_session(const normal_form *p, int64_t id)
{
  size_t i = p->nsessions;

  while (i > 0 && p->sessions[i - 1].id != id)
    i--;
  return i;
}

/* An unknown session id is not replaced, so that both sides differ. */
static int64_t normal_session_of(const normal_form *p, int64_t id)
{
  size_t i = find_session(p, id);

  return i == 0 ? id : (int64_t)i;
}

static void add_session(normal_form *p, int64_t id, lk_bytes password)
{
  normal_session *more =
      realloc(p->sessions, (p->nsessions + 1) * sizeof *more);

  if (more == NULL)
    abort();
  p->sessions = more;
  more[p->nsessions].id = id;
  memcpy(more[p->nsessions++].password, password.at, 16);
}

void normal_free(normal_form *p)
{
  free(p->sessions);
  free(p->moments);
}

/* ---- records ------------------------------------------------------------ */

static void normalise_stat(normal_form *p, lk_stat *s)
{
  s->czxid = normal_zxid(p, s->czxid);
  s->mzxid = normal_zxid(p, s->mzxid);
  s->pzxid = normal_zxid(p, s->pzxid);
  s->ctime = normal_time(p, s->czxid, s->ctime);
  s->mtime = normal_time(p, s->mzxid, s->mtime);
  s->ephemeral_owner = normal_session_of(p, s->ephemeral_owner);
  if (s->version == -1 && s->aversion == -1) {
    s->data_length = 0;
    s->mtime = 0;
  }
}

static void normalise_bytes(const normal_form *p, lk_bytes *b)
{
  size_t len = strlen(p->members);

  if (len > 0 && b->len == len && memcmp(b->at, p->members, len) == 0)
    *b = lk_text("members");
}

static int compare_bytes(lk_bytes a, lk_bytes b)
{
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len == 0 ? 0 : memcmp(a.at, b.at, len);

  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_names(const void *a, const void *b)
{
  return compare_bytes(*(const lk_bytes *)a, *(const lk_bytes *)b);
}

static int compare_ids(const void *a, const void *b)
{
  const lk_identity *x = a, *y = b;
  int order = compare_bytes(x->scheme, y->scheme);

  return order != 0 ? order : compare_bytes(x->user, y->user);
}

static int compare_entries(const void *a, const void *b)
{
  const lk_acl *x = a, *y = b;
  int order = compare_bytes(x->scheme, y->scheme);

  if (order == 0)
    order = compare_bytes(x->id, y->id);
  return order != 0 ? order : (x->perms > y->perms) - (x->perms < y->perms);
}

static void sort_vector(const lk_record *of, lk_vec *v)
{
  if (v->count == 0)
    return;
  if (of == &lk__bytes_record)
    qsort(v->items, v->count, sizeof(lk_bytes), compare_names);
  else if (of == &lk__identity_record)
    qsort(v->items, v->count, sizeof(lk_identity), compare_ids);
  else if (of == &lk__acl_record)
    qsort(v->items, v->count, sizeof(lk_acl), compare_entries);
}

/* Replaces stats and sorts lists in a record. No reply has them at a greater
 * depth. */
static void normalise_value(normal_form *p, const lk_record *rec, void *value)
{
  for (size_t i = 0; i < rec->nfields; i++) {
    void *at = (char *)value + rec->fields[i].offset;

    if (rec->fields[i].kind == LK_KIND_STAT)
      normalise_stat(p, at);
    else if (rec->fields[i].kind == LK_KIND_BYTES)
      normalise_bytes(p, at);
    else if (rec->fields[i].kind == LK_KIND_VECTOR)
      sort_vector(rec->fields[i].elem, at);
  }
}

/* Copies the rest of a frame, which may be one that cannot be decoded. */
static void copy_rest(lk_reader *in, lk_buf *out)
{
  if (!lk__buf_append(out, in->at, lk__reader_left(in)))
    abort();
}

static bool one_record(normal_form *p, const lk_record *rec, lk_reader *in,
                       lk_arena *arena, lk_buf *out)
{
  lk_reader start = *in;
  void *value = lk__arena_take(arena, 1, rec->size == 0 ? 1 : rec->size);

  if (value == NULL)
    abort();
  if (lk__record_decode(rec, value, in, arena) != 0) {
    *in = start;
    return false;
  }
  normalise_value(p, rec, value);
  wire_record(out, rec, value);
  return true;
}

static void results(normal_form *p, lk_reader *in, lk_arena *arena, lk_buf *out)
{
  for (;;) {
    lk_reader start = *in;
    struct lk_multi_header head;

    if (lk__record_decode(&lk__multi_header_record, &head, in, arena) != 0) {
      *in = start;
      return;
    }
    wire_record(out, &lk__multi_header_record, &head);
    const lk_record *rec = lk__operation_record(head.type, true);

    if (head.done || rec == NULL || !one_record(p, rec, in, arena, out))
      return;
  }
}

static const lk_record *reply_of(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (op == NORMAL_EVENT)
    return &lk__watcher_event_record;
  return info == NULL ? &lk__empty_record : info->reply;
}

static bool has_parts(int32_t op)
{
  return op == LK_OPCODE_MULTI || op == LK_OPCODE_MULTI_READ;
}

static void normal_reply(normal_form *p, int32_t op, lk_reader *in,
                         lk_arena *arena, lk_buf *out)
{
  struct lk_reply_header head;
  lk_reader start = *in;

  if (lk__record_decode(&lk__reply_header_record, &head, in, NULL) != 0) {
    *in = start;
    return;
  }
  if (p->zxid_base < 0 && head.zxid > 0)
    p->zxid_base = head.zxid - 1;
  head.zxid = normal_zxid(p, head.zxid);
  if (head.zxid > p->zxid)
    p->zxid = head.zxid;
  wire_record(out, &lk__reply_header_record, &head);
  if (head.err != 0)
    return;
  if (has_parts(op))
    results(p, in, arena, out);
  else
    one_record(p, reply_of(op), in, arena, out);
}

static void normal_hello(normal_form *p, lk_reader *in, lk_buf *out)
{
  struct lk_connect_reply r;
  lk_reader start = *in;
  size_t i;

  if (lk__record_decode(&lk__connect_reply_record, &r, in, NULL) != 0) {
    *in = start;
    return;
  }
  if (r.session_id != 0 && r.password.len == 16) {
    if (find_session(p, r.session_id) == 0)
      add_session(p, r.session_id, r.password);
    i = find_session(p, r.session_id);
    r.session_id = (int64_t)i;
    if (memcmp(p->sessions[i - 1].password, r.password.at, 16) == 0)
      r.password = lk_text("");
  }
  wire_record(out, &lk__connect_reply_record, &r);
}

void normal_frame(normal_form *p, int32_t op, lk_bytes frame, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (op == NORMAL_CONNECT_REPLY)
    normal_hello(p, &in, out);
  else
    normal_reply(p, op, &in, &arena, out);
  copy_rest(&in, out);
  lk__arena_free(&arena);
}

/* ---- text --------------------------------------------------------------- */

static bool print_one(const lk_record *rec, lk_reader *in, lk_arena *arena,
                      lk_buf *out)
{
  void *value = lk__arena_take(arena, 1, rec->size == 0 ? 1 : rec->size);

  if (value == NULL)
    abort();
  if (lk__record_decode(rec, value, in, arena) != 0)
    return false;
  wire_say(out, " ");
  return lk__record_print(rec, value, out);
}

static void print_results(lk_reader *in, lk_arena *arena, lk_buf *out)
{
  lk_operation part;

  while (lk__operation_decode(in, true, arena, &part)) {
    wire_say(out, " | %s err=%d ", lk__opcode_info(part.type)->name,
             (int)part.err);
    lk__record_print(lk__operation_record(part.type, true), &part.body, out);
  }
}

static void print_reply(int32_t op, lk_reader *in, lk_arena *arena, lk_buf *out)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  struct lk_reply_header head;

  wire_say(out, "%s",
           op == NORMAL_EVENT ? "EVENT"
           : info == NULL     ? "?"
                              : info->name);
  lk__record_decode(&lk__reply_header_record, &head, in, NULL);
  wire_say(out, " ");
  lk__record_print(&lk__reply_header_record, &head, out);
  if (head.err != 0 || in->err != 0)
    return;
  if (has_parts(op))
    print_results(in, arena, out);
  else
    print_one(reply_of(op), in, arena, out);
}

void normal_print(int32_t op, lk_bytes bytes, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;

  lk__reader_init(&in, bytes.at, bytes.len);
  if (op == NORMAL_CLOSED)
    wire_say(out, "CLOSED");
  else if (op == NORMAL_SILENT)
    wire_say(out, "SILENT");
  else if (op == NORMAL_CONNECT_REPLY) {
    wire_say(out, "WELCOME");
    print_one(&lk__connect_reply_record, &in, &arena, out);
  } else
    print_reply(op, &in, &arena, out);
  if (in.err != 0)
    wire_say(out, " UNREADABLE");
  if (lk__reader_left(&in) > 0)
    wire_say(out, " and %zu bytes more", lk__reader_left(&in));
  lk__arena_free(&arena);
}
