/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/timeout.h"
#include "jute/writer.h"
#include "proto/engine/client.h"
#include "proto/engine/server_support.h"
#include "proto/wire/multi.h"
#include "proto/wire/path.h"

/* Bytes of memory of `held` that are kept once no request waits. */
enum { MAX_HELD_KEPT = 64 * 1024 };

/* The place of the xid in a frame: behind the length field. */
enum { XID_OFFSET = 4 };

void lk__requests_init(lk_engine_requests *q, const lk_mem *mem)
{
  q->held.mem = mem;
  q->path.mem = mem;
  lk__ring_init(&q->sent, mem, sizeof(lk_request));
  lk__ring_init(&q->waiting, mem, sizeof(lk_request));
  lk__ring_init(&q->late, mem, sizeof(lk_request));
  lk__ring_init(&q->ending_sent, mem, sizeof(lk_request));
  lk__ring_init(&q->ending_waiting, mem, sizeof(lk_request));
}

void lk__requests_free(lk_engine_requests *q)
{
  lk__buf_free(&q->held);
  lk__buf_free(&q->path);
  lk__ring_free(&q->sent);
  lk__ring_free(&q->waiting);
  lk__ring_free(&q->late);
  lk__ring_free(&q->ending_sent);
  lk__ring_free(&q->ending_waiting);
}

bool lk__client_is_forked(const lk_client *c)
{
  return c->hooks.forked != NULL && c->hooks.forked(c->hooks.arg);
}

int lk__client_end_err(const lk_client *c)
{
  return c->session.final_err;
}

int lk__client_refusal(const lk_client *c)
{
  if (lk__client_is_forked(c))
    return LK_ERR_FORKED;
  if (lk__client_end_err(c) != 0)
    return lk__client_end_err(c);
  return c->close.begun || c->nesting.free_wanted ? LK_ERR_CLOSED : 0;
}

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
    w->covered = spec->covered;
    if (c->connection.phase != LK_PHASE_LIVE)
      lk__watch_hold(w);
  }
  return w;
}

/* Both 0 and LK_NO_LIMIT mean in a lk_call that there is no limit. */
static bool is_time_limit(int64_t ms)
{
  return ms != 0 && ms != LK_NO_LIMIT;
}

/* The deadline of `call`; LK_NEVER: it has none. `*late` is set if the deadline
 * has passed already. The clock is read here, since c->now may be out of date:
 * a program can make requests for long without an input of the driver. */
static int64_t deadline_of(const lk_client *c, const lk_call *call, bool *late)
{
  *late = false;
  if (!is_time_limit(call->timeout_ms) && !is_time_limit(call->deadline_ms))
    return LK_NEVER;
  int64_t now = c->hooks.now(c->hooks.arg);
  int64_t at = lk__timeout_end(now, call->timeout_ms, call->deadline_ms);

  *late = at <= now;
  return at;
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
 * a repetition, and the watch. */
static int add_call_options(lk_client *c, lk_request *r,
                            const lk_call_spec *spec, int64_t deadline_ms,
                            const void *frame)
{
  if (deadline_ms != LK_NEVER &&
      !lk__deadline_add(&c->deadlines, &c->mem, r, deadline_ms))
    return LK_ERR_NO_MEMORY;
  if (spec->call->repeat) {
    r->copy = lk__mem_resize(&c->mem, NULL, r->len);
    if (r->copy == NULL)
      goto fail;
    memcpy(r->copy, frame, r->len);
  }
  if (create_watch(c, r, spec) == 0)
    return 0;

fail:
  lk__mem_free(&c->mem, r->copy);
  lk__deadline_drop(&c->deadlines, &c->mem, r);
  return LK_ERR_NO_MEMORY;
}

/* Record in the deadline of `r` in which ring the request is, and where. */
static void update_deadline(const lk_request *r, bool is_waiting)
{
  if (r->deadline == NULL)
    return;
  r->deadline->end = r->end;
  r->deadline->is_waiting = is_waiting;
}

/* Set the position of `r`, whose frame is the last one in the output. */
static void place_sent(lk_client *c, lk_request *r)
{
  bool is_waiting = false;

  r->sent_ms = c->now;
  r->end = c->output.sent + lk__buf_len(&c->output.bytes);
  update_deadline(r, is_waiting);
}

void lk__request_place_held(lk_client *c, lk_request *r)
{
  bool is_waiting = true;

  c->requests.held_end += r->len;
  r->end = c->requests.held_end;
  update_deadline(r, is_waiting);
}

/* Accept a request whose deadline has passed. It is not sent and completes with
 * LK_ERR_DEADLINE in the next input, since no callback is invoked by the call
 * that makes the request. */
static int queue_late(lk_client *c, const lk_call_spec *spec)
{
  if (!lk__ring_reserve(&c->requests.late))
    return LK_ERR_NO_MEMORY;
  lk_request *r = lk__ring_push(&c->requests.late);

  *r = (lk_request){.op = spec->op,
                    .operations = spec->operations,
                    .done = spec->done,
                    .arg = spec->arg};
  int err = create_watch(c, r, spec);

  if (err != 0) {
    lk__ring_unpush(&c->requests.late);
    return err;
  }
  if (r->watch != NULL)
    lk__watch_hold(r->watch);
  c->requests.open++;
  lk__client_wake(c);
  return 0;
}

int lk__request_queue(lk_client *c, const lk_call_spec *spec)
{
  bool live = c->connection.phase == LK_PHASE_LIVE;
  bool late = false;
  int64_t deadline_ms =
      spec->call == NULL ? LK_NEVER : deadline_of(c, spec->call, &late);

  if (late)
    return queue_late(c, spec);
  lk_buf *b = live ? &c->output.bytes : &c->requests.held;
  lk_ring *ring = live ? &c->requests.sent : &c->requests.waiting;

  if (!lk__ring_reserve(ring))
    return LK_ERR_NO_MEMORY;
  /* A request from outside of any input reads the clock for its sent_ms, but
   * only once for a burst of requests. */
  if (c->nesting.depth == 0 && c->now_stale) {
    c->now = c->hooks.now(c->hooks.arg);
    c->now_stale = false;
  }
  lk_request *r = lk__ring_push(ring);

  *r = (lk_request){.op = spec->op,
                    .xid = live ? lk__request_next_xid(c) : 0,
                    .operations = spec->operations,
                    .done = spec->done,
                    .arg = spec->arg};
  int err = lk__request_encode(b, spec, r->xid, c->options.send_limit, &r->len);

  if (err == 0 && spec->call != NULL)
    err = add_call_options(c, r, spec, deadline_ms, lk__buf_room(b));
  if (err != 0) {
    lk__ring_unpush(ring);
    return err;
  }
  b->end += r->len;
  if (live) {
    c->session.last_xid = r->xid;
    place_sent(c, r);
  } else {
    lk__request_place_held(c, r);
  }
  c->requests.open++;
  lk__client_wake(c);
  return 0;
}

bool lk__requests_have_replies(const lk_client *c, uint64_t until)
{
  const lk_request *first =
      c->requests.sent.count == 0 ? NULL : lk__ring_at(&c->requests.sent, 0);

  return first == NULL || first->end > until;
}

/* Set the watch flag of a request that has waited. The flag is clear if a
 * persistent watch will cover the path when the server executes the request.
 * That depends on the requests that are sent before this one, and some of them
 * may be new: listeners can make requests in LK_STATE_CONNECTED. */
static void choose_watch_flag(const lk_client *c, const lk_request *r,
                              unsigned char *frame)
{
  lk_watch *w = r->watch;

  if (w == NULL)
    return;
  lk__watch_release(w);
  if (lk__watch_stays(w->kind))
    return; /* an addWatch has no such flag */
  w->covered =
      lk__watched_covers(&c->watches, w->on, w->kind, LK_BY_SENT_REQUESTS);
  w->bare = false;
  frame[r->len - 1] = w->covered ? 0 : 1; /* the flag is the last byte */
}

/* Send the oldest waiting request, whose frame is the first one in `held`.
 * false: no memory. */
static bool send_oldest_waiting(lk_client *c)
{
  const lk_request *waiting = lk__ring_at(&c->requests.waiting, 0);
  size_t len = waiting->len;
  lk_writer w;

  if (!lk__ring_reserve(&c->requests.sent) ||
      !lk__buf_append(&c->output.bytes, lk__buf_bytes(&c->requests.held), len))
    return false;
  lk_request *r = lk__ring_push(&c->requests.sent);

  *r = *waiting;
  r->xid = lk__request_next_xid(c);
  c->session.last_xid = r->xid;
  place_sent(c, r);
  unsigned char *frame = lk__buf_room(&c->output.bytes) - len;

  lk__writer_init(&w, frame, len);
  lk__writer_patch(&w, XID_OFFSET, r->xid);
  choose_watch_flag(c, r, frame);
  lk__ring_pop(&c->requests.waiting);
  lk__buf_consume(&c->requests.held, len);
  return true;
}

/* Set aside the oldest waiting request, which this server does not support, to
 * complete with `outcome`. false: no memory. */
static bool set_aside_unsupported(lk_client *c, int outcome)
{
  lk_request *r = lk__ring_at(&c->requests.waiting, 0);
  size_t len = r->len;

  if (!lk__ring_reserve(&c->requests.ending_sent))
    return false;
  r->outcome = outcome;
  lk__deadline_drop(&c->deadlines, &c->mem, r);
  memcpy(lk__ring_push(&c->requests.ending_sent), r, sizeof *r);
  lk__ring_pop(&c->requests.waiting);
  lk__buf_consume(&c->requests.held, len);
  return true;
}

/* Remove the oldest waiting request, which has completed. */
static void remove_completed(lk_client *c)
{
  const lk_request *r = lk__ring_at(&c->requests.waiting, 0);
  size_t len = r->len;

  lk__ring_pop(&c->requests.waiting);
  lk__buf_consume(&c->requests.held, len);
  c->requests.waiting_completed--;
}

/* Take the oldest waiting request out of its ring. false: no memory. */
static bool take_oldest_waiting(lk_client *c)
{
  const lk_request *r = lk__ring_at(&c->requests.waiting, 0);
  int support_err = lk__request_support_error(c, r->op);

  if (r->completed) {
    remove_completed(c);
    return true;
  }
  if (support_err != 0)
    return set_aside_unsupported(c, support_err);
  return send_oldest_waiting(c);
}

static bool reserve_places(lk_ring *ring, size_t count)
{
  while (ring->cap - ring->count < count) {
    if (!lk__ring_grow(ring))
      return false;
  }
  return true;
}

/* Reserve memory for all waiting requests before the first one is sent. If
 * sending stopped halfway, the connection would be ended, and the requests that
 * were sent would be repeated behind those that still wait, out of order. */
static bool reserve_for_waiting(lk_client *c)
{
  size_t unsupported = 0;

  for (size_t i = 0; i < c->requests.waiting.count; i++) {
    const lk_request *r = lk__ring_at(&c->requests.waiting, i);

    if (lk__request_support_error(c, r->op) != 0)
      unsupported++;
  }
  return lk__buf_reserve(&c->output.bytes, lk__buf_len(&c->requests.held)) &&
         reserve_places(&c->requests.sent, c->requests.waiting.count) &&
         reserve_places(&c->requests.ending_sent, unsupported);
}

bool lk__requests_send_waiting(lk_client *c)
{
  if (!reserve_for_waiting(c))
    return false;
  while (c->requests.waiting.count > 0) {
    if (!take_oldest_waiting(c))
      return false;
  }
  lk__buf_trim(&c->requests.held, MAX_HELD_KEPT);
  return true;
}
