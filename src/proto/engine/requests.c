/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/requests.h"

#include "base/mem.h"
#include "base/timeout.h"
#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/connection.h"
#include "proto/engine/invariants.h"
#include "proto/engine/watch_calls.h"
#include "proto/engine/watches.h"
#include "proto/wire/multi.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

/* ---- creation, and memory ------------------------------------------------ */

/* A new request takes a place in the first chunk of the list, and a chunk
 * returns to the end of the list when the first of its requests is freed. So
 * requests that complete in their order empty one chunk after the other, and
 * besides the empty ones only two are partly used. */
enum { MAX_UNUSED = 1024 }; /* requests; above that, empty chunks are freed */

void lk__requests_init(lk_engine_requests *q, const lk_mem *mem)
{
  q->waiting_frames.mem = mem;
  q->path.mem = mem;
  lk__list_init(&q->sent);
  lk__list_init(&q->waiting);
  lk__list_init(&q->ending);
  lk__list_init(&q->chunks);
}

/* false: there is no memory. */
static bool add_chunk(lk_engine_requests *q, const lk_mem *mem)
{
  lk_request_chunk *chunk = lk__mem_resize(mem, NULL, sizeof *chunk);

  if (chunk == NULL)
    return false;
  chunk->unused = NULL;
  chunk->used_count = 0;
  for (size_t i = LK_REQUEST_CHUNK; i-- > 0;) {
    chunk->requests[i] =
        (lk_request){.link.next = chunk->unused, .chunk = chunk};
    chunk->unused = &chunk->requests[i].link;
  }
  lk__list_add(&q->chunks, &chunk->link);
  q->unused_count += LK_REQUEST_CHUNK;
  return true;
}

/* A request with `chunk` alone initialized; NULL: there is no memory. */
static lk_request *request_new(lk_engine_requests *q, const lk_mem *mem)
{
  if (lk__list_empty(&q->chunks) && !add_chunk(q, mem))
    return NULL;
  lk_request_chunk *chunk = LK_OWNER(q->chunks.next, lk_request_chunk, link);
  lk_request *r = LK_OWNER(chunk->unused, lk_request, link);

  chunk->unused = r->link.next;
  chunk->used_count++;
  q->unused_count--;
  if (chunk->unused == NULL)
    lk__list_remove(&chunk->link);
  return r;
}

static void free_chunk(lk_engine_requests *q, const lk_mem *mem,
                       lk_request_chunk *chunk)
{
  lk__list_remove(&chunk->link);
  q->unused_count -= LK_REQUEST_CHUNK;
  lk__mem_free(mem, chunk);
}

void lk__request_free(lk_client *c, lk_request *r)
{
  lk_engine_requests *q = &c->requests;
  lk_request_chunk *chunk = r->chunk;

  if (chunk->unused == NULL)
    lk__list_add(&q->chunks, &chunk->link);
  r->link.next = chunk->unused;
  chunk->unused = &r->link;
  chunk->used_count--;
  q->unused_count++;
  if (chunk->used_count == 0 && q->unused_count > MAX_UNUSED)
    free_chunk(q, &c->mem, chunk);
}

/* ---- encoding ------------------------------------------------------------ */

enum {
  FIRST_ROOM = 256,  /* bytes, enough for most requests */
  LENGTH_FIELD = 4,  /* bytes */
  HEADER = 4 + 4 + 4 /* bytes: length, xid, opcode */
};

static void encode_body(const lk_call_spec *spec, lk_writer *w)
{
  if (spec->ops != NULL)
    lk__multi_encode(w, spec->ops, spec->operations, spec->chroot);
  else if (spec->reads != NULL)
    lk__multi_read_encode(w, spec->reads, spec->operations, spec->chroot);
  else if (spec->path != NULL)
    lk__path_encode(spec->rec, spec->value, spec->chroot, spec->path, w);
  else if (spec->rec != NULL)
    lk__record_encode(spec->rec, spec->value, w);
}

/* Write a whole frame of `*len` bytes to lk__buf_room(b). The caller adds it
   to the buffer by moving b->end.
   @return 0, LK_ERR_TOO_BIG (beyond `limit`), LK_ERR_NO_MEMORY, or why the
   operations cannot be encoded. */
static int request_encode(lk_buf *b, const lk_call_spec *spec, int32_t xid,
                          size_t limit, size_t *len)
{
  if (!lk__buf_reserve(b, FIRST_ROOM))
    return LK_ERR_NO_MEMORY;
  /* If the frame does not fit, the first pass counts its bytes, and the second
   * one writes it. */
  for (;;) {
    unsigned char *frame = b->at + b->end; /* the header always fits */
    lk_writer w = {.buf = frame, .cap = b->cap - b->end, .len = HEADER};

    lk__put32(frame + LENGTH_FIELD, (uint32_t)xid);
    lk__put32(frame + LENGTH_FIELD + 4, (uint32_t)spec->op);
    encode_body(spec, &w);
    if (w.err != 0)
      return w.err;
    size_t len_behind_field = w.len - LENGTH_FIELD;

    if (len_behind_field > limit)
      return LK_ERR_TOO_BIG;
    if (w.len <= w.cap) {
      lk__put32(frame, (uint32_t)len_behind_field);
      *len = w.len;
      return 0;
    }
    if (!lk__buf_reserve(b, w.len))
      return LK_ERR_NO_MEMORY;
  }
}

/* ---- requests that a server does not support ----------------------------- */

/* How long the client does not send a server a request that this server does
 * not know. Behind one name and port there may be several servers, of which one
 * knows it, and servers are upgraded. An attempt costs a connection, so that a
 * program that tries on loses one in a minute at most. */
enum { UNSUPPORTED_FOR_MS = 60 * 1000 };

/* The index of the bit for `op` in lk_unsupported.opcodes, whose 64 bits are
 * enough for all opcodes. */
static unsigned opcode_index(int32_t op)
{
  return (unsigned)(lk__opcode_info(op) - lk__opcodes);
}

static void mark_unsupported(lk_client *c, int32_t op)
{
  lk__hosts_mark_unsupported(&c->hosts, opcode_index(op),
                             c->now + UNSUPPORTED_FOR_MS);
}

void lk__request_note_unsupported(lk_client *c, int32_t op)
{
  lk__client_logf(c, LK_LOG_INFO, LK_ERR_UNIMPLEMENTED, "%s: does not know %s",
                  c->connection.server, lk__opcode_info(op)->name);
  mark_unsupported(c, op);
}

/* All servers know the requests of ZooKeeper 3.4. */
static bool may_be_unknown(int32_t op)
{
  return op > LK_OPCODE_MULTI;
}

static void note_dropped(lk_client *c, int32_t op)
{
  uint64_t bit = UINT64_C(1) << opcode_index(op);

  if ((c->requests.dropped & bit) != 0) {
    lk__client_logf(c, LK_LOG_WARNING, LK_ERR_UNIMPLEMENTED,
                    "%s: drops %s without a reply", c->connection.server,
                    lk__opcode_info(op)->name);
    mark_unsupported(c, op);
  }
  c->requests.dropped |= bit;
}

void lk__requests_note_dropped(lk_client *c, const lk_request *oldest,
                               const lk_request *replied)
{
  for (const lk_request *r = oldest; r != replied;
       r = LK_OWNER(r->link.next, lk_request, link))
    if (may_be_unknown(r->op))
      note_dropped(c, r->op);
}

void lk__requests_send_known_read(lk_client *c)
{
  lk_link *list = &c->requests.sent;
  const lk_stat_cb no_callback = NULL;

  if (lk__list_empty(list))
    return;
  for (lk_link *l = list->next; l != list; l = l->next)
    if (!may_be_unknown(LK_OWNER(l, lk_request, link)->op))
      return;
  /* If it is refused, the next ping tries again. */
  (void)lk_exists(c, "/", NULL, no_callback, NULL);
}

void lk__requests_note_reply(lk_client *c, int32_t op)
{
  if (c->requests.dropped != 0)
    c->requests.dropped &= ~(UINT64_C(1) << opcode_index(op));
}

bool lk__request_is_unsupported(const lk_client *c, int32_t op)
{
  /* The fast path: most servers support everything. Otherwise the clock is
   * read, since c->now may be that of an input long ago. */
  return c->hosts.unsupported.opcodes != 0 &&
         lk__hosts_lack_support(&c->hosts, opcode_index(op),
                                c->hooks.now(c->hooks.arg));
}

/* A read-only server replies to a write at once, before it has replied to
 * earlier reads. The client could not assign replies out of order, so it
 * refuses the write itself. */
int lk__request_support_error(const lk_client *c, int32_t op)
{
  if (c->connection.read_only && !lk__opcode_info(op)->served_read_only)
    return LK_ERR_NOT_READ_ONLY;
  return lk__request_is_unsupported(c, op) ? LK_ERR_UNIMPLEMENTED : 0;
}

/* ---- acceptance ---------------------------------------------------------- */

int lk__request_refusal(lk_client *c)
{
  int err = lk__client_refusal(c);

  if (err != 0)
    return err;
  return c->requests.open >= c->options.outstanding_limit ? LK_ERR_TOO_MANY : 0;
}

int32_t lk__request_next_xid(const lk_client *c)
{
  return c->session.last_xid == INT32_MAX ? 1 : c->session.last_xid + 1;
}

/* Build the server path of a request in the scratch buffer. */
static int build_path(lk_client *c, const lk_call_spec *spec, lk_bytes *out)
{
  lk_buf *b = &c->requests.path;

  lk__buf_consume(b, lk__buf_len(b));
  if (!lk__buf_append(b, spec->chroot, strlen(spec->chroot)) ||
      !lk__buf_append(b, spec->path, strlen(spec->path)))
    return LK_ERR_NO_MEMORY;
  *out = lk_bytes_of(lk__buf_bytes(b), lk__buf_len(b));
  return 0;
}

int lk__request_find_watched(lk_client *c, const lk_call_spec *spec,
                             lk_watched **out)
{
  lk_bytes path;
  int err = build_path(c, spec, &path);

  *out = err == 0 ? lk__watched_find(&c->watches, path) : NULL;
  return err;
}

static lk_watch *new_request_watch(lk_client *c, const lk_call_spec *spec)
{
  lk_bytes path;

  if (build_path(c, spec, &path) != 0)
    return NULL;
  lk_watch *w = lk__watch_new(&c->watches, path, spec->kind, spec->call);

  if (w != NULL) {
    w->outside_chroot = spec->chroot[0] == '\0';
    if (c->connection.phase != LK_PHASE_LIVE)
      lk__watch_set_unsent(w);
  }
  return w;
}

/* Both 0 and LK_NO_LIMIT mean in a lk_call that there is no limit. */
static bool is_time_limit(int64_t ms)
{
  return ms != 0 && ms != LK_NO_LIMIT;
}

/* Set `*out` to the deadline of `call`; LK_NEVER: it has none. The clock is
 * read here, since c->now may be out of date: a program can make requests for
 * long without an input of the driver.
 * @return 0, or LK_ERR_DEADLINE: the deadline has passed already. */
static int find_deadline(const lk_client *c, const lk_call *call, int64_t *out)
{
  *out = LK_NEVER;
  if (call == NULL ||
      (!is_time_limit(call->timeout_ms) && !is_time_limit(call->deadline_ms)))
    return 0;
  int64_t now = c->hooks.now(c->hooks.arg);

  *out = lk__timeout_end(now, call->timeout_ms, call->deadline_ms);
  return *out <= now ? LK_ERR_DEADLINE : 0;
}

/* Create the watch that the options ask for, and give the caller its handle. */
static int create_watch(lk_client *c, lk_request *r, const lk_call_spec *spec)
{
  const lk_call *call = spec->call;

  if (call->on_event != NULL) {
    r->watch = new_request_watch(c, spec);
    if (r->watch == NULL)
      return LK_ERR_NO_MEMORY;
  }
  if (call->watch != NULL)
    *call->watch = r->watch == NULL ? NULL : lk__watch_handle(r->watch);
  return 0;
}

/* Add to `r` what the options ask for: the deadline, the copy of the frame for
 * a repetition, the watch, and the caller's handle. */
static int add_call_options(lk_client *c, lk_request *r,
                            const lk_call_spec *spec, int64_t deadline_ms,
                            const void *frame)
{
  if (deadline_ms != LK_NEVER)
    lk__heap_add(&c->requests.deadlines, &r->deadline, deadline_ms);
  if (spec->call->repeat) {
    r->copy = lk__mem_resize(&c->mem, NULL, r->len);
    if (r->copy == NULL)
      goto fail;
    memcpy(r->copy, frame, r->len);
  }
  if (create_watch(c, r, spec) != 0)
    goto fail;
  r->fails_offline = spec->call->offline == LK_OFFLINE_FAIL;
  r->handle = spec->call->handle;
  if (r->handle != NULL)
    r->handle->request = r;
  return 0;

fail:
  lk__mem_free(&c->mem, r->copy);
  lk__heap_remove(&c->requests.deadlines, &r->deadline);
  return LK_ERR_NO_MEMORY;
}

/* Add `r`, whose frame is the last one in the output, to `sent`. */
static void request_add_sent(lk_client *c, lk_request *r)
{
  c->session.last_xid = r->xid;
  r->sent_ms = c->now;
  r->end = c->output.sent + lk__buf_len(&c->output.bytes);
  lk__list_add(&c->requests.sent, &r->link);
}

/* The request is being sent. Its flag for a watch is clear if a persistent
 * watch will serve that watch when the server executes the request
 * (watch_calls.c). That depends on the requests that are sent before this one.
 * Of a request that has waited, some of these may be younger: listeners can
 * make requests in LK_STATE_CONNECTED. */
static void request_send_watch(const lk_client *c, const lk_request *r,
                               unsigned char *frame)
{
  lk_watch *w = r->watch;

  lk__watch_set_sent(w);
  if (lk__watch_stays(w->kind))
    return; /* an addWatch has no such flag */
  w->relies = lk__watched_will_serve(&c->watches, w->on, w->kind);
  frame[r->len - 1] = w->relies ? 0 : 1; /* the flag is the last byte */
}

/* LK_ERR_NOT_CONNECTED: there is neither a connection nor an attempt at one,
 * and the request does not wait. The first attempt of a new client is due at
 * once. */
static int offline_refusal(const lk_client *c, const lk_call *call)
{
  bool fails = call != NULL && call->offline == LK_OFFLINE_FAIL;
  bool pauses =
      c->connection.phase == LK_PHASE_PAUSE && c->connection.retry_ms > c->now;

  return fails && pauses ? LK_ERR_NOT_CONNECTED : 0;
}

int lk__request_queue(lk_client *c, const lk_call_spec *spec)
{
  bool live = c->connection.phase == LK_PHASE_LIVE;
  int64_t deadline_ms;
  int err = offline_refusal(c, spec->call);

  if (err == 0)
    err = find_deadline(c, spec->call, &deadline_ms);
  if (err != 0)
    return err;
  lk_buf *b = live ? &c->output.bytes : &c->requests.waiting_frames;
  lk_request *r = request_new(&c->requests, &c->mem);

  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  /* A request from outside of any input reads the clock for its sent_ms, but
   * only once for a burst of requests. */
  if (c->nesting.depth == 0 && c->now_stale) {
    c->now = c->hooks.now(c->hooks.arg);
    c->now_stale = false;
  }
  *r = (lk_request){.chunk = r->chunk,
                    .op = spec->op,
                    .xid = live ? lk__request_next_xid(c) : 0,
                    .operations = spec->operations,
                    .done = spec->done,
                    .arg = spec->arg};
  err = request_encode(b, spec, r->xid, c->options.send_limit, &r->len);
  if (err == 0 && spec->call != NULL)
    err = add_call_options(c, r, spec, deadline_ms, lk__buf_room(b));
  if (err != 0) {
    lk__request_free(c, r);
    return err;
  }
  b->end += r->len;
  if (live) {
    if (r->watch != NULL)
      request_send_watch(c, r, lk__buf_room(b) - r->len);
    request_add_sent(c, r);
  } else {
    lk__list_add(&c->requests.waiting, &r->link);
  }
  c->requests.open++;
  lk__client_wake(c);
  return 0;
}

/* ---- waiting requests, on a new connection ------------------------------- */

/* The place of the xid in a frame: behind the length field. */
enum { XID_OFFSET = 4 };

/* Send `r`, whose frame is the first one in `waiting_frames`. There is room for
 * it in the output. */
static void send_waiting_request(lk_client *c, lk_request *r)
{
  unsigned char *frame = lk__buf_room(&c->output.bytes);

  memcpy(frame, lk__buf_bytes(&c->requests.waiting_frames), r->len);
  c->output.bytes.end += r->len;
  r->xid = lk__request_next_xid(c);
  lk__put32(frame + XID_OFFSET, (uint32_t)r->xid);
  if (r->watch != NULL)
    request_send_watch(c, r, frame);
  request_add_sent(c, r);
}

/* Set aside `r`, which is in no list, to complete with `outcome`. */
static void request_set_aside(lk_client *c, lk_request *r, int outcome)
{
  lk__heap_remove(&c->requests.deadlines, &r->deadline);
  r->outcome = outcome;
  lk__list_add(&c->requests.ending, &r->link);
}

/* Take `r`, the oldest waiting request, whose link was removed. */
static void take_waiting_request(lk_client *c, lk_request *r)
{
  size_t len = r->len;
  int support_err = lk__request_support_error(c, r->op);

  if (r->completed) {
    c->requests.completed_len -= len;
    lk__request_free(c, r);
  } else if (support_err != 0) {
    request_set_aside(c, r, support_err);
  } else {
    send_waiting_request(c, r);
  }
  lk__buf_consume(&c->requests.waiting_frames, len);
}

/* Bytes of memory of `waiting_frames` that are kept once no request waits. */
enum { MAX_WAITING_KEPT = 64 * 1024 };

/* Memory is reserved for all requests before the first one is sent. If sending
 * stopped halfway, the connection would be ended, and the requests that were
 * sent would be repeated behind those that still wait, out of order. */
bool lk__requests_send_waiting(lk_client *c)
{
  if (!lk__buf_reserve(&c->output.bytes,
                       lk__buf_len(&c->requests.waiting_frames)))
    return false;
  for (lk_link *l; (l = lk__list_pop(&c->requests.waiting)) != NULL;)
    take_waiting_request(c, LK_OWNER(l, lk_request, link));
  lk__buf_trim(&c->requests.waiting_frames, MAX_WAITING_KEPT);
  return true;
}

/* ---- callbacks ----------------------------------------------------------- */

/* These functions invoke the callback of one kind of request. After an error it
 * gets NULL and 0 instead of the values of the body. */

static void complete_create(lk_client *c, const lk_request *r, int err,
                            const lk_reply_body *body)
{
  lk_create_cb done = (lk_create_cb)r->done;
  bool with_stat = r->op != LK_OPCODE_CREATE;

  done(c, err, err == 0 ? body->path.path.at : NULL,
       err == 0 && with_stat ? &body->path_stat.stat : NULL, r->arg);
}

static void complete_get(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_get_cb done = (lk_get_cb)r->done;

  done(c, err, err == 0 ? &body->data.data : NULL,
       err == 0 ? &body->data.stat : NULL, r->arg);
}

static void complete_acl(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_acl_cb done = (lk_acl_cb)r->done;

  if (err != 0) {
    done(c, err, NULL, NULL, r->arg);
    return;
  }
  lk_acls acl = {body->acl.acl.items, body->acl.acl.count};

  done(c, 0, &acl, &body->acl.stat, r->arg);
}

static void complete_children(lk_client *c, const lk_request *r, int err,
                              const lk_reply_body *body)
{
  lk_children_cb done = (lk_children_cb)r->done;

  done(c, err, err == 0 ? body->names_stat.names.items : NULL,
       err == 0 ? body->names_stat.names.count : 0,
       err == 0 ? &body->names_stat.stat : NULL, r->arg);
}

static void complete_paths(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_paths_cb done = (lk_paths_cb)r->done;

  done(c, err, err == 0 ? body->paths.paths.items : NULL,
       err == 0 ? body->paths.paths.count : 0, r->arg);
}

static void complete_who(lk_client *c, const lk_request *r, int err,
                         const lk_reply_body *body)
{
  lk_identities_cb done = (lk_identities_cb)r->done;

  done(c, err, err == 0 ? body->who.ids.items : NULL,
       err == 0 ? body->who.ids.count : 0, r->arg);
}

static void complete_multi(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_multi_cb done = (lk_multi_cb)r->done;

  /* The reply to a failed multi has no error, but its results have. */
  done(c, err == 0 ? body->multi.outcome : err,
       err == 0 ? body->multi.results : NULL, err == 0 ? r->operations : 0,
       r->arg);
}

static void complete_reads(lk_client *c, const lk_request *r, int err,
                           const lk_reply_body *body)
{
  lk_multi_read_cb done = (lk_multi_read_cb)r->done;

  done(c, err, err == 0 ? body->reads : NULL, err == 0 ? r->operations : 0,
       r->arg);
}

void lk__request_complete(lk_client *c, const lk_request *r, int err,
                          const lk_reply_body *body)
{
  c->requests.open--;
  if (r->handle != NULL)
    r->handle->request = NULL;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (r->done == NULL)
    return;
  switch (r->op) {
  case LK_OPCODE_CREATE:
  case LK_OPCODE_CREATE2:
  case LK_OPCODE_CREATE_CONTAINER:
  case LK_OPCODE_CREATE_TTL: complete_create(c, r, err, body); break;
  case LK_OPCODE_EXISTS:
  case LK_OPCODE_SET_DATA:
  case LK_OPCODE_SET_ACL:
    ((lk_stat_cb)r->done)(c, err, err == 0 ? &body->stat.stat : NULL, r->arg);
    break;
  case LK_OPCODE_GET_DATA:
  case LK_OPCODE_RECONFIG: complete_get(c, r, err, body); break;
  case LK_OPCODE_GET_ACL: complete_acl(c, r, err, body); break;
  case LK_OPCODE_GET_CHILDREN2: complete_children(c, r, err, body); break;
  case LK_OPCODE_GET_EPHEMERALS: complete_paths(c, r, err, body); break;
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
    ((lk_count_cb)r->done)(c, err, err == 0 ? body->count.count : 0, r->arg);
    break;
  case LK_OPCODE_WHO_AM_I: complete_who(c, r, err, body); break;
  case LK_OPCODE_MULTI: complete_multi(c, r, err, body); break;
  case LK_OPCODE_MULTI_READ: complete_reads(c, r, err, body); break;
  default: ((lk_done_cb)r->done)(c, err, r->arg); break;
  }
}

/* ---- sent requests, until their replies ---------------------------------- */

bool lk__requests_have_replies(const lk_client *c, uint64_t until)
{
  const lk_request *first = lk__requests_oldest(&c->requests);

  return first == NULL || first->end > until;
}

static bool is_write(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  return info != NULL && info->write;
}

void lk__request_forbid_retry(lk_client *c, int outcome)
{
  lk_request *r = lk__requests_oldest(&c->requests);

  if (r == NULL || is_write(r->op))
    return;
  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->outcome = outcome;
}

/* ---- the loss of the connection, and the end of the session -------------- */

static bool was_sent(const lk_request *r)
{
  return r->xid != 0;
}

/* The error with which a request completes when its connection is lost. This
 * must be called while c->output.sent is still that of the connection. */
static int outcome_without_reply(const lk_client *c, const lk_request *r)
{
  if (r->outcome != 0)
    return r->outcome; /* it was set before, for another reason */
  bool sent_in_full = was_sent(r) && r->end <= c->output.sent;

  if (!sent_in_full)
    return LK_ERR_NOT_SENT;
  return is_write(r->op) ? LK_ERR_IN_DOUBT : LK_ERR_CONNECTION_LOSS;
}

/* Let `r`, which is in no list, wait for the next connection, to be sent again.
 * false: it may not be repeated, or there is no memory, so it must complete. */
static bool repeat_request(lk_client *c, lk_request *r)
{
  if (r->completed || r->copy == NULL || c->close.begun ||
      !lk__buf_append(&c->requests.waiting_frames, r->copy, r->len))
    return false;
  r->xid = 0;
  lk__list_add(&c->requests.waiting, &r->link);
  if (r->watch != NULL)
    lk__watch_set_unsent(r->watch);
  return true;
}

void lk__requests_detach_sent(lk_client *c)
{
  for (lk_link *l; (l = lk__list_pop(&c->requests.sent)) != NULL;) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    if (!repeat_request(c, r))
      request_set_aside(c, r, outcome_without_reply(c, r));
  }
}

static void set_aside_list(lk_client *c, lk_link *list)
{
  for (lk_link *l; (l = lk__list_pop(list)) != NULL;) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    request_set_aside(c, r, outcome_without_reply(c, r));
  }
}

void lk__requests_detach_all(lk_client *c)
{
  set_aside_list(c, &c->requests.sent);
  set_aside_list(c, &c->requests.waiting);
  lk__buf_consume(&c->requests.waiting_frames,
                  lk__buf_len(&c->requests.waiting_frames));
  c->requests.completed_len = 0;
}

/* ---- completion without a reply ------------------------------------------ */

/* Complete a request that gets no reply, unless it has completed at its
 * deadline. */
static void complete_unanswered(lk_client *c, lk_request *r, int err)
{
  lk_watch *w = r->watch;

  if (r->completed)
    return;
  r->completed = true;
  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->watch = NULL;
  if (w != NULL)
    lk__watch_request_completed(c, w, was_sent(r) ? r->op : LK_OPCODE_OF_UNSENT,
                                err);
  lk__request_complete(c, r, err, NULL);
}

/* If the client is closed, LK_ERR_CLOSED would leave open whether a write was
 * executed. A write that was certainly not sent reports LK_ERR_NOT_SENT
 * instead. */
static bool is_unsent_write(const lk_request *r, int err)
{
  return err == LK_ERR_CLOSED && r->outcome == LK_ERR_NOT_SENT &&
         is_write(r->op);
}

void lk__requests_finish(lk_client *c)
{
  for (lk_link *l; (l = lk__list_pop(&c->requests.ending)) != NULL;) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    complete_unanswered(c, r, r->outcome);
    lk__request_free(c, r);
  }
}

void lk__requests_finish_all(lk_client *c, int err)
{
  for (lk_link *l; (l = lk__list_pop(&c->requests.ending)) != NULL;) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    complete_unanswered(c, r, is_unsent_write(r, err) ? r->outcome : err);
    lk__request_free(c, r);
  }
}

/* ---- deadlines that have passed, and cancelled requests ------------------ */

/* Complete a request whose deadline has passed, or that is cancelled. It stays
 * in its list: a sent request until its reply comes, a waiting one until
 * completed requests are removed together. */
static void end_in_list(lk_client *c, lk_request *r, int err)
{
  lk__heap_remove(&c->requests.deadlines, &r->deadline);
  if (!was_sent(r))
    c->requests.completed_len += r->len;
  complete_unanswered(c, r, err);
}

/* Remove the waiting requests that have completed. The frames of the others
 * move down in `waiting_frames`, so that there are no gaps. */
static void remove_completed_waiting(lk_client *c)
{
  unsigned char *from = lk__buf_bytes(&c->requests.waiting_frames);
  unsigned char *to = from; /* behind the last frame that is kept */
  lk_link *list = &c->requests.waiting;

  for (lk_link *l = list->next, *next; l != list; l = next) {
    lk_request *r = LK_OWNER(l, lk_request, link);
    size_t len = r->len;

    next = l->next;
    if (r->completed) {
      lk__list_remove(l);
      lk__request_free(c, r);
    } else {
      memmove(to, from, len);
      to += len;
    }
    from += len;
  }
  c->requests.waiting_frames.end -= (size_t)(from - to);
  c->requests.completed_len = 0;
  /* If the buffer is empty now, this lets it start again at its beginning. */
  lk__buf_consume(&c->requests.waiting_frames, 0);
}

/* Completed requests are removed when their frames are half of the bytes, so
 * that each remaining frame is moved only a few times. */
static void remove_completed_waiting_at_half(lk_client *c)
{
  const lk_engine_requests *q = &c->requests;

  if (q->completed_len > 0 &&
      q->completed_len * 2 >= lk__buf_len(&q->waiting_frames))
    remove_completed_waiting(c);
}

void lk__requests_time_out(lk_client *c)
{
  lk_engine_requests *q = &c->requests;

  while (lk__requests_deadline(q) <= c->now) {
    lk_request *r = LK_OWNER(q->deadlines.root, lk_request, deadline);
    bool attempt_failed = !was_sent(r) && r->outcome == LK_ERR_NOT_SENT;

    end_in_list(c, r, attempt_failed ? LK_ERR_NOT_SENT : LK_ERR_DEADLINE);
  }
  remove_completed_waiting_at_half(c);
}

void lk__requests_attempt_failed(lk_client *c)
{
  lk_link *list = &c->requests.waiting;

  for (lk_link *l = list->next; l != list; l = l->next) {
    lk_request *r = LK_OWNER(l, lk_request, link);

    if (!r->fails_offline || r->completed)
      continue;
    r->outcome = LK_ERR_NOT_SENT;
    lk__heap_remove(&c->requests.deadlines, &r->deadline);
    lk__heap_add(&c->requests.deadlines, &r->deadline, c->now);
  }
}

/* Whether `r` waits, and is not about to complete: then its outcome is known.
 */
static bool can_be_cancelled(const lk_request *r)
{
  return !was_sent(r) && r->outcome == 0;
}

int lk_request_cancel(lk_client *c, lk_request_handle *h)
{
  if (lk__client_is_forked(c))
    return LK_ERR_FORKED;
  if (h->request == NULL || !can_be_cancelled(h->request))
    return LK_ERR_STATE;
  lk__client_enter(c);
  end_in_list(c, h->request, LK_ERR_CANCELLED);
  remove_completed_waiting_at_half(c);
  lk__client_leave(c);
  return 0;
}

/* ---- the end ------------------------------------------------------------- */

/* All requests have completed, so all chunks are in the list. */
void lk__requests_free(lk_engine_requests *q, const lk_mem *mem)
{
  while (!lk__list_empty(&q->chunks))
    free_chunk(q, mem, LK_OWNER(q->chunks.next, lk_request_chunk, link));
  lk__buf_free(&q->waiting_frames);
  lk__buf_free(&q->path);
}
