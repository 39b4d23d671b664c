/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/timeout.h"
#include "jute/writer.h"
#include "proto/engine/reply_body.h"
#include "proto/wire/multi.h"

enum { FIRST_ROOM = 256, KEEP = 64 * 1024, LACKS_MS = 60 * 60 * 1000 };

int lk__request_refusal(lk_client *c)
{
  int err = lk__client_refusal(c);

  if (err != 0)
    return err;
  if (c->sent.count + c->waiting.count - c->waiting_ended + c->late.count >=
      c->outstanding_limit)
    return LK_ERR_TOO_MANY;
  return 0;
}

/* Where it stands in the list of opcodes; there are fewer than 64. */
static unsigned index_of(int32_t op)
{
  return (unsigned)(lk__opcode_info(op) - lk__opcodes);
}

void lk__request_note_unsupported(lk_client *c, int32_t op)
{
  lk__client_logf(c, LK_LOG_INFO, LK_ERR_UNIMPLEMENTED, "%s: does not know %s",
                  c->server, lk__opcode_info(op)->name);
  lk__hosts_mark_unsupported(&c->hosts, index_of(op), c->now + LACKS_MS);
}

void lk__request_rejected(lk_client *c, const lk_request *r)
{
  lk__request_note_unsupported(c, r->op);
  if (c->unknown_op != 0)
    return;
  c->unknown_op = r->op;
  c->unknown_end = r->end;
  c->unknown_until = c->now + c->timeout_ms / 3;
  if (c->fence > c->out_sent)
    c->fence = c->out_sent;
  lk__client_wake(c);
}

bool lk__request_is_unsupported(const lk_client *c, int32_t op)
{
  /* Hardly any server lacks anything: that is seen first. */
  return c->hosts.lacks.requests != 0 &&
         lk__hosts_lack_support(&c->hosts, index_of(op), c->now);
}

/* A server without a quorum answers what it refuses at once, ahead of reads
 * that came before it: the client could not tell which answer is whose. */
int lk__request_unsupported(const lk_client *c, int32_t op)
{
  if (c->no_quorum && !lk__opcode_info(op)->read_only)
    return LK_ERR_NOT_READ_ONLY;
  return lk__request_is_unsupported(c, op) ? LK_ERR_UNIMPLEMENTED : 0;
}

int32_t lk__request_next_xid(const lk_client *c)
{
  return c->xid == INT32_MAX ? 1 : c->xid + 1;
}

static void encode_body(const lk_call_spec *ask, lk_writer *w)
{
  if (ask->ops != NULL)
    lk__multi_encode(w, ask->ops, ask->parts, ask->chroot);
  else if (ask->reads != NULL)
    lk__multi_read_encode(w, ask->reads, ask->parts, ask->chroot);
  else if (ask->path != NULL)
    lk__path_encode(ask->rec, ask->value, ask->chroot, ask->path, w);
  else if (ask->rec != NULL)
    lk__record_encode(ask->rec, ask->value, w);
}

/* Write a whole frame behind the end of `b`, without adding it yet. */
static int encode(lk_client *c, lk_buf *b, const lk_call_spec *ask, int32_t xid,
                  size_t *len)
{
  if (!lk__buf_reserve(b, FIRST_ROOM))
    return LK_ERR_NO_MEMORY;
  for (;;) {
    lk_writer w;

    lk__writer_init(&w, lk__buf_room(b), b->cap - b->end);
    lk__writer_int(&w, 0);
    lk__writer_int(&w, xid);
    lk__writer_int(&w, ask->op);
    encode_body(ask, &w);
    if (w.err != 0)
      return w.err;
    if (w.len - 4 > c->send_limit)
      return LK_ERR_TOO_BIG;
    if (w.len <= w.cap) {
      lk__writer_patch(&w, 0, (int32_t)(w.len - 4));
      *len = w.len;
      return 0;
    }
    if (!lk__buf_reserve(b, w.len))
      return LK_ERR_NO_MEMORY;
  }
}

/* The whole path of what is asked, in the scratch buffer. */
static int whole_path(lk_client *c, const lk_call_spec *ask, lk_bytes *out)
{
  lk_buf *b = &c->scratch;

  lk__buf_consume(b, lk__buf_len(b));
  if (!lk__buf_append(b, ask->chroot, strlen(ask->chroot)) ||
      !lk__buf_append(b, ask->path, strlen(ask->path)))
    return LK_ERR_NO_MEMORY;
  *out = lk_bytes_of(lk__buf_bytes(b), lk__buf_len(b));
  return 0;
}

int lk__request_find_watched(lk_client *c, const lk_call_spec *ask,
                             lk_watched **out)
{
  lk_bytes path;
  int err = whole_path(c, ask, &path);

  *out = err == 0 ? lk__watched_find(&c->watches, path) : NULL;
  return err;
}

static lk_watch *new_watch(lk_client *c, const lk_call_spec *ask)
{
  lk_bytes path;

  if (whole_path(c, ask, &path) != 0)
    return NULL;
  lk_watch *w = lk__watch_new(&c->watches, path, ask->kind, ask->call);

  if (w != NULL) {
    w->covered = ask->covered;
    lk__watch_hold(w, c->phase != LK_PHASE_LIVE);
  }
  return w;
}

static bool is_limit(int64_t ms)
{
  return ms != 0 && ms != LK_NO_LIMIT;
}

/* When `call` must have ended. The clock is read afresh, since the last reading
 * may be as old as a stall of the output. */
static int64_t deadline_of(const lk_client *c, const lk_call *call, bool *late)
{
  *late = false;
  if (!is_limit(call->timeout_ms) && !is_limit(call->deadline_ms))
    return LK_NEVER;
  int64_t now = c->hooks.now(c->hooks.arg);
  int64_t at = lk__timeout_end(now, call->timeout_ms, call->deadline_ms);

  *late = at <= now;
  return at;
}

static int equip_watch(lk_client *c, lk_request *r, const lk_call_spec *ask)
{
  const lk_call *call = ask->call;

  if (call->on_event != NULL) {
    r->watch = new_watch(c, ask);
    if (r->watch == NULL)
      return LK_ERR_NO_MEMORY;
  }
  if (call->watch != NULL)
    *call->watch = r->watch == NULL ? NULL : lk__watch_handle(r->watch);
  return 0;
}

/* What a request needs beside its frame: a copy, a watch. */
static int equip(lk_client *c, lk_request *r, const lk_call_spec *ask,
                 int64_t deadline_ms, const void *frame)
{
  if (deadline_ms != LK_NEVER && !lk__deadline_add(c, r, deadline_ms))
    return LK_ERR_NO_MEMORY;
  if (ask->call->repeat) {
    r->copy = lk__mem_resize(&c->mem, NULL, r->len);
    if (r->copy == NULL)
      goto fail;
    memcpy(r->copy, frame, r->len);
  }
  if (equip_watch(c, r, ask) == 0)
    return 0;

fail:
  lk__mem_free(&c->mem, r->copy);
  lk__deadline_drop(c, r);
  return LK_ERR_NO_MEMORY;
}

/* It is the last in the output, */
static void stamp(lk_client *c, lk_request *r)
{
  r->sent_ms = c->now;
  r->end = c->out_sent + lk__buf_len(&c->out);
  lk__deadline_place(r, false);
}

/* or the last that waits. */
static void stamp_held(lk_client *c, lk_request *r)
{
  c->held_end += r->len;
  r->end = c->held_end;
  lk__deadline_place(r, true);
}

/* Its deadline has passed: it is not sent, and ends in the next turn. */
static int queue_late(lk_client *c, const lk_call_spec *ask)
{
  if (!lk__ring_reserve(&c->late))
    return LK_ERR_NO_MEMORY;
  lk_request *r = lk__ring_push(&c->late);

  *r = (lk_request){
      .op = ask->op, .parts = ask->parts, .done = ask->done, .arg = ask->arg};
  int err = equip_watch(c, r, ask);

  if (err != 0) {
    lk__ring_unpush(&c->late);
    return err;
  }
  if (r->watch != NULL)
    lk__watch_hold(r->watch, true);
  c->open++;
  lk__client_wake(c);
  return 0;
}

int lk__request_queue(lk_client *c, const lk_call_spec *ask)
{
  bool live = c->phase == LK_PHASE_LIVE, late = false;
  int64_t deadline_ms =
      ask->call == NULL ? LK_NEVER : deadline_of(c, ask->call, &late);

  if (late)
    return queue_late(c, ask);
  lk_buf *b = live ? &c->out : &c->held;
  lk_ring *ring = live ? &c->sent : &c->waiting;

  if (!lk__ring_reserve(ring))
    return LK_ERR_NO_MEMORY;
  if (c->depth == 0 && c->now_stale) {
    c->now = c->hooks.now(c->hooks.arg);
    c->now_stale = false;
  }
  lk_request *r = lk__ring_push(ring);

  *r = (lk_request){.op = ask->op,
                    .xid = live ? lk__request_next_xid(c) : 0,
                    .parts = ask->parts,
                    .done = ask->done,
                    .arg = ask->arg};
  int err = encode(c, b, ask, r->xid, &r->len);

  if (err == 0 && ask->call != NULL)
    err = equip(c, r, ask, deadline_ms, lk__buf_room(b));
  if (err != 0) {
    lk__ring_unpush(ring);
    return err;
  }
  b->end += r->len;
  if (live) {
    c->xid = r->xid;
    stamp(c, r);
  } else {
    stamp_held(c, r);
  }
  c->open++;
  lk__client_wake(c);
  return 0;
}

bool lk__requests_answered(const lk_client *c, uint64_t until)
{
  const lk_request *first =
      c->sent.count == 0 ? NULL : lk__ring_at(&c->sent, 0);

  return first == NULL || first->end > until;
}

bool lk__request_close(lk_client *c)
{
  lk_call_spec ask = {.op = LK_OPCODE_CLOSE_SESSION};

  if (lk__request_queue(c, &ask) != 0)
    return false;
  c->close_sent = true;
  return true;
}

int lk__request_close_verdict(const lk_client *c, int unanswered)
{
  const lk_request *last =
      c->close_sent ? lk__ring_at(&c->sent, c->sent.count - 1) : NULL;

  if (last != NULL && last->end <= c->out_sent)
    return unanswered;
  if (c->close_lost)
    return LK_ERR_IN_DOUBT;
  return c->session.id == 0 ? 0 : LK_ERR_NOT_SENT; /* 0: nothing to end */
}

/* Its watch is asked for unless one that stays serves it, by what has left
 * before: that may have changed while the request waited, and what is asked for
 * in LK_STATE_CONNECTED goes ahead. The flag is a frame's last byte. */
static void settle_watch(const lk_client *c, const lk_request *r,
                         unsigned char *frame)
{
  lk_watch *w = r->watch;

  if (w == NULL)
    return;
  lk__watch_hold(w, false);
  if (lk__watch_stays(w->kind))
    return;
  w->covered = lk__watched_covers(&c->watches, w->on, w->kind, true);
  w->bare = false;
  frame[r->len - 1] = !w->covered;
}

/* Move the oldest waiting request, of which the frame is the first in `held`,
 * to the output. */
static bool release_one(lk_client *c)
{
  const lk_request *waiting = lk__ring_at(&c->waiting, 0);
  size_t len = waiting->len;
  lk_writer w;

  if (!lk__ring_reserve(&c->sent) ||
      !lk__buf_append(&c->out, lk__buf_bytes(&c->held), len))
    return false;
  lk_request *r = lk__ring_push(&c->sent);

  *r = *waiting;
  r->xid = lk__request_next_xid(c);
  c->xid = r->xid;
  stamp(c, r);
  lk__writer_init(&w, lk__buf_room(&c->out) - len, len);
  lk__writer_patch(&w, 4, r->xid);
  settle_watch(c, r, lk__buf_room(&c->out) - len);
  lk__ring_pop(&c->waiting);
  lk__buf_consume(&c->held, len);
  return true;
}

/* Set the oldest waiting request aside: this server is not asked. */
static bool set_aside(lk_client *c, int fate)
{
  lk_request *r = lk__ring_at(&c->waiting, 0);
  size_t len = r->len;

  if (!lk__ring_reserve(&c->ending[0]))
    return false;
  r->fate = fate;
  lk__deadline_drop(c, r);
  memcpy(lk__ring_push(&c->ending[0]), r, sizeof *r);
  lk__ring_pop(&c->waiting);
  lk__buf_consume(&c->held, len);
  return true;
}

/* Forget the oldest waiting request, which has completed. */
static bool forget_one(lk_client *c)
{
  const lk_request *r = lk__ring_at(&c->waiting, 0);
  size_t len = r->len;

  lk__ring_pop(&c->waiting);
  lk__buf_consume(&c->held, len);
  c->waiting_ended--;
  return true;
}

static bool reserve_places(lk_ring *ring, size_t count)
{
  while (ring->cap - ring->count < count) {
    if (!lk__ring_grow(ring))
      return false;
  }
  return true;
}

/* Memory for all that waits, before the first of it moves: a release that
 * stopped halfway would have the requests that moved repeated behind those that
 * still wait. */
static bool reserve_release(lk_client *c)
{
  size_t unfit = 0;

  for (size_t i = 0; i < c->waiting.count; i++) {
    const lk_request *r = lk__ring_at(&c->waiting, i);

    unfit += lk__request_unsupported(c, r->op) != 0;
  }
  return lk__buf_reserve(&c->out, lk__buf_len(&c->held)) &&
         reserve_places(&c->sent, c->waiting.count) &&
         reserve_places(&c->ending[0], unfit);
}

bool lk__requests_release(lk_client *c)
{
  if (!reserve_release(c))
    return false;
  while (c->waiting.count > 0) {
    const lk_request *r = lk__ring_at(&c->waiting, 0);
    int unfit = lk__request_unsupported(c, r->op);

    if (!(r->ended     ? forget_one(c)
          : unfit != 0 ? set_aside(c, unfit)
                       : release_one(c)))
      return false;
  }
  lk__buf_trim(&c->held, KEEP);
  return true;
}

static void swap(lk_ring *a, lk_ring *b)
{
  lk_ring r = *a;

  *a = *b;
  *b = r;
}

static bool is_write(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  return info != NULL && info->write;
}

/* What a broken connection means for a request. */
static int verdict(const lk_client *c, const lk_request *r)
{
  if (r->fate != 0)
    return r->fate;
  if (r->xid == 0 || r->end > c->out_sent)
    return LK_ERR_NOT_SENT;
  return is_write(r->op) ? LK_ERR_IN_DOUBT : LK_ERR_CONNECTION_LOSS;
}

/* Ask again on the next connection. false: it cannot be, end it. */
static bool keep(lk_client *c, const lk_request *r)
{
  if (r->ended || r->copy == NULL || c->closing ||
      !lk__ring_reserve(&c->waiting) ||
      !lk__buf_append(&c->held, r->copy, r->len))
    return false;
  lk_request *again = lk__ring_push(&c->waiting);

  *again = *r;
  again->xid = 0;
  stamp_held(c, again);
  if (r->watch != NULL)
    lk__watch_hold(r->watch, true);
  return true;
}

/* What is to be asked again goes to those that wait, ahead of what is asked
 * from now on; the others stay, in order. */
static void keep_some(lk_client *c)
{
  lk_ring *ring = &c->ending[0];

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (keep(c, &r))
      continue;
    lk__deadline_drop(c, &r);
    r.fate = verdict(c, &r); /* while the output is that of the connection */
    memcpy(lk__ring_push(ring), &r, sizeof r); /* where it came from */
  }
}

/* Writes of which it is known that they never left, while the output is that of
 * the connection. */
static void mark_unsent_writes(const lk_client *c, lk_ring *ring)
{
  for (size_t i = 0; i < ring->count; i++) {
    lk_request *r = lk__ring_at(ring, i);

    if (is_write(r->op) && verdict(c, r) == LK_ERR_NOT_SENT)
      r->fate = LK_ERR_NOT_SENT;
  }
}

static void drop_deadlines(lk_client *c, const lk_ring *ring)
{
  for (size_t i = 0; i < ring->count; i++)
    lk__deadline_drop(c, lk__ring_at(ring, i));
}

void lk__requests_detach(lk_client *c, bool all)
{
  if (all) {
    mark_unsent_writes(c, &c->sent);
    mark_unsent_writes(c, &c->waiting);
  }
  swap(&c->sent, &c->ending[0]);
  if (!all) {
    keep_some(c);
    return;
  }
  swap(&c->waiting, &c->ending[1]);
  drop_deadlines(c, &c->ending[0]);
  drop_deadlines(c, &c->ending[1]);
  lk__buf_consume(&c->held, lk__buf_len(&c->held));
  c->waiting_ended = 0;
}

void lk__request_forbid_retry(lk_client *c, bool too_big)
{
  lk_request *r = c->sent.count == 0 ? NULL : lk__ring_at(&c->sent, 0);

  if (r == NULL || is_write(r->op))
    return;
  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->fate = too_big ? LK_ERR_TOO_BIG : 0;
}

static void finish(lk_client *c, lk_request *r, int err)
{
  lk_watch *w = r->watch;

  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->watch = NULL;
  if (w != NULL)
    lk__watch_request_completed(c, w, r->xid == 0 ? 0 : r->op, err);
  if (r->op == LK_OPCODE_SET_WATCHES && !r->ended)
    lk__watch_repair_completed(c, r->arg, err);
  if (!r->ended)
    lk__request_complete(c, r, err, NULL);
}

/* Not those that are made meanwhile: a callback may make another such call. */
static void finish_late(lk_client *c)
{
  for (size_t n = c->late.count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(&c->late, 0), sizeof r);
    lk__ring_pop(&c->late);
    finish(c, &r, LK_ERR_DEADLINE);
  }
}

/* A client that is closed need not leave it open whether such a write was
 * executed. */
static bool never_sent(const lk_request *r, int err)
{
  return err == LK_ERR_CLOSED && r->fate == LK_ERR_NOT_SENT;
}

void lk__requests_finish(lk_client *c, int err)
{
  if (err != 0)
    finish_late(c);
  for (int i = 0; i < 2; i++) {
    while (c->ending[i].count > 0) {
      lk_request r;

      memcpy(&r, lk__ring_at(&c->ending[i], 0), sizeof r);
      lk__ring_pop(&c->ending[i]);
      finish(c, &r, err != 0 && !never_sent(&r, err) ? err : r.fate);
    }
  }
}

/* Its place stays, for the reply to come or until others of the kind go. */
static void end_late(lk_client *c, lk_request *r)
{
  lk__deadline_drop(c, r);
  lk_request late = *r;

  c->waiting_ended += r->xid == 0;
  r->ended = true;
  r->copy = NULL;
  r->watch = NULL;
  finish(c, &late, LK_ERR_DEADLINE);
}

/* Forget those that wait and have ended: no answer will come for them. Bytes
 * are moved down, so that frames still follow each other. */
static void squeeze(lk_client *c)
{
  unsigned char *from = lk__buf_bytes(&c->held), *to = from;
  lk_ring *ring = &c->waiting;

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (!r.ended) {
      if (to != from)
        memmove(to, from, r.len);
      to += r.len;
      memcpy(lk__ring_push(ring), &r, sizeof r); /* where it came from */
    }
    from += r.len;
  }
  c->held.end -= (size_t)(from - to);
  c->waiting_ended = 0;
  lk__buf_consume(&c->held, 0); /* it may be empty now */
}

/* Those that have completed go when they are half of what waits, so that each
 * is moved a few times at most. */
void lk__requests_time_out(lk_client *c)
{
  finish_late(c);
  for (lk_request *r; (r = lk__deadline_due(c)) != NULL;)
    end_late(c, r);
  if (c->waiting_ended > 0 && c->waiting_ended * 2 >= c->waiting.count)
    squeeze(c);
}
