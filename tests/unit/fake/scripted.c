/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/scripted.h"

#include <check.h>
#include <stdio.h>

#include "proto/wire/opcode.h"
#include "support/wire.h"
#include "support/words.h"

static void keep_request(scripted *s, lk_bytes frame)
{
  lk_buf line = {.mem = &lk__mem_libc};

  wire_print(frame, false, &line);
  ck_assert(lk__buf_append(&line, "\n", sizeof "\n"));
  const char *text = (const char *)lk__buf_bytes(&line);
  const char *xid = strstr(text, " xid=");
  const char *behind_xid = xid + 1 + strcspn(xid + 1, " \n");

  ck_assert(lk__buf_append(&s->requests_text, text, (size_t)(xid - text)) &&
            lk__buf_append(&s->requests_text, behind_xid, strlen(behind_xid)));
  lk__buf_free(&line);
}

/* `script`: "ZXID ERROR [BODY...]" */
static void write_scripted_reply(lk_buf *out, int32_t xid, const char *script)
{
  size_t mark = wire_begin(out);
  words w;

  words_cut(&w, script, strlen(script));
  int64_t zxid = words_number(&w, "a zxid");

  wire_header(out, xid, zxid, words_error(&w));
  words_encode(&w, out);
  wire_end(out, mark);
}

static bool serve_request(model_link *l, lk_bytes frame)
{
  scripted *s = (scripted *)(void *)l->server;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);
  int32_t op = lk__reader_int(&in);

  if (op == LK_OPCODE_PING || op == LK_OPCODE_CLOSE_SESSION)
    return model_serve(l, frame);
  keep_request(s, frame);
  if (++s->requests == s->lost_request)
    l->closed_by_server = true;
  else if (s->replies != NULL && s->replies_sent < SCRIPTED_REPLIES &&
           s->replies[s->replies_sent] != NULL)
    write_scripted_reply(&l->out, xid, s->replies[s->replies_sent++]);
  else
    wire_reply(&l->out, xid, 1, LK_ERR_NO_AUTH);
  return true;
}

/* Replies in scripts have small zxids. The model refuses a connection of a
 * client that has seen a larger zxid than its own, as servers do. */
static void pass_all_scripted_zxids(model_server *m)
{
  model_create(m, "/scripted");
  for (int i = 0; i < 100; i++)
    model_set(m, "/scripted", "");
}

void scripted_start(scripted *s)
{
  loopback_start(&s->loopback);
  loopback_lock(&s->loopback);
  pass_all_scripted_zxids(&s->loopback.server);
  loopback_unlock(&s->loopback);
  s->loopback.server.serve = serve_request;
  s->requests_text = wire_buf();
  scripted_set(s, NULL, 0);
}

void scripted_stop(scripted *s)
{
  loopback_stop(&s->loopback);
  lk__buf_free(&s->requests_text);
}

void scripted_set(scripted *s, const char *const *replies,
                  unsigned lost_request)
{
  loopback_lock(&s->loopback);
  s->replies = replies;
  s->replies_sent = 0;
  s->lost_request = lost_request;
  s->requests = 0;
  lk__buf_consume(&s->requests_text, lk__buf_len(&s->requests_text));
  loopback_unlock(&s->loopback);
}

bool scripted_was_asked(scripted *s, const char *text)
{
  loopback_lock(&s->loopback);
  size_t len = lk__buf_len(&s->requests_text);
  const char *asked = (const char *)lk__buf_bytes(&s->requests_text);
  bool same = len == strlen(text) && memcmp(asked, text, len) == 0;

  if (!same)
    fprintf(stderr, "asked:\n%.*snot:\n%s", (int)len, asked, text);
  loopback_unlock(&s->loopback);
  return same;
}

void scripted_send_event(scripted *s, int32_t type, const char *path)
{
  loopback_lock(&s->loopback);
  for (size_t i = 0; i < s->loopback.count; i++)
    wire_event(&s->loopback.connections[i].link->out, type, path);
  loopback_unlock(&s->loopback);
}
