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

/* The error with which a request completes when its connection is lost. */
static int outcome_without_reply(const lk_client *c, const lk_request *r)
{
  if (r->outcome != 0)
    return r->outcome;
  if (r->xid == 0 || r->end > c->output.sent)
    return LK_ERR_NOT_SENT;
  return is_write(r->op) ? LK_ERR_IN_DOUBT : LK_ERR_CONNECTION_LOSS;
}

/* Repeat the request on the next connection. false: it must complete instead.
 */
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
    lk__watch_hold(r->watch, true);
  return true;
}

/* Requests to be repeated move to the waiting ones, before all requests that
 * are made from now on. The others stay, in order. */
static void repeat_requests(lk_client *c)
{
  lk_ring *ring = &c->requests.ending[0];

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (repeat_request(c, &r))
      continue;
    lk__deadline_drop(&c->deadlines, &c->mem, &r);
    r.outcome = outcome_without_reply(
        c, &r); /* while the output is that of the connection */
    memcpy(lk__ring_push(ring), &r, sizeof r); /* where it came from */
  }
}

/* Writes of which it is known that they never left, while the output is that of
 * the connection. */
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

void lk__requests_detach(lk_client *c, bool all)
{
  if (all) {
    mark_unsent_writes(c, &c->requests.sent);
    mark_unsent_writes(c, &c->requests.waiting);
  }
  swap_rings(&c->requests.sent, &c->requests.ending[0]);
  if (!all) {
    repeat_requests(c);
    return;
  }
  swap_rings(&c->requests.waiting, &c->requests.ending[1]);
  drop_deadlines(c, &c->requests.ending[0]);
  drop_deadlines(c, &c->requests.ending[1]);
  lk__buf_consume(&c->requests.held, lk__buf_len(&c->requests.held));
  c->requests.waiting_completed = 0;
}

void lk__request_forbid_retry(lk_client *c, bool too_big)
{
  lk_request *r =
      c->requests.sent.count == 0 ? NULL : lk__ring_at(&c->requests.sent, 0);

  if (r == NULL || is_write(r->op))
    return;
  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->outcome = too_big ? LK_ERR_TOO_BIG : 0;
}

static void complete_unanswered(lk_client *c, lk_request *r, int err)
{
  lk_watch *w = r->watch;

  lk__mem_free(&c->mem, r->copy);
  r->copy = NULL;
  r->watch = NULL;
  if (w != NULL)
    lk__watch_request_completed(c, w, r->xid == 0 ? 0 : r->op, err);
  if (r->op == LK_OPCODE_SET_WATCHES && !r->completed)
    lk__watch_repair_completed(c, r->arg, err);
  if (!r->completed)
    lk__request_complete(c, r, err, NULL);
}

/* Not those that are made meanwhile: a callback may make another such call. */
static void complete_late(lk_client *c)
{
  for (size_t n = c->requests.late.count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(&c->requests.late, 0), sizeof r);
    lk__ring_pop(&c->requests.late);
    complete_unanswered(c, &r, LK_ERR_DEADLINE);
  }
}

/* A client that is closed need not leave it open whether such a write was
 * executed. */
static bool is_unsent_write(const lk_request *r, int err)
{
  return err == LK_ERR_CLOSED && r->outcome == LK_ERR_NOT_SENT;
}

void lk__requests_finish(lk_client *c, int err)
{
  if (err != 0)
    complete_late(c);
  for (int i = 0; i < 2; i++) {
    while (c->requests.ending[i].count > 0) {
      lk_request r;

      memcpy(&r, lk__ring_at(&c->requests.ending[i], 0), sizeof r);
      lk__ring_pop(&c->requests.ending[i]);
      complete_unanswered(
          c, &r, err != 0 && !is_unsent_write(&r, err) ? err : r.outcome);
    }
  }
}

/* Its place stays, for the reply to come or until others of the kind go. */
static void time_out_request(lk_client *c, lk_request *r)
{
  lk__deadline_drop(&c->deadlines, &c->mem, r);
  lk_request late = *r;

  c->requests.waiting_completed += r->xid == 0;
  r->completed = true;
  r->copy = NULL;
  r->watch = NULL;
  complete_unanswered(c, &late, LK_ERR_DEADLINE);
}

/* Remove the waiting requests that have completed. The bytes of the others move
 * down, so that frames still follow each other. */
static void remove_completed_waiting(lk_client *c)
{
  unsigned char *from = lk__buf_bytes(&c->requests.held), *to = from;
  lk_ring *ring = &c->requests.waiting;

  for (size_t n = ring->count; n > 0; n--) {
    lk_request r;

    memcpy(&r, lk__ring_at(ring, 0), sizeof r);
    lk__ring_pop(ring);
    if (!r.completed) {
      if (to != from)
        memmove(to, from, r.len);
      to += r.len;
      memcpy(lk__ring_push(ring), &r, sizeof r); /* where it came from */
    }
    from += r.len;
  }
  c->requests.held.end -= (size_t)(from - to);
  c->requests.waiting_completed = 0;
  lk__buf_consume(&c->requests.held, 0); /* it may be empty now */
}

/* The request whose last byte is at `end`: it is there. */
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

/* A request whose deadline has passed, or NULL. */
static lk_request *overdue_request(const lk_client *c)
{
  const lk_deadline *d = lk__deadline_due(&c->deadlines, c->now);

  return d == NULL
             ? NULL
             : find_by_end(d->waits ? &c->requests.waiting : &c->requests.sent,
                           d->end);
}

/* Those that have completed go when they are half of what waits, so that each
 * is moved a few times at most. */
void lk__requests_time_out(lk_client *c)
{
  complete_late(c);
  for (lk_request *r; (r = overdue_request(c)) != NULL;)
    time_out_request(c, r);
  if (c->requests.waiting_completed > 0 &&
      c->requests.waiting_completed * 2 >= c->requests.waiting.count)
    remove_completed_waiting(c);
}
