/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/pair.h"

#include "proto/wire/opcode.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AGAIN = 100000 };

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

static void print_difference(const pair *p, unsigned conn, size_t differs)
{
  fprintf(stderr, "difference; the last requests, as sent to %s 0:\n",
          p->sides[0]->kind->name);
  recent_print(&p->recent);
  fprintf(stderr, "\nReplies on connection %u:\n", conn);
  for (int k = 0; k < 2; k++) {
    fprintf(stderr, "\n%s %d:\n", p->sides[k]->kind->name, k);
    recent_print_list(&p->conns[conn].replies[k], differs);
  }
  fprintf(stderr, "\nRequest %" PRIu64 "; to repeat: %s\n", p->number,
          p->recent.command);
}

/* ---- sending ------------------------------------------------------------ */

void pair_open(pair *p, unsigned conn, unsigned server)
{
  pair_conn *c = &p->conns[conn];

  recent_note(&p->recent, p->number, conn, "opened to server %u", server);
  c->received = true;
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

/* The first request after replies were compared clears both lists. */
static lk_buf *begin_request(pair *p, unsigned conn, int32_t op)
{
  pair_conn *c = &p->conns[conn];

  p->number++;
  if (c->received) {
    counts_add(&p->counts, &c->requests, &c->replies[0]);
    list_empty(&c->requests);
    for (int k = 0; k < 2; k++) {
      list_empty(&c->replies[k]);
      c->nreplies[k] = 0;
    }
    c->received = false;
  }
  return list_begin(&c->requests, op);
}

/* Adds the frame at `mark` of side 0's output to the recent frames. */
static void add_to_recent(pair *p, unsigned conn, size_t mark, bool hello)
{
  const lk_buf *out = &p->conns[conn].out[0];

  recent_frame(&p->recent, p->number, conn, hello, lk__buf_bytes(out) + mark,
               lk__buf_len(out) - mark);
}

void pair_connect(pair *p, unsigned conn, int64_t session, bool right_password,
                  int64_t last_zxid, int32_t timeout_ms)
{
  begin_request(p, conn, NORMAL_CONNECT_REPLY);
  list_end(&p->conns[conn].requests);
  for (int k = 1; k >= 0; k--) {
    const normal_form *names = &p->normal_form[k];
    lk_buf *out = &p->conns[conn].out[k];
    unsigned char password[16] = {0};
    struct lk_connect_request r = {.last_zxid_seen =
                                       normal_to_zxid(names, last_zxid),
                                   .timeout_ms = timeout_ms,
                                   .password = {password, sizeof password}};

    if (session > 0) {
      r.session_id = names->sessions[session - 1].id;
      memcpy(password, names->sessions[session - 1].password, sizeof password);
    }
    if (!right_password)
      password[7] ^= 0x40;
    size_t mark = wire_begin(out);

    wire_record(out, &lk__connect_request_record, &r);
    if (!lk__buf_append(out, "", 1)) /* the read-only byte: false */
      abort();
    wire_end(out, mark);
    if (k == 0)
      add_to_recent(p, conn, mark, true);
  }
}

/* setWatches begins with a zxid, which differs between the sides. */
static void put_body(const normal_form *names, int32_t op, lk_bytes body,
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
  lk__writer_init(&w, lk__buf_bytes(out) + at, 8);
  lk__writer_long(&w, normal_to_zxid(names, lk__reader_long(&r)));
}

static void add_request(pair *p, unsigned conn, int k, int32_t op,
                        lk_bytes body)
{
  pair_conn *c = &p->conns[conn];
  struct lk_request_header head = {c->xid, op};
  size_t mark = wire_begin(&c->out[k]);

  wire_record(&c->out[k], &lk__request_header_record, &head);
  put_body(&p->normal_form[k], op, body, &c->out[k]);
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
  add_to_recent(p, conn, mark, false);
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

/* ---- listening ---------------------------------------------------------- */

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
  return is_event(frame)            ? NORMAL_EVENT
         : next < c->requests.count ? c->requests.items[next].op
                                    : NORMAL_UNEXPECTED;
}

static side_result receive_one(pair *p, unsigned conn, int k)
{
  static const int32_t ends[] = {
      [SIDE_CLOSED] = NORMAL_CLOSED, [SIDE_SILENT] = NORMAL_SILENT};
  pair_conn *c = &p->conns[conn];
  lk_bytes frame;
  side_result result = side_receive(p->sides[k], conn, &frame);
  int32_t op = result == SIDE_FRAME ? frame_opcode(c, k, frame) : ends[result];
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

/* Whether one side has not answered in time. */
static bool is_silent(const list replies[2])
{
  return (replies[0].count > 0 &&
          replies[0].items[replies[0].count - 1].op == NORMAL_SILENT) ||
         (replies[1].count > 0 &&
          replies[1].items[replies[1].count - 1].op == NORMAL_SILENT);
}

static void compare(pair *p, unsigned conn)
{
  list *replies = p->conns[conn].replies;
  size_t differs;

  if (p->any_order) {
    list_sort_runs(&replies[0], NORMAL_EVENT);
    list_sort_runs(&replies[1], NORMAL_EVENT);
  }
  differs = list_differs(&replies[0], &replies[1]);
  if (differs == replies[0].count && differs == replies[1].count &&
      !is_silent(replies))
    return;
  print_difference(p, conn, differs);
  fflush(stderr);
  _exit(EXIT_FAILURE);
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
  c->received = true;
  compare(p, conn);
}

/* Decodes the header of the last reply; false: there is none. */
static bool last_reply(const pair *p, unsigned conn, int k,
                       struct lk_reply_header *out)
{
  const list *replies = &p->conns[conn].replies[k];
  lk_reader r;

  if (replies->count == 0 ||
      replies->items[replies->count - 1].op <= NORMAL_EVENT ||
      replies->items[replies->count - 1].op >= NORMAL_CONNECT_REPLY)
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
    for (int i = 0; i < AGAIN && last_reply(p, conn, k, &head) &&
                    head.zxid < p->normal_form[k].zxid;
         i++)
      send_last_again(p, conn, k);
  }
  p->conns[conn].received = true;
  compare(p, conn);
}

void pair_await(pair *p, unsigned conn, int err)
{
  struct lk_reply_header head;

  pair_send(p, conn);
  for (int k = 0; k < 2; k++) {
    receive_all(p, conn, k);
    for (int i = 0;
         i < AGAIN && last_reply(p, conn, k, &head) && head.err != err; i++)
      send_last_again(p, conn, k);
  }
  p->conns[conn].received = true;
  compare(p, conn);
}

void pair_receive_close(pair *p, unsigned conn)
{
  pair_send(p, conn);
  for (int k = 0; k < 2; k++)
    while (receive_one(p, conn, k) == SIDE_FRAME)
      continue;
  p->conns[conn].received = true;
  compare(p, conn);
  pair_close(p, conn);
}
