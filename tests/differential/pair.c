/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/pair.h"

#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REPEATS_MAX = 100000 };

pair *pair_new(side *a, side *b)
{
  pair *p = calloc(1, sizeof *p);

  if (p == NULL)
    abort();
  p->sides[0] = a;
  p->sides[1] = b;
  for (int k = 0; k < 2; k++) {
    p->normal_form[k].zxid_base = -1;
    p->normal_form[k].members = p->sides[k]->members;
  }
  for (size_t i = 0; i < SIDE_CONNS; i++)
    p->conns[i].out[0] = p->conns[i].out[1] = wire_buf();
  return p;
}

void pair_free(pair *p)
{
  recent_free(&p->recent);
  for (size_t i = 0; i < SIDE_CONNS; i++) {
    list_free(&p->conns[i].requests);
    for (int k = 0; k < 2; k++) {
      list_free(&p->conns[i].replies[k]);
      lk__buf_free(&p->conns[i].out[k]);
    }
  }
  for (int k = 0; k < 2; k++) {
    normal_free(&p->normal_form[k]);
    side_free(p->sides[k]);
  }
  free(p);
}

static void print_difference(const pair *p, unsigned conn,
                             size_t first_difference)
{
  fprintf(stderr, "difference; the last requests, as sent to %s 0:\n",
          p->sides[0]->kind->name);
  recent_print(&p->recent);
  fprintf(stderr, "\nReplies on connection %u:\n", conn);
  for (int k = 0; k < 2; k++) {
    fprintf(stderr, "\n%s %d:\n", p->sides[k]->kind->name, k);
    recent_print_list(&p->conns[conn].replies[k], first_difference);
  }
  fprintf(stderr, "\nRequest %" PRIu64 "; to repeat: %s\n", p->number,
          p->recent.command);
}

/* ---- sending ------------------------------------------------------------ */

void pair_open(pair *p, unsigned conn, unsigned server)
{
  pair_conn *c = &p->conns[conn];

  recent_note(&p->recent, p->number, conn, "opened to server %u", server);
  c->compared = true;
  for (int k = 0; k < 2; k++) {
    lk__buf_consume(&c->out[k], lk__buf_len(&c->out[k]));
    side_open(p->sides[k], conn, server);
  }
}

void pair_close(pair *p, unsigned conn)
{
  recent_note(&p->recent, p->number, conn, "closed");
  for (int k = 0; k < 2; k++)
    side_close(p->sides[k], conn);
}

static lk_buf *begin_request(pair *p, unsigned conn, int32_t op)
{
  pair_conn *c = &p->conns[conn];

  p->number++;
  if (c->compared) {
    counts_add(&p->counts, &c->requests, &c->replies[0]);
    list_empty(&c->requests);
    for (int k = 0; k < 2; k++) {
      list_empty(&c->replies[k]);
      c->nreplies[k] = 0;
    }
    c->compared = false;
  }
  return list_begin(&c->requests, op);
}

/* Adds the last request, at `mark` of side 0's output, to the recent frames. */
static void add_to_recent(pair *p, unsigned conn, size_t mark)
{
  const lk_buf *out = &p->conns[conn].out[0];
  const list *requests = &p->conns[conn].requests;
  int32_t op = requests->items[requests->count - 1].op;
  bool is_connect_request = op == NORMAL_CONNECT_REPLY;

  recent_frame(&p->recent, p->number, conn, is_connect_request,
               lk__buf_bytes(out) + mark, lk__buf_len(out) - mark);
}

void pair_connect(pair *p, unsigned conn, int64_t session,
                  pair_password password, int64_t last_zxid, int32_t timeout_ms)
{
  /* A connect request has no opcode: it is listed with that of its reply. */
  begin_request(p, conn, NORMAL_CONNECT_REPLY);
  list_end(&p->conns[conn].requests);
  for (int k = 0; k < 2; k++) {
    const normal_form *form = &p->normal_form[k];
    lk_buf *out = &p->conns[conn].out[k];
    unsigned char bytes[16] = {0};
    struct lk_connect_request r = {.last_zxid_seen =
                                       normal_to_zxid(form, last_zxid),
                                   .timeout_ms = timeout_ms,
                                   .password = {bytes, sizeof bytes}};

    if (session != PAIR_NEW_SESSION) { /* sessions are numbered from 1 */
      r.session_id = form->sessions[session - 1].id;
      memcpy(bytes, form->sessions[session - 1].password, sizeof bytes);
    }
    if (password == PAIR_WRONG_PASSWORD)
      bytes[7] ^= 0x40; /* any bit */
    size_t mark = wire_begin(out);

    wire_record(out, &lk__connect_request_record, &r);
    if (!lk__buf_append(out, "", 1)) /* the read-only byte: false */
      abort();
    wire_end(out, mark);
    if (k == 0)
      add_to_recent(p, conn, mark);
  }
}

/* Appends the body of a request. setWatches begins with a zxid in normal form,
 * which is replaced by that of the side's servers. */
static void append_body(const normal_form *form, int32_t op, lk_bytes body,
                        lk_buf *out)
{
  size_t at = lk__buf_len(out);
  lk_reader r;
  lk_writer w;

  if (!lk__buf_append(out, body.at, body.len))
    abort();
  if (op != LK_OPCODE_SET_WATCHES && op != LK_OPCODE_SET_WATCHES2)
    return;
  lk__reader_init(&r, body.at, body.len);
  lk__writer_init(&w, lk__buf_bytes(out) + at, sizeof(int64_t));
  lk__writer_long(&w, normal_to_zxid(form, lk__reader_long(&r)));
}

static void add_request(pair *p, unsigned conn, int k, int32_t op,
                        lk_bytes body)
{
  pair_conn *c = &p->conns[conn];
  struct lk_request_header head = {c->xid, op};
  size_t mark = wire_begin(&c->out[k]);

  wire_record(&c->out[k], &lk__request_header_record, &head);
  append_body(&p->normal_form[k], op, body, &c->out[k]);
  wire_end(&c->out[k], mark);
}

void pair_add_request(pair *p, unsigned conn, int32_t xid, int32_t op,
                      lk_bytes body)
{
  pair_conn *c = &p->conns[conn];
  size_t mark = lk__buf_len(&c->out[0]);

  if (!lk__buf_append(begin_request(p, conn, op), body.at, body.len))
    abort();
  list_end(&c->requests);
  c->xid = xid;
  add_request(p, conn, 0, op, body);
  add_request(p, conn, 1, op, body);
  add_to_recent(p, conn, mark);
}

void pair_send(pair *p, unsigned conn)
{
  for (int k = 0; k < 2; k++) {
    lk_buf *out = &p->conns[conn].out[k];
    side *s = p->sides[k];
    size_t len = lk__buf_len(out);

    if (len == 0)
      continue;
    p->normal_form[k].from_ms = s->kind->now_ms(s);
    s->kind->send(s, conn, lk__buf_bytes(out), len);
    lk__buf_consume(out, len);
  }
}

/* ---- receiving ---------------------------------------------------------- */

static bool is_event(lk_bytes frame)
{
  lk_reader r;

  lk__reader_init(&r, frame.at, frame.len);
  return lk__reader_int(&r) == LK_XID_EVENT;
}

/* The opcode of a frame: an event, or a reply to the next request. */
static int32_t frame_opcode(pair_conn *c, int k, lk_bytes frame)
{
  size_t next = c->nreplies[k];

  if (next < c->requests.count &&
      c->requests.items[next].op == NORMAL_CONNECT_REPLY)
    return NORMAL_CONNECT_REPLY;
  if (is_event(frame))
    return NORMAL_EVENT;
  return next < c->requests.count ? c->requests.items[next].op
                                  : NORMAL_UNEXPECTED;
}

static side_result receive_one(pair *p, unsigned conn, int k)
{
  static const int32_t op_of_end[] = {
      [SIDE_CLOSED] = NORMAL_CLOSED, [SIDE_SILENT] = NORMAL_SILENT};
  pair_conn *c = &p->conns[conn];
  lk_bytes frame;
  side_result result = side_receive(p->sides[k], conn, &frame);
  int32_t op =
      result == SIDE_FRAME ? frame_opcode(c, k, frame) : op_of_end[result];
  lk_buf *out = list_begin(&c->replies[k], op);

  if (result == SIDE_FRAME) {
    p->normal_form[k].to_ms = p->sides[k]->kind->now_ms(p->sides[k]);
    normal_frame(&p->normal_form[k], op, frame, out);
    if (op != NORMAL_EVENT)
      c->nreplies[k]++;
  }
  list_end(&c->replies[k]);
  return result;
}

/* Whether a reply did not come in time. */
static bool ends_silent(const list *replies)
{
  return replies->count > 0 &&
         replies->items[replies->count - 1].op == NORMAL_SILENT;
}

static void compare(pair *p, unsigned conn)
{
  list *replies = p->conns[conn].replies;
  size_t first_difference;

  if (p->any_order) {
    list_sort_runs(&replies[0], NORMAL_EVENT);
    list_sort_runs(&replies[1], NORMAL_EVENT);
  }
  first_difference = list_first_difference(&replies[0], &replies[1]);
  if (first_difference == replies[0].count &&
      first_difference == replies[1].count && !ends_silent(&replies[0]) &&
      !ends_silent(&replies[1]))
    return;
  print_difference(p, conn, first_difference);
  fflush(stderr);
  _exit(EXIT_FAILURE); /* without atexit(): nothing may wait for a server */
}

/* Receives until the last reply. */
static void receive_all(pair *p, unsigned conn, int k)
{
  const pair_conn *c = &p->conns[conn];

  while (c->nreplies[k] < c->requests.count &&
         receive_one(p, conn, k) == SIDE_FRAME)
    continue;
}

void pair_receive(pair *p, unsigned conn)
{
  pair_conn *c = &p->conns[conn];

  pair_send(p, conn);
  for (int k = 0; k < 2; k++)
    receive_all(p, conn, k);
  c->compared = true;
  compare(p, conn);
}

/* Decodes the header of the last reply; false: there is none. */
static bool decode_last_reply(const pair *p, unsigned conn, int k,
                              struct lk_reply_header *out)
{
  const list *replies = &p->conns[conn].replies[k];
  lk_reader r;

  if (replies->count == 0 ||
      !normal_is_reply(replies->items[replies->count - 1].op))
    return false;
  lk_bytes last = list_at(replies, replies->count - 1);

  lk__reader_init(&r, last.at, last.len);
  return lk__record_decode(&lk__reply_header_record, out, &r, NULL) == 0;
}

/* Discards the last reply and sends its request again. */
static void send_last_again(pair *p, unsigned conn, int k)
{
  pair_conn *c = &p->conns[conn];
  side *s = p->sides[k];
  int32_t op = c->requests.items[c->requests.count - 1].op;

  list_drop_last(&c->replies[k]);
  c->nreplies[k]--;
  add_request(p, conn, k, op, list_at(&c->requests, c->requests.count - 1));
  s->kind->pass_time(s);
  s->kind->send(s, conn, lk__buf_bytes(&c->out[k]), lk__buf_len(&c->out[k]));
  lk__buf_consume(&c->out[k], lk__buf_len(&c->out[k]));
  receive_all(p, conn, k);
}

/* Pings are used, since a server may not have applied the newest transaction. A
 * sync would help at a follower, but a leader answers it at once. */
void pair_settle(pair *p, unsigned conn)
{
  struct lk_reply_header head;

  pair_send(p, conn);
  for (int k = 0; k < 2; k++) {
    receive_all(p, conn, k);
    for (int i = 0; i < REPEATS_MAX && decode_last_reply(p, conn, k, &head) &&
                    head.zxid < p->normal_form[k].zxid;
         i++)
      send_last_again(p, conn, k);
  }
  p->conns[conn].compared = true;
  compare(p, conn);
}

void pair_await(pair *p, unsigned conn, int err)
{
  struct lk_reply_header head;

  pair_send(p, conn);
  for (int k = 0; k < 2; k++) {
    receive_all(p, conn, k);
    for (int i = 0; i < REPEATS_MAX && decode_last_reply(p, conn, k, &head) &&
                    head.err != err;
         i++)
      send_last_again(p, conn, k);
  }
  p->conns[conn].compared = true;
  compare(p, conn);
}

void pair_receive_close(pair *p, unsigned conn)
{
  pair_send(p, conn);
  for (int k = 0; k < 2; k++)
    while (receive_one(p, conn, k) == SIDE_FRAME)
      continue;
  p->conns[conn].compared = true;
  compare(p, conn);
  pair_close(p, conn);
}
