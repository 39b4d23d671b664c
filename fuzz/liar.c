/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "liar.h"

#include "proto/wire/opcode.h"
#include "support/wire.h"
#include "target.h"

#include <limits.h>

enum { MOST_NAMES = 300, MOST_TEXT = 300, LENGTH_SIZE = 4, ANY_ZXID = 1 };

#define FOR_EVER UINT_MAX

lie take_lie(fuzz_input *in)
{
  lie l = {.kind = (lie_kind)(take_byte(in) % LIE_KINDS)};
  unsigned count = take_byte(in);

  if (count == 255)
    l.left = FOR_EVER;
  else
    l.left = count < 128 ? 1 : count - 126;
  l.what = take_byte(in);
  l.where = take_byte(in);
  l.text = take_bytes(in);
  return l;
}

static int32_t error_of(const lie *l)
{
  static const int32_t errs[] = {LK_ERR_NO_NODE,
                                 LK_ERR_NODE_EXISTS,
                                 LK_ERR_NO_AUTH,
                                 LK_ERR_BAD_VERSION,
                                 LK_ERR_CONNECTION_LOSS,
                                 LK_ERR_THROTTLED,
                                 LK_ERR_NOT_EMPTY,
                                 LK_ERR_UNIMPLEMENTED,
                                 LK_ERR_SESSION_EXPIRED,
                                 LK_ERR_SESSION_MOVED,
                                 LK_ERR_INVALID_ACL,
                                 LK_ERR_QUOTA_EXCEEDED,
                                 LK_ERR_MARSHALLING,
                                 LK_ERR_NO_CHILDREN_FOR_EPHEMERALS,
                                 1,
                                 -12345};

  return errs[l->what % (sizeof errs / sizeof errs[0])];
}

/* ---- bodies -------------------------------------------------------------- */

/* `text`, or a copy of it in `room` with another last character. */
static lk_bytes forged_text(const lie *l, lk_bytes text, char *room)
{
  if (l->where % 2 == 1 || text.len == 0 || text.len > MOST_TEXT)
    return l->text;
  memcpy(room, text.at, text.len);
  room[text.len - 1] = (char)('0' + l->where / 2 % 10);
  return lk_bytes_of(room, text.len);
}

/* `names` has room for one more. */
static void forge_names(const lie *l, lk_vec *vec, lk_bytes *names, char *room)
{
  size_t count = vec->count;
  size_t at = count == 0 ? 0 : l->where / 2 % count;

  memcpy(names, vec->items, count * sizeof *names);
  switch (l->what % 6) {
  case 0: count = 0; break;
  case 1: names[count++] = l->text; break;
  case 2:
    if (count > 0) {
      names[count] = names[at];
      count++;
    }
    break;
  case 3:
    if (count > 0)
      names[at] = names[--count];
    break;
  case 4:
    if (count > 0)
      names[at] = forged_text(l, names[at], room);
    break;
  default:
    if (count > 0) {
      names[count] = forged_text(l, names[at], room);
      count++;
    }
  }
  *vec = lk__vec_of(names, count);
}

static void forge_stat(const lie *l, lk_stat *stat)
{
  int64_t value = (int64_t)l->where - 1;

  switch (l->what % 8) {
  case 0: stat->czxid = value; break;
  case 1: stat->mzxid = value; break;
  case 2: stat->pzxid = value; break;
  case 3: stat->ephemeral_owner = value; break;
  case 4: stat->version = (int32_t)value; break;
  case 5: stat->cversion = (int32_t)value; break;
  case 6: stat->data_length = (int32_t)value; break;
  default: stat->num_children = (int32_t)value;
  }
}

/* Append a body of the same kind with one part changed. */
static void append_forged_body(const lie *l, int32_t op, lk_bytes body,
                               lk_buf *out)
{
  const lk_record *record = lk__opcode_info(op)->reply;
  lk_bytes names[MOST_NAMES + 1];
  char room[MOST_TEXT];
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;
  lk_reply_body reply;
  bool other_part = l->text.len % 2 == 1;

  lk__reader_init(&in, body.at, body.len);
  must(lk__record_decode(record, &reply, &in, &arena) == 0);
  switch (op) {
  case LK_OPCODE_GET_CHILDREN2:
    if (other_part)
      forge_stat(l, &reply.names_stat.stat);
    else if (reply.names_stat.names.count <= MOST_NAMES)
      forge_names(l, &reply.names_stat.names, names, room);
    break;
  case LK_OPCODE_GET_EPHEMERALS:
    if (reply.paths.paths.count <= MOST_NAMES)
      forge_names(l, &reply.paths.paths, names, room);
    break;
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_SET_DATA: forge_stat(l, &reply.stat.stat); break;
  case LK_OPCODE_GET_DATA:
    if (other_part)
      forge_stat(l, &reply.data.stat);
    else
      reply.data.data = l->text;
    break;
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
    if (other_part)
      forge_stat(l, &reply.path_stat.stat);
    else
      reply.path_stat.path = forged_text(l, reply.path_stat.path, room);
    break;
  case LK_OPCODE_CREATE:
  case LK_OPCODE_SYNC:
    reply.path.path = forged_text(l, reply.path.path, room);
    break;
  default: break;
  }
  wire_record(out, record, &reply);
  lk__arena_free(&arena);
}

static void append_body_with_bytes(const lie *l, lk_bytes body, lk_buf *out)
{
  size_t at = body.len == 0 ? 0 : (l->where + 256U * l->what) % body.len;
  size_t left = body.len - at;
  size_t len = l->text.len < left ? l->text.len : left;

  must(lk__buf_append(out, body.at, at) &&
       lk__buf_append(out, l->text.at, len) &&
       lk__buf_append(out, (const char *)body.at + at + len, left - len));
}

static bool has_typed_body(int32_t op)
{
  return op != LK_OPCODE_MULTI && op != LK_OPCODE_MULTI_READ &&
         lk__opcode_info(op)->reply != NULL;
}

/* ---- replies ------------------------------------------------------------- */

static int64_t zxid_of(const lie *l, int64_t zxid)
{
  static const int64_t zxids[] = {0, -1, 1, INT64_MAX, INT64_MIN};

  return l->kind == LIE_ZXID ? zxids[l->what % 5] : zxid;
}

/* Append the reply, of which `in` has the rest behind the xid. */
static void append_lie(const lie *l, int32_t xid, int32_t op, lk_reader *in,
                       lk_buf *out)
{
  size_t mark = wire_begin(out);
  int64_t zxid = zxid_of(l, lk__reader_long(in));
  int32_t err = lk__reader_int(in);
  lk_bytes body = lk_bytes_of(in->at, lk__reader_left(in));

  if (l->kind == LIE_ERROR_LATER) {
    err = error_of(l);
    body.len = 0;
  }
  wire_header(out, xid, zxid, err);
  if (err == 0 && l->kind == LIE_BYTES)
    append_body_with_bytes(l, body, out);
  else if (err == 0 && l->kind == LIE_BODY && has_typed_body(op))
    append_forged_body(l, op, body, out);
  else
    must(lk__buf_append(out, body.at, body.len));
  wire_end(out, mark);
}

/* Append the frames of `said`, with a lie instead of the reply `xid`. */
static void append_frames(const lie *l, int32_t xid, int32_t op,
                          const lk_buf *said, lk_buf *out)
{
  lk_reader in;

  lk__reader_init(&in, lk__buf_bytes(said), lk__buf_len(said));
  while (lk__reader_left(&in) > 0) {
    const unsigned char *whole = in.at;
    lk_bytes frame = lk__reader_bytes(&in);
    lk_reader r;

    lk__reader_init(&r, frame.at, frame.len);
    if (lk__reader_int(&r) == xid)
      append_lie(l, xid, op, &r, out);
    else
      must(lk__buf_append(out, whole, LENGTH_SIZE + frame.len));
  }
}

static bool serve_and_lie(const lie *l, model_link *link, int32_t xid,
                          int32_t op, lk_bytes frame)
{
  lk_buf before = link->out;

  link->out = wire_buf();
  bool goes_on = model_serve(link, frame);
  lk_buf said = link->out;

  link->out = before;
  append_frames(l, xid, op, &said, &link->out);
  lk__buf_free(&said);
  return goes_on;
}

bool lie_serve(lie *l, model_link *link, lk_bytes frame)
{
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);

  if (l->left == 0 || xid < 0 || op == LK_OPCODE_CLOSE_SESSION)
    return model_serve(link, frame);
  if (l->left != FOR_EVER)
    l->left--;
  if (l->kind == LIE_ERROR)
    wire_reply(&link->out, xid, -(int64_t)(l->where % 2), error_of(l));
  else if (l->kind == LIE_NOT_EXECUTED && op == LK_OPCODE_DELETE)
    wire_reply(&link->out, xid, ANY_ZXID, 0);
  else
    return serve_and_lie(l, link, xid, op, frame);
  return true;
}
