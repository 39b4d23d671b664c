/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/replies.h"

#include <stdio.h>

#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/session.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watch_calls.h"
#include "proto/engine/watches.h"
#include "proto/wire/opcode.h"

/* Bytes of memory for decoding that are kept between replies. */
enum { MAX_ARENA_KEPT = 256 * 1024 };

/* The error of a reply. A multi of which an operation failed has its error in
 * the results, and none in the header. */
static int reply_error(int32_t op, const struct lk_reply_header *header,
                       const lk_reply_body *body)
{
  return op == LK_OPCODE_MULTI && header->err == 0 ? body->multi.outcome
                                                   : header->err;
}

/* Whether the leader has committed a multi that completed with `err` in its
 * results. It commits the error of an operation that does not fit the nodes,
 * behind all writes that were ordered before. */
static bool multi_was_committed(int err)
{
  return err == 0 || err == LK_ERR_NO_NODE || err == LK_ERR_NO_AUTH ||
         err == LK_ERR_BAD_VERSION || err == LK_ERR_NODE_EXISTS ||
         err == LK_ERR_NOT_EMPTY;
}

/* What a reply proves about the session. */
static lk_evidence evidence_of(const lk_client *c, int32_t op, int header_err,
                               int err)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  bool executed = op == LK_OPCODE_MULTI
                      ? header_err == 0 && multi_was_committed(err)
                      : err == 0;

  if (c->connection.read_only)
    return LK_EVIDENCE_NONE;
  if (!executed || !info->leader)
    return LK_EVIDENCE_CONTACT;
  return info->write ? LK_EVIDENCE_COMMIT : LK_EVIDENCE_LEADER;
}

static void notify_evidence(lk_client *c, const lk_reply *reply)
{
  if (reply->sent_ms > c->session.proven_ms)
    c->session.proven_ms = reply->sent_ms;
  lk__engine_connection_note_reply(c);
  lk__client_notify_reply(c, reply);
}

/* Some errors end the connection or the session, not only their request. */
static void apply_connection_error(lk_client *c, int err)
{
  if (err == LK_ERR_AUTH_REQUIRED)
    lk__session_refused(c, err, NULL);
  else if (err == LK_ERR_SESSION_MOVED || err == LK_ERR_SESSION_EXPIRED)
    /* The next handshake shows whether the session still exists. */
    lk__engine_connection_end(c, err, NULL);
}

/* Whether the server does not know the request. A request that the server
 * knows, but is not configured for, also gets UNIMPLEMENTED, but with a
 * zxid. */
static bool is_unknown_request(const struct lk_reply_header *header)
{
  return header->err == LK_ERR_UNIMPLEMENTED && header->zxid == -1;
}

/* The error for the callback. A server that has lost its connection to the
 * leader replies with CONNECTION_LOSS to a write. It may have forwarded the
 * write before, so the write is in doubt. */
static int completion_error(int32_t op, int err)
{
  return err == LK_ERR_CONNECTION_LOSS && lk__opcode_info(op)->write
             ? LK_ERR_IN_DOUBT
             : err;
}

static void deliver_reply(lk_client *c, lk_request *r,
                          const struct lk_reply_header *header,
                          const lk_reply_body *body)
{
  int err = reply_error(r->op, header, body);
  lk_reply reply = {.evidence = evidence_of(c, r->op, header->err, err),
                    .err = header->err,
                    .zxid = header->zxid,
                    .sent_ms = r->sent_ms,
                    .received_ms = c->now,
                    .connection = c->connection.number};

  if (header->zxid > c->session.last_zxid)
    c->session.last_zxid = header->zxid;
  lk__silence_note_reply(c, r->op);
  lk__requests_note_reply(c, r->op);
  if (r->op == LK_OPCODE_CLOSE_SESSION)
    c->close.sent = false; /* closeSession is no longer outstanding */
  if (is_unknown_request(header))
    lk__request_rejected(c, r);
  if (lk__heap_has(&r->deadline))
    lk__heap_remove(&c->requests.deadlines, &r->deadline);
  lk__mem_free(&c->mem, r->copy);
  if (r->watch != NULL)
    lk__watch_request_completed(c, r->watch, r->op, header->err);
  c->input.request_in_no_list = !r->completed;
  notify_evidence(c, &reply);
  c->input.request_in_no_list = false;
  c->input.reply = &reply;
  if (!r->completed)
    lk__request_complete(c, r, completion_error(r->op, header->err), body);
  c->input.reply = NULL;
  if (r->op == LK_OPCODE_CLOSE_SESSION)
    lk__session_closed(c, header->err);
  else
    apply_connection_error(c, err);
}

static lk_request *find_by_xid(const lk_client *c, int32_t xid)
{
  const lk_link *list = &c->requests.sent;

  for (lk_link *l = list->next; l != list; l = l->next) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    if (r->xid == xid)
      return r;
  }
  return NULL;
}

/* The server has replied to `replied`, and has dropped what was sent before.
 * RaftKeeper does so with requests that it does not know. What was dropped is
 * in doubt: the server may execute it later, but not for long on a connection
 * that has ended. */
static void end_after_dropped(lk_client *c, const lk_request *oldest,
                              const lk_request *replied)
{
  char why[128];

  snprintf(why, sizeof why, "no reply to %s, but one to a later request",
           lk__opcode_info(oldest->op)->name);
  lk__requests_note_dropped(c, oldest, replied);
  lk__engine_connection_end(c, LK_ERR_PROTOCOL, why);
}

/* Find the request of a reply, usually the oldest one. Only the rejection of an
 * unknown request comes out of order: the server sends it as soon as it has
 * read the request, before the replies to earlier ones. NULL: the reply is
 * unexpected, and the connection was ended. */
static lk_request *find_request(lk_client *c,
                                const struct lk_reply_header *header)
{
  lk_request *oldest = lk__requests_oldest(&c->requests);
  lk_request *r = oldest;
  const char *why = NULL;

  if (oldest != NULL && oldest->xid != header->xid)
    r = find_by_xid(c, header->xid);
  if (oldest == NULL)
    why = "unexpected reply: no request is outstanding";
  else if (r == NULL)
    why = "unexpected reply: to no outstanding request";
  else if (r->end > c->output.sent)
    why = "unexpected reply: the request was not sent in full";
  if (why != NULL)
    lk__engine_connection_end(c, LK_ERR_PROTOCOL, why);
  else if (r == oldest || is_unknown_request(header))
    return r;
  else
    end_after_dropped(c, oldest, r);
  return NULL;
}

static int decode_body(lk_client *c, const lk_request *r, int64_t zxid,
                       lk_reader *in, lk_reply_body *out)
{
  const lk_reply_context context = {.op = r->op,
                                    .zxid = zxid,
                                    .operations = r->operations,
                                    .chroot = c->hosts.chroot,
                                    .chroot_len = c->hosts.chroot_len,
                                    .arena = &c->input.arena};

  return lk__reply_body_decode(&context, in, out);
}

/* Whether a successful write has the zxid of its transaction. */
static bool has_valid_zxid(int32_t op, const struct lk_reply_header *header)
{
  return header->zxid > 0 || !lk__opcode_info(op)->write;
}

static void take_reply(lk_client *c, const struct lk_reply_header *header,
                       lk_reader *in)
{
  lk_request *r = find_request(c, header);
  lk_reply_body body;
  int err = 0;

  if (r == NULL)
    return;
  if (header->err == 0 && !has_valid_zxid(r->op, header))
    err = LK_ERR_PROTOCOL;
  else if (header->err == 0)
    err = decode_body(c, r, header->zxid, in, &body);
  if (err != 0) {
    /* A repeated read would get the same malformed reply. */
    if (err != LK_ERR_NO_MEMORY)
      lk__request_forbid_retry(c, LK_ERR_CONNECTION_LOSS);
    lk__engine_connection_end(
        c, err == LK_ERR_NO_MEMORY ? err : LK_ERR_PROTOCOL, "malformed reply");
  } else {
    lk__list_remove(&r->link);
    deliver_reply(c, r, header, &body);
    lk__request_free(c, r);
  }
  lk__arena_reset(&c->input.arena, MAX_ARENA_KEPT);
}

/* Let `*path`, the path of an event, point to a copy that is NUL-terminated and
 * is valid until the callbacks have returned. Only persistent watches need it:
 * they also get events of other paths than their own. false: no memory. */
static bool copy_event_path(lk_client *c, lk_bytes *path)
{
  char *copy;

  if (c->watches.added == 0)
    return true;
  copy = lk__arena_take(&c->input.arena, path->len + 1, 1);
  if (copy == NULL)
    return false;
  if (path->len > 0)
    memcpy(copy, path->at, path->len);
  path->at = copy;
  return true;
}

static void take_event(lk_client *c, lk_reader *in)
{
  struct lk_watcher_event event;
  lk_link fired;
  int err = 0; /* only events about the end of a watch have an error */

  if (lk__record_decode(&lk__watcher_event_record, &event, in, NULL) != 0 ||
      event.path.at == NULL) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL, "malformed event");
    return;
  }
  if (memchr(event.path.at, '\0', event.path.len) != NULL)
    return; /* no node has such a path */
  if (!copy_event_path(c, &event.path)) {
    /* The event is lost. After the reconnect, LK_EVENT_REREGISTERED tells
     * persistent watches that they may have missed changes. */
    lk__engine_connection_end(c, LK_ERR_NO_MEMORY, NULL);
    return;
  }
  lk__list_init(&fired);
  lk__watches_match(&c->watches, event.type, event.path, &fired);
  lk__watches_notify(c, &fired, (lk_event_type)event.type, event.path, err);
  lk__arena_reset(&c->input.arena, MAX_ARENA_KEPT);
}

/* All pings have the same xid, so a reply counts for the oldest ping. If it is
 * in truth the reply to a later one, the client assumes less than is proven,
 * which is safe. */
static void take_ping(lk_client *c, const struct lk_reply_header *header)
{
  lk_reply reply = {
      .evidence = evidence_of(c, LK_OPCODE_PING, header->err, header->err),
      .zxid = header->zxid,
      .received_ms = c->now,
      .connection = c->connection.number};

  if (c->pings.sent_ms.count == 0) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL,
                              "unexpected reply: no request is outstanding");
    return;
  }
  reply.sent_ms = *(const int64_t *)lk__ring_at(&c->pings.sent_ms, 0);
  lk__ring_pop(&c->pings.sent_ms);
  if (header->err == LK_ERR_AUTH_REQUIRED)
    lk__session_refused(c, header->err, NULL);
  else if (header->err != 0)
    lk__engine_connection_end(c, header->err, NULL);
  else
    notify_evidence(c, &reply);
}

static void take_auth(lk_client *c, const struct lk_reply_header *header)
{
  if (c->auth.next_reply == NULL)
    lk__engine_connection_end(c, LK_ERR_PROTOCOL,
                              "unexpected reply: no request is outstanding");
  else if (header->err != 0)
    lk__session_refused(c, header->err, NULL);
  else
    lk__auth_accept_next(c);
}

/* The setWatches whose reply comes next has been throttled: it and all
 * setWatches behind it are repeated, although some of these may succeed. */
static void note_throttled_set_watches(lk_client *c)
{
  size_t answered = c->set_watches.sent - c->set_watches.unanswered;
  uint32_t throttled_number = (uint32_t)answered + 1; /* the first is 1 */

  c->set_watches.throttled = true;
  (void)lk__set_watches_acknowledge(&c->watches, throttled_number);
}

static void take_set_watches(lk_client *c, const struct lk_reply_header *header)
{
  bool throttled = header->err == LK_ERR_THROTTLED;
  bool is_repetition = c->set_watches.tries > 0;

  if (c->set_watches.unanswered == 0) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL,
                              "unexpected reply: no request is outstanding");
    return;
  }
  if (header->err == LK_ERR_AUTH_REQUIRED) {
    lk__session_refused(c, header->err, NULL);
    return;
  }
  if (header->err != 0 && !throttled) {
    if (is_unknown_request(header) && c->watches.added > 0)
      lk__request_note_unsupported(c, LK_OPCODE_SET_WATCHES2);
    lk__engine_connection_end(c, header->err, "cannot re-register watches");
    return;
  }
  if (throttled && !c->set_watches.throttled)
    note_throttled_set_watches(c);
  c->set_watches.unanswered--;
  if (c->set_watches.unanswered == 0 &&
      (c->set_watches.throttled ||
       lk__set_watches_acknowledge(&c->watches, LK_ALL_SET_WATCHES)))
    lk__set_watches_retry_later(c);
  if (is_repetition)
    lk__watches_notify_reregistered_late(c);
}

/* A fast path: every reply has a header, so it is not decoded by its table. */
static bool read_header(lk_reader *in, struct lk_reply_header *out)
{
  out->xid = lk__reader_int(in);
  out->zxid = lk__reader_long(in);
  out->err = lk__reader_int(in);
  return in->err == 0;
}

void lk__reply_take(lk_client *c, lk_bytes frame)
{
  struct lk_reply_header header;
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  if (!read_header(&in, &header)) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL, "malformed reply header");
    return;
  }
  if (!lk__reply_error_is_valid(header.err)) {
    lk__engine_connection_end(c, LK_ERR_PROTOCOL,
                              "invalid error code in reply");
    return;
  }
  if (header.xid != LK_XID_EVENT && header.xid != LK_XID_PING)
    lk__silence_note_progress(c);
  switch (header.xid) {
  case LK_XID_EVENT: take_event(c, &in); break;
  case LK_XID_PING: take_ping(c, &header); break;
  case LK_XID_AUTH: take_auth(c, &header); break;
  case LK_XID_SET_WATCHES: take_set_watches(c, &header); break;
  default: take_reply(c, &header, &in); break;
  }
}
