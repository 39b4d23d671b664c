/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Requests that complete without a reply: after a broken connection, at their
 * own deadline, or because the client ends.
 */

#include "base/mem.h"
#include "proto/engine/client.h"
#include "proto/engine/request_completion.h"
#include "proto/engine/watch_calls.h"
#include "proto/wire/opcode.h"

static void swap_rings(lk_ring *a, lk_ring *b)
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

/* Let the request wait for the next connection, to be sent again. false: it may
 * not be repeated, or there is no memory, so it must complete. */
static bool repeat_request(lk_client *c, const lk_request *r)
{
  if (r->completed || r->copy == NULL || c->close.begun ||
      !lk__ring_reserve(&c->requests.waiting) ||
      !lk__buf_append(&c->requests.held, r->copy, r->len))
    return false;
  lk_request *again = lk__ring_push(&c->requests.waiting);

  *again = *r;
  again->xid = 0;
  lk__request_place_held(c, again);
  if (r->watch != NULL)
    lk__watch_hold(r->watch);
  return true;
}

/* Move the requests that are repeated from ending_sent to `waiting`, before any
 * new request is made. The others stay in ending_sent, in their order: each
 * request is taken from the front, and added at the end if it is not repeated.
 */
static void repeat_requests(lk_client *c)
{
  lk_ring *ring = &c->requests.ending_sent;

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (repeat_request(c, &r))
      continue;
    lk__deadline_drop(&c->deadlines, &c->mem, &r);
    r.outcome = outcome_without_reply(c, &r);
    /* There is room for it: an item was removed above. */
    memcpy(lk__ring_push(ring), &r, sizeof r);
  }
}

/* Set the outcome of the writes that were certainly not sent. */
static void mark_unsent_writes(const lk_client *c, lk_ring *ring)
{
  for (size_t i = 0; i < ring->count; i++) {
    lk_request *r = lk__ring_at(ring, i);

    if (is_write(r->op) && outcome_without_reply(c, r) == LK_ERR_NOT_SENT)
      r->outcome = LK_ERR_NOT_SENT;
  }
}

static void drop_deadlines(lk_client *c, const lk_ring *ring)
{
  for (size_t i = 0; i < ring->count; i++)
    lk__deadline_drop(&c->deadlines, &c->mem, lk__ring_at(ring, i));
}

void lk__requests_detach_sent(lk_client *c)
{
  /* ending_sent is empty: lk__requests_finish() has completed its requests. */
  swap_rings(&c->requests.sent, &c->requests.ending_sent);
  repeat_requests(c);
}

void lk__requests_detach_all(lk_client *c)
{
  mark_unsent_writes(c, &c->requests.sent);
  mark_unsent_writes(c, &c->requests.waiting);
  swap_rings(&c->requests.sent, &c->requests.ending_sent);
  swap_rings(&c->requests.waiting, &c->requests.ending_waiting);
  drop_deadlines(c, &c->requests.ending_sent);
  drop_deadlines(c, &c->requests.ending_waiting);
  lk__buf_consume(&c->requests.held, lk__buf_len(&c->requests.held));
  c->requests.waiting_completed = 0;
}

void lk__request_forbid_retry(lk_client *c, int outcome)
{
  lk_request *r =
      c->requests.sent.count == 0 ? NULL : lk__ring_at(&c->requests.sent, 0);

  if (r == NULL || is_write(r->op))
    return;
  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->outcome = outcome;
}

/* Complete a request that gets no reply. A request whose callback was invoked
 * at its deadline (`completed`) only frees what it still has. */
static void complete_unanswered(lk_client *c, lk_request *r, int err)
{
  lk_watch *w = r->watch;

  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->watch = NULL;
  if (w != NULL)
    lk__watch_request_completed(c, w, was_sent(r) ? r->op : LK_OPCODE_OF_UNSENT,
                                err);
  if (r->op == LK_OPCODE_SET_WATCHES && !r->completed)
    lk__watch_repair_completed(c, r->arg, err);
  if (!r->completed)
    lk__request_complete(c, r, err, NULL);
}

/* Complete the requests in `late`, but not those that callbacks add meanwhile.
 * A callback that always makes another late request would keep this loop
 * running for ever. */
static void complete_late(lk_client *c)
{
  for (size_t n = c->requests.late.count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(&c->requests.late, 0), sizeof r);
    lk__ring_pop(&c->requests.late);
    complete_unanswered(c, &r, LK_ERR_DEADLINE);
  }
}

/* Take the next request that was set aside. false: there is none. */
static bool take_ending(lk_client *c, lk_request *out)
{
  lk_ring *ring = c->requests.ending_sent.count > 0
                      ? &c->requests.ending_sent
                      : &c->requests.ending_waiting;

  if (ring->count == 0)
    return false;
  memcpy(out, lk__ring_at(ring, 0), sizeof *out);
  lk__ring_pop(ring);
  return true;
}

/* If the client is closed, LK_ERR_CLOSED would leave open whether a write was
 * executed. A write that was certainly not sent reports LK_ERR_NOT_SENT
 * instead. */
static bool is_unsent_write(const lk_request *r, int err)
{
  return err == LK_ERR_CLOSED && r->outcome == LK_ERR_NOT_SENT;
}

void lk__requests_finish(lk_client *c)
{
  lk_request r;

  while (take_ending(c, &r))
    complete_unanswered(c, &r, r.outcome);
}

void lk__requests_finish_all(lk_client *c, int err)
{
  lk_request r;

  complete_late(c);
  while (take_ending(c, &r))
    complete_unanswered(c, &r, is_unsent_write(&r, err) ? r.outcome : err);
}

/* Complete a request whose deadline has passed. It stays in its ring: a sent
 * request until its reply comes, a waiting one until completed requests are
 * removed together. */
static void time_out_request(lk_client *c, lk_request *r)
{
  lk__deadline_drop(&c->deadlines, &c->mem, r);
  lk_request late = *r;

  if (!was_sent(r))
    c->requests.waiting_completed++;
  r->completed = true;
  r->copy = NULL;
  r->watch = NULL;
  complete_unanswered(c, &late, LK_ERR_DEADLINE);
}

/* Remove the waiting requests that have completed. The frames of the others
 * move down in `held`, so that there are no gaps. */
static void remove_completed_waiting(lk_client *c)
{
  unsigned char *from = lk__buf_bytes(&c->requests.held);
  unsigned char *to = from; /* behind the last frame that is kept */
  lk_ring *ring = &c->requests.waiting;

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (!r.completed) {
      if (to != from)
        memmove(to, from, r.len);
      to += r.len;
      memcpy(lk__ring_push(ring), &r, sizeof r); /* an item was removed above */
    }
    from += r.len;
  }
  c->requests.held.end -= (size_t)(from - to);
  c->requests.waiting_completed = 0;
  /* If the buffer is empty now, this lets it start again at its beginning. */
  lk__buf_consume(&c->requests.held, 0);
}

/* Find the request with this `end`, by which the ring is ordered. */
static lk_request *find_by_end(const lk_ring *ring, uint64_t end)
{
  size_t low = 0, high = ring->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    lk_request *r = lk__ring_at(ring, middle);

    if (r->end == end)
      return r;
    if (r->end < end)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

/* A request whose deadline has passed; NULL: there is none. */
static lk_request *overdue_request(const lk_client *c)
{
  const lk_deadline *d = lk__deadline_due(&c->deadlines, c->now);

  return d == NULL ? NULL
                   : find_by_end(d->is_waiting ? &c->requests.waiting
                                               : &c->requests.sent,
                                 d->end);
}

/* Completed requests are removed when they are half of the waiting ones, so
 * that each remaining request is moved only a few times. */
void lk__requests_time_out(lk_client *c)
{
  complete_late(c);
  for (lk_request *r; (r = overdue_request(c)) != NULL;)
    time_out_request(c, r);
  if (c->requests.waiting_completed > 0 &&
      c->requests.waiting_completed * 2 >= c->requests.waiting.count)
    remove_completed_waiting(c);
}
