/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The length in front of a frame. */
enum { LEN_SIZE = 4 };

/* The last field of a connect response. */
enum quorum { WITH_QUORUM, READ_ONLY };

static void must(bool fine)
{
  if (!fine)
    abort();
}

lk_buf wire_buf(void)
{
  lk_buf b = {.mem = &lk__mem_libc};

  return b;
}

/* ---- writing ------------------------------------------------------------ */

size_t wire_begin(lk_buf *b)
{
  size_t mark = lk__buf_len(b);

  wire_int(b, 0); /* the length, which wire_end() sets */
  return mark;
}

void wire_end(lk_buf *b, size_t mark)
{
  lk_writer w;

  lk__writer_init(&w, lk__buf_bytes(b), lk__buf_len(b));
  lk__writer_patch(&w, mark, (int32_t)(lk__buf_len(b) - mark - LEN_SIZE));
}

void wire_int(lk_buf *b, int32_t v)
{
  lk_writer w;

  must(lk__buf_reserve(b, 4));
  lk__writer_init(&w, lk__buf_room(b), 4);
  lk__writer_int(&w, v);
  b->end += 4;
}

void wire_bytes(lk_buf *b, lk_bytes v)
{
  wire_record(b, &lk__bytes_record, &v);
}

void wire_record(lk_buf *b, const lk_record *rec, const void *value)
{
  lk_writer w;

  lk__writer_init(&w, NULL, 0);
  lk__record_encode(rec, value, &w);
  size_t len = w.len;

  must(w.err == 0 && lk__buf_reserve(b, len));
  lk__writer_init(&w, lk__buf_room(b), len);
  lk__record_encode(rec, value, &w);
  b->end += len;
}

static void welcome(lk_buf *b, int64_t session, int32_t timeout_ms,
                    enum quorum quorum)
{
  const unsigned char read_only = quorum == READ_ONLY;
  unsigned char password[16] = {0};
  struct lk_connect_reply r = {.timeout_ms = timeout_ms,
                               .session_id = session,
                               .password = {password, sizeof password}};
  size_t mark = wire_begin(b);

  memset(password, (int)(session & 0xff), sizeof password);
  wire_record(b, &lk__connect_reply_record, &r);
  must(lk__buf_append(b, &read_only, 1));
  wire_end(b, mark);
}

void wire_welcome(lk_buf *b, int64_t session, int32_t timeout_ms)
{
  welcome(b, session, timeout_ms, WITH_QUORUM);
}

void wire_welcome_read_only(lk_buf *b, int64_t session, int32_t timeout_ms)
{
  welcome(b, session, timeout_ms, READ_ONLY);
}

void wire_header(lk_buf *b, int32_t xid, int64_t zxid, int32_t err)
{
  struct lk_reply_header h = {xid, zxid, err};

  wire_record(b, &lk__reply_header_record, &h);
}

void wire_reply(lk_buf *b, int32_t xid, int64_t zxid, int32_t err)
{
  size_t mark = wire_begin(b);

  wire_header(b, xid, zxid, err);
  wire_end(b, mark);
}

void wire_list(lk_buf *b, int32_t xid, int64_t zxid, const lk_bytes *names,
               size_t count, const lk_stat *stat)
{
  struct lk_names_stat_reply reply = {lk__vec_of(names, count), *stat};
  size_t mark = wire_begin(b);

  wire_header(b, xid, zxid, 0);
  wire_record(b, &lk__names_stat_reply_record, &reply);
  wire_end(b, mark);
}

void wire_event(lk_buf *b, int32_t type, const char *path)
{
  const int32_t connected = 3; /* the state in each event of a live session */
  const int64_t no_zxid = -1;
  struct lk_watcher_event e = {type, connected, lk_text(path)};
  size_t mark = wire_begin(b);

  wire_header(b, LK_XID_EVENT, no_zxid, 0);
  wire_record(b, &lk__watcher_event_record, &e);
  wire_end(b, mark);
}

/* ---- reading ------------------------------------------------------------ */

void wire_say(lk_buf *out, const char *format, ...)
{
  char text[1024];
  va_list args;

  va_start(args, format);
  int len = vsnprintf(text, sizeof text, format, args);

  va_end(args);
  must(len >= 0 && (size_t)len < sizeof text &&
       lk__buf_append(out, text, (size_t)len));
}

/* Decode a record and print it; its memory is freed. */
static void print_record(const lk_record *rec, lk_reader *in, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  void *value = lk__arena_take(&arena, 1, rec->size);

  if (lk__record_decode(rec, value, in, &arena) != 0) {
    wire_say(out, " UNREADABLE");
  } else if (rec->nfields > 0) {
    wire_say(out, " ");
    must(lk__record_print(rec, value, out));
  }
  lk__arena_free(&arena);
}

static void print_hello(lk_reader *in, lk_buf *out)
{
  struct lk_connect_request r;

  if (lk__record_decode(&lk__connect_request_record, &r, in, NULL) != 0 ||
      r.password.len != 16) {
    wire_say(out, "UNREADABLE");
    return;
  }
  wire_say(out, "connect zxid=%" PRId64 " timeout=%d session=0x%" PRIx64,
           r.last_zxid_seen, (int)r.timeout_ms, (uint64_t)r.session_id);
  wire_say(out, " password=%02x%02x.. readOnly=%d",
           ((const unsigned char *)r.password.at)[0],
           ((const unsigned char *)r.password.at)[1], lk__reader_bool(in));
}

static void print_parts(lk_reader *in, lk_buf *out)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation part;

  while (lk__operation_decode(in, LK_OPERATIONS_OF_REQUEST, &arena, &part)) {
    wire_say(out, " | %s ", lk__opcode_info(part.type)->name);
    must(lk__record_print(
        lk__operation_record(part.type, LK_OPERATIONS_OF_REQUEST), &part.body,
        out));
  }
  if (in->err != 0)
    wire_say(out, " | UNREADABLE");
  lk__arena_free(&arena);
}

static void print_request(lk_reader *in, lk_buf *out)
{
  struct lk_request_header h;

  lk__record_decode(&lk__request_header_record, &h, in, NULL);
  const lk_opcode_info *info = lk__opcode_info(h.type);

  if (info == NULL) {
    wire_say(out, "UNKNOWN %d", (int)h.type);
    return;
  }
  wire_say(out, "%s xid=%d", info->name, (int)h.xid);
  if (info->has_operations)
    print_parts(in, out);
  else
    print_record(info->request, in, out);
}

void wire_print(lk_bytes frame, bool hello, lk_buf *out)
{
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (hello)
    print_hello(&in, out);
  else
    print_request(&in, out);
  if (in.err != 0 || lk__reader_left(&in) > 0)
    wire_say(out, " MALFORMED");
}
