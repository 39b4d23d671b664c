/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/normal_form.h"

#include "proto/wire/multi.h"
#include "support/wire.h"

#include <stdlib.h>

/* ---- zxids, times, sessions --------------------------------------------- */

/* With random bytes in place of a zxid, the list of moments would be too
 * long. */
enum { ZXIDS_MAX = 100000000 };

/* A zxid that appears for the first time belongs to a transaction that was
 * executed between from_ms and to_ms. */
static void add_moments_up_to(normal_form *form, int64_t zxid)
{
  size_t want = (size_t)zxid + 1;

  if (want > form->nmoments) {
    size_t room = want * 2;
    normal_moment *more = realloc(form->moments, room * sizeof *more);

    if (more == NULL)
      abort();
    form->moments = more;
    for (; form->nmoments < want; form->nmoments++)
      more[form->nmoments] = (normal_moment){form->from_ms, form->to_ms, 0};
  }
}

static int64_t normal_zxid(normal_form *form, int64_t zxid)
{
  if (zxid <= 0)
    return zxid;
  zxid -= form->zxid_base;
  if (zxid > 0 && zxid < ZXIDS_MAX)
    add_moments_up_to(form, zxid);
  return zxid;
}

int64_t normal_to_zxid(const normal_form *form, int64_t zxid)
{
  return zxid <= 0 ? zxid : zxid + form->zxid_base;
}

/* The first time that is reported within the bounds of the transaction becomes
 * its time. `zxid` is in normal form. */
static int64_t normal_time(normal_form *form, int64_t zxid, int64_t ms)
{
  normal_moment *m;

  if (zxid <= 0 || (size_t)zxid >= form->nmoments)
    return ms;
  m = &form->moments[zxid];
  if (m->at_ms == 0 && ms >= m->from_ms && ms <= m->to_ms)
    m->at_ms = ms;
  return ms == m->at_ms ? zxid : ms;
}

/* The number of a session, which counts from 1; 0: it is unknown. */
static size_t session_number(const normal_form *form, int64_t id)
{
  size_t number = form->nsessions;

  while (number > 0 && form->sessions[number - 1].id != id)
    number--;
  return number;
}

/* An unknown session id is not replaced, so that both sides differ. */
static int64_t normal_session_id(const normal_form *form, int64_t id)
{
  size_t number = session_number(form, id);

  return number == 0 ? id : (int64_t)number;
}

static void add_session(normal_form *form, int64_t id, lk_bytes password)
{
  normal_session *more =
      realloc(form->sessions, (form->nsessions + 1) * sizeof *more);

  if (more == NULL)
    abort();
  form->sessions = more;
  more[form->nsessions].id = id;
  memcpy(more[form->nsessions++].password, password.at, 16);
}

void normal_free(normal_form *form)
{
  free(form->sessions);
  free(form->moments);
}

/* ---- records ------------------------------------------------------------ */

static void normalise_stat(normal_form *form, lk_stat *s)
{
  s->czxid = normal_zxid(form, s->czxid);
  s->mzxid = normal_zxid(form, s->mzxid);
  s->pzxid = normal_zxid(form, s->pzxid);
  s->ctime = normal_time(form, s->czxid, s->ctime);
  s->mtime = normal_time(form, s->mzxid, s->mtime);
  s->ephemeral_owner = normal_session_id(form, s->ephemeral_owner);
  /* Only /zookeeper/config has these versions. */
  if (s->version == -1 && s->aversion == -1) {
    s->data_length = 0;
    s->mtime = 0;
  }
}

static void normalise_members(const normal_form *form, lk_bytes *b)
{
  size_t len = strlen(form->members);

  if (len > 0 && b->len == len && memcmp(b->at, form->members, len) == 0)
    *b = lk_text("members");
}

static int compare_bytes(lk_bytes a, lk_bytes b)
{
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len == 0 ? 0 : memcmp(a.at, b.at, len);

  if (order != 0)
    return order;
  return (a.len > b.len) - (a.len < b.len);
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
  if (of == &lk__bytes_record || of == &lk__name_record)
    qsort(v->items, v->count, sizeof(lk_bytes), compare_names);
  else if (of == &lk__identity_record)
    qsort(v->items, v->count, sizeof(lk_identity), compare_ids);
  else if (of == &lk__acl_record)
    qsort(v->items, v->count, sizeof(lk_acl), compare_entries);
}

/* Replaces stats and the members, and sorts lists. All of them are fields of
 * the record itself: no reply has them in a record within a record. */
static void normalise_fields(normal_form *form, const lk_record *rec,
                             void *value)
{
  for (size_t i = 0; i < rec->nfields; i++) {
    void *at = (char *)value + rec->fields[i].offset;

    if (rec->fields[i].kind == LK_KIND_STAT)
      normalise_stat(form, at);
    else if (rec->fields[i].kind == LK_KIND_BYTES)
      normalise_members(form, at);
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

static void *take_record(const lk_record *rec, lk_arena *arena)
{
  size_t size = rec->size == 0 ? 1 : rec->size; /* of the empty record, too */
  void *value = lk__arena_take(arena, 1, size);

  if (value == NULL)
    abort();
  return value;
}

/* Decodes a record and appends its normal form. false: it cannot be decoded,
 * and `in` is still in front of it. */
static bool normalise_record(normal_form *form, const lk_record *rec,
                             lk_reader *in, lk_arena *arena, lk_buf *out)
{
  lk_reader start = *in;
  void *value = take_record(rec, arena);

  if (lk__record_decode(rec, value, in, arena) != 0) {
    *in = start;
    return false;
  }
  normalise_fields(form, rec, value);
  wire_record(out, rec, value);
  return true;
}

static void normalise_results(normal_form *form, lk_reader *in, lk_arena *arena,
                              lk_buf *out)
{
  for (;;) {
    lk_reader start = *in;
    struct lk_multi_header head;

    if (lk__record_decode(&lk__multi_header_record, &head, in, arena) != 0) {
      *in = start;
      return;
    }
    wire_record(out, &lk__multi_header_record, &head);
    const lk_record *rec =
        lk__operation_record(head.type, LK_OPERATIONS_OF_REPLY);

    if (head.done || rec == NULL ||
        !normalise_record(form, rec, in, arena, out))
      return;
  }
}

static const lk_record *body_record(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (op == NORMAL_EVENT)
    return &lk__watcher_event_record;
  return info == NULL ? &lk__empty_record : info->reply;
}

static bool has_results(int32_t op)
{
  return op == LK_OPCODE_MULTI || op == LK_OPCODE_MULTI_READ;
}

static void normalise_reply(normal_form *form, int32_t op, lk_reader *in,
                            lk_arena *arena, lk_buf *out)
{
  struct lk_reply_header head;
  lk_reader start = *in;

  if (lk__record_decode(&lk__reply_header_record, &head, in, NULL) != 0) {
    *in = start;
    return;
  }
  if (form->zxid_base < 0 && head.zxid > 0)
    form->zxid_base = head.zxid - 1;
  head.zxid = normal_zxid(form, head.zxid);
  if (head.zxid > form->zxid)
    form->zxid = head.zxid;
  wire_record(out, &lk__reply_header_record, &head);
  if (head.err != 0)
    return;
  if (has_results(op))
    normalise_results(form, in, arena, out);
  else
    normalise_record(form, body_record(op), in, arena, out);
}

static void normalise_connect_reply(normal_form *form, lk_reader *in,
                                    lk_buf *out)
{
  struct lk_connect_reply r;
  lk_reader start = *in;

  if (lk__record_decode(&lk__connect_reply_record, &r, in, NULL) != 0) {
    *in = start;
    return;
  }
  if (r.session_id != 0 && r.password.len == 16) {
    if (session_number(form, r.session_id) == 0)
      add_session(form, r.session_id, r.password);
    size_t number = session_number(form, r.session_id);

    r.session_id = (int64_t)number;
    if (memcmp(form->sessions[number - 1].password, r.password.at, 16) == 0)
      r.password = lk_text("");
  }
  wire_record(out, &lk__connect_reply_record, &r);
}

void normal_frame(normal_form *form, int32_t op, lk_bytes frame, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (op == NORMAL_CONNECT_REPLY)
    normalise_connect_reply(form, &in, out);
  else
    normalise_reply(form, op, &in, &arena, out);
  copy_rest(&in, out);
  lk__arena_free(&arena);
}

/* ---- text --------------------------------------------------------------- */

static bool print_record(const lk_record *rec, lk_reader *in, lk_arena *arena,
                         lk_buf *out)
{
  void *value = take_record(rec, arena);

  if (lk__record_decode(rec, value, in, arena) != 0)
    return false;
  wire_say(out, " ");
  return lk__record_print(rec, value, out);
}

static void print_results(lk_reader *in, lk_arena *arena, lk_buf *out)
{
  lk_operation result;

  while (lk__operation_decode(in, LK_OPERATIONS_OF_REPLY, arena, &result)) {
    wire_say(out, " | %s err=%d ", lk__opcode_info(result.type)->name,
             (int)result.err);
    lk__record_print(lk__operation_record(result.type, LK_OPERATIONS_OF_REPLY),
                     &result.body, out);
  }
}

static const char *reply_name(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (op == NORMAL_EVENT)
    return "EVENT";
  return info == NULL ? "?" : info->name;
}

static void print_reply(int32_t op, lk_reader *in, lk_arena *arena, lk_buf *out)
{
  struct lk_reply_header head;

  wire_say(out, "%s", reply_name(op));
  lk__record_decode(&lk__reply_header_record, &head, in, NULL);
  wire_say(out, " ");
  lk__record_print(&lk__reply_header_record, &head, out);
  if (head.err != 0 || in->err != 0)
    return;
  if (has_results(op))
    print_results(in, arena, out);
  else
    print_record(body_record(op), in, arena, out);
}

void normal_print(int32_t op, lk_bytes frame, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (op == NORMAL_CLOSED)
    wire_say(out, "CLOSED");
  else if (op == NORMAL_SILENT)
    wire_say(out, "SILENT");
  else if (op == NORMAL_CONNECT_REPLY) {
    wire_say(out, "WELCOME");
    print_record(&lk__connect_reply_record, &in, &arena, out);
  } else
    print_reply(op, &in, &arena, out);
  if (in.err != 0)
    wire_say(out, " UNREADABLE");
  if (lk__reader_left(&in) > 0)
    wire_say(out, " and %zu bytes more", lk__reader_left(&in));
  lk__arena_free(&arena);
}
