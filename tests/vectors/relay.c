/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "vectors/relay.h"

#include "proto/wire/multi.h"

#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_FIELD = 4 };

static void must(bool is_so, const relay *r, const char *what)
{
  if (is_so)
    return;
  fprintf(stderr, "relay: %s: %s\n", r->frame->name, what);
  abort();
}

static void say(relay *r, const char *text)
{
  must(lk__buf_append(&r->text, text, strlen(text)), r, "out of memory");
}

static void print(relay *r, const lk_record *rec, const void *value)
{
  if (rec->nfields == 0)
    return;
  say(r, " ");
  must(lk__record_print(rec, value, &r->text), r, "out of memory");
}

static void report_record(const relay *r, size_t which, const char *name,
                          const unsigned char *at)
{
  if (r->seen != NULL)
    r->seen(r->arg, r->frame, which, name,
            lk_bytes_of(at, (size_t)(r->in.at - at)));
}

static size_t index_of(const lk_record *rec)
{
  size_t i = 0;

  while (i < lk__nrecords && lk__records[i] != rec)
    i++;
  return i;
}

/* Decodes a record into `value` and encodes it again. false: it cannot be
   decoded. */
static bool relay_record(relay *r, const lk_record *rec, void *value)
{
  const unsigned char *at = r->in.at;

  if (lk__record_decode(rec, value, &r->in, &r->arena) != 0)
    return false;
  lk__record_encode(rec, value, &r->out);
  if (rec->nfields > 0)
    report_record(r, index_of(rec), rec->name, at);
  return true;
}

static void relay_and_print(relay *r, const lk_record *rec)
{
  max_align_t value[16]; /* large enough for each record */

  must(rec->size <= sizeof value, r, "a larger struct than foreseen");
  if (relay_record(r, rec, value))
    print(r, rec, value);
}

static void relay_operations(relay *r)
{
  const unsigned char *at = r->in.at;
  bool result = r->frame->from_server;
  lk_operation operation;
  char text[32];

  while (lk__operation_decode(&r->in, result, &r->arena, &operation)) {
    lk__operation_encode(&operation, result, &r->out);
    snprintf(text, sizeof text, " [%d err=%d", (int)operation.type,
             (int)operation.err);
    say(r, text);
    print(r, lk__operation_record(operation.type, result), &operation.body);
    say(r, "]");
  }
  if (r->in.err != 0)
    return;
  lk__operation_encode_end(&r->out);
  report_record(r, lk__nrecords + result, result ? "results" : "parts", at);
}

static void relay_body(relay *r, int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (info == NULL)
    must(strcmp(r->frame->kind, "op999") == 0, r, "unknown opcode");
  else if (info->has_operations)
    relay_operations(r);
  else
    relay_and_print(r, r->frame->from_server ? info->reply : info->request);
}

static int32_t opcode_named(const char *name)
{
  for (size_t i = 0; i < lk__nopcodes; i++) {
    if (strcmp(lk__opcodes[i].name, name) == 0)
      return lk__opcodes[i].number;
  }
  return 0;
}

static void relay_request(relay *r)
{
  struct lk_request_header head;
  const lk_opcode_info *info;
  char text[64];

  if (!relay_record(r, &lk__request_header_record, &head))
    return;
  info = lk__opcode_info(head.type);
  snprintf(text, sizeof text, " xid=%d %s(%d)", (int)head.xid,
           info == NULL ? "?" : info->name, (int)head.type);
  say(r, text);
  must(info == NULL || strcmp(info->name, r->frame->kind) == 0, r,
       "another opcode than its kind");
  relay_body(r, head.type);
}

static void relay_reply(relay *r)
{
  struct lk_reply_header head;
  bool event = strcmp(r->frame->kind, "event") == 0;

  if (!relay_record(r, &lk__reply_header_record, &head))
    return;
  print(r, &lk__reply_header_record, &head);
  must(event == (head.xid == LK_XID_EVENT), r, "another xid than its kind");
  if (event)
    relay_and_print(r, &lk__watcher_event_record);
  else if (head.err == 0)
    relay_body(r, opcode_named(r->frame->kind));
}

/* The byte readOnly at the end may be missing. */
static void relay_connect(relay *r)
{
  relay_and_print(r, r->frame->from_server ? &lk__connect_reply_record
                                           : &lk__connect_request_record);
  r->needed = r->out.len;
  if (r->in.err != 0 || lk__reader_left(&r->in) == 0)
    return;
  bool read_only = lk__reader_bool(&r->in);

  lk__writer_bool(&r->out, read_only);
  say(r, read_only ? " readOnly=1" : " readOnly=0");
}

int relay_run(relay *r, const unsigned char *bytes, size_t len)
{
  lk__reader_init(&r->in, bytes, len);
  lk__writer_init(&r->out, r->encoded, sizeof r->encoded);
  r->arena.mem = r->mem;
  r->text.mem = &lk__mem_libc;
  r->needed = 0;
  if (strcmp(r->frame->kind, "connect") == 0)
    relay_connect(r);
  else if (r->frame->from_server)
    relay_reply(r);
  else
    relay_request(r);
  if (r->needed == 0)
    r->needed = r->out.len;
  must(r->out.err == 0, r, "cannot be encoded");
  return r->in.err;
}

void relay_clear(relay *r)
{
  lk__arena_free(&r->arena);
  lk__buf_free(&r->text);
}

bool relay_is_frame(const vector *v)
{
  return v->bytes != NULL && v->len >= LENGTH_FIELD &&
         strcmp(v->kind, "raw") != 0;
}

void relay_line(const vector *v, lk_buf *out)
{
  relay r = {.frame = v, .mem = &lk__mem_libc, .text.mem = &lk__mem_libc};
  char text[128];

  if (relay_is_frame(v)) {
    int err = relay_run(&r, v->bytes + LENGTH_FIELD, v->len - LENGTH_FIELD);

    must(err == 0, &r, "cannot be read");
  } else {
    say(&r, v->bytes == NULL ? " (closes)" : " (raw)");
  }
  say(&r, "\n");
  snprintf(text, sizeof text, "%s %c", v->name, v->from_server ? 'S' : 'C');
  must(lk__buf_append(out, text, strlen(text)) &&
           lk__buf_append(out, lk__buf_bytes(&r.text), lk__buf_len(&r.text)),
       &r, "out of memory");
  relay_clear(&r);
}
