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
    list_free(&p->conns[i].asked);
    for (int k = 0; k < 2; k++) {
      list_free(&p->conns[i].said[k]);
      lk__buf_free(&p->conns[i].out[k]);
    }
  }
  for (int k = 0; k < 2; k++) {
    normal_free(&p->normal_form[k]);
    side_free(p->sides[k]);
  }
  free(p);
}

static void tell_difference(const pair *p, unsigned conn, size_t differs)
{
  fprintf(stderr, "A difference. The last that was sent, in words of %s 0:\n",
          p->sides[0]->kind->name);
  recent_tell(&p->recent);
  fprintf(stderr, "\nWhat came on connection %u:\n", conn);
  for (int k = 0; k < 2; k++) {
    fprintf(stderr, "\n%s %d:\n", p->sides[k]->kind->name, k);
    recent_tell_list(&p->conns[conn].said[k], differs);
  }
  fprintf(stderr, "\nRequest %" PRIu64 ". Again: %s\n", p->number,
          p->recent.again);
}

/* ---- asking ------------------------------------------------------------- */

void pair_open(pair *p, unsigned conn, unsigned server)
{
  pair_conn *c = &p->conns[conn];

  recent_note(&p->recent, p->number, conn, "opened to server %u", server);
  c->heard = true;
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

/* After an answer was heard, questions begin anew. */
static lk_buf *begin_question(pair *p, unsigned conn, int32_t op)
{
  pair_conn *c = &p->conns[conn];

  p->number++;
  if (c->heard) {
    counts_add(&p->counts, &c->asked, &c->said[0]);
    list_empty(&c->asked);
    for (int k = 0; k < 2; k++) {
      list_empty(&c->said[k]);
      c->answered[k] = 0;
    }
    c->heard = false;
  }
  return list_begin(&c->asked, op);
}

/* The frame that begins at `mark` of side 0's output is part of the recent
 * requests. */
static void remember(pair *p, unsigned conn, size_t mark, bool hello)
{
  const lk_buf *out = &p->conns[conn].out[0];

  recent_frame(&p->recent, p->number, conn, hello, lk__buf_bytes(out) + mark,
               lk__buf_len(out) - mark);
}

void pair_hello(pair *p, unsigned conn, int64_t session, bool right_password,
                int64_t last_zxid, int32_t timeout_ms)
{
  begin_question(p, conn, PLAIN_HELLO);
  list_end(&p->conns[conn].asked);
  for (int k = 1; k >= 0; k--) {
    const normal_form *names = &p->normal_form[k];
    lk_buf *out = &p->conns[conn].out[k];
    unsigned char password[16] = {0};
    struct lk_connect_request r = {.last_zxid_seen =
                                       normal_zxid_there(names, last_zxid),
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
    if (!lk__buf_append(out, "", 1)) /* not read-only */
      abort();
    wire_end(out, mark);
    if (k == 0)
      remember(p, conn, mark, true);
  }
}

/* Requests that name a zxid begin with it. */
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
  lk__writer_long(&w, normal_zxid_there(names, lk__reader_long(&r)));
}

static void put_request(pair *p, unsigned conn, int k, int32_t op,
                        lk_bytes body)
{
  pair_conn *c = &p->conns[conn];
  struct lk_request_header head = {c->xid, op};
  size_t mark = wire_begin(&c->out[k]);

  wire_record(&c->out[k], &lk__request_header_record, &head);
  put_body(&p->normal_form[k], op, body, &c->out[k]);
  wire_end(&c->out[k], mark);
}

void pair_ask(pair *p, unsigned conn, int32_t xid, int32_t op, lk_bytes body)
{
  pair_conn *c = &p->conns[conn];
  size_t mark = lk__buf_len(&c->out[0]);

  if (!lk__buf_append(begin_question(p, conn, op), body.at, body.len))
    abort();
  list_end(&c->asked);
  c->xid = xid;
  put_request(p, conn, 0, op, body);
  put_request(p, conn, 1, op, body);
  remember(p, conn, mark, false);
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

/* What a frame is: an event, or the answer to the next question. */
static int32_t meaning(pair_conn *c, int k, lk_bytes frame)
{
  size_t next = c->answered[k];

  if (next < c->asked.count && c->asked.items[next].op == PLAIN_HELLO)
    return PLAIN_HELLO;
  return is_event(frame)         ? PLAIN_EVENT
         : next < c->asked.count ? c->asked.items[next].op
                                 : PLAIN_STRAY;
}

static side_result hear_one(pair *p, unsigned conn, int k)
{
  static const int32_t ends[] = {
      [SIDE_CLOSED] = PLAIN_CLOSED, [SIDE_SILENT] = PLAIN_SILENT};
  pair_conn *c = &p->conns[conn];
  lk_bytes frame;
  side_result result = side_receive(p->sides[k], conn, &frame);
  int32_t op = result == SIDE_FRAME ? meaning(c, k, frame) : ends[result];
  lk_buf *out = list_begin(&c->said[k], op);

  if (result == SIDE_FRAME) {
    p->normal_form[k].to_ms = p->sides[k]->kind->now_ms(p->sides[k]);
    normal_frame(&p->normal_form[k], op, frame, out);
    if (op != PLAIN_EVENT)
      c->answered[k]++;
  }
  list_end(&c->said[k]);
  return result;
}

/* Nothing that is done here waits for something that may not come. */
static bool silent(const list said[2])
{
  return (said[0].count > 0 &&
          said[0].items[said[0].count - 1].op == PLAIN_SILENT) ||
         (said[1].count > 0 &&
          said[1].items[said[1].count - 1].op == PLAIN_SILENT);
}

static void compare(pair *p, unsigned conn)
{
  list *said = p->conns[conn].said;
  size_t differs;

  if (p->any_order) {
    list_sort_runs(&said[0], PLAIN_EVENT);
    list_sort_runs(&said[1], PLAIN_EVENT);
  }
  differs = list_differs(&said[0], &said[1]);
  if (differs == said[0].count && differs == said[1].count && !silent(said))
    return;
  tell_difference(p, conn, differs);
  fflush(stderr);
  _exit(EXIT_FAILURE);
}

/* Up to the last answer. */
static void hear_all(pair *p, unsigned conn, int k)
{
  const pair_conn *c = &p->conns[conn];

  while (c->answered[k] < c->asked.count && hear_one(p, conn, k) == SIDE_FRAME)
    continue;
}

void pair_hear(pair *p, unsigned conn)
{
  pair_conn *c = &p->conns[conn];

  pair_send(p, conn);
  for (int k = 0; k < 2; k++)
    hear_all(p, conn, k);
  c->heard = true;
  compare(p, conn);
}

/* The header of the last answer; false: there is none. */
static bool last_answer(const pair *p, unsigned conn, int k,
                        struct lk_reply_header *out)
{
  const list *said = &p->conns[conn].said[k];
  lk_reader r;

  if (said->count == 0 || said->items[said->count - 1].op <= PLAIN_EVENT ||
      said->items[said->count - 1].op >= PLAIN_HELLO)
    return false;
  lk_bytes last = list_at(said, said->count - 1);

  lk__reader_init(&r, last.at, last.len);
  return lk__record_decode(&lk__reply_header_record, out, &r, NULL) == 0;
}

/* The last answer does not count: ask for it again. */
static void ask_again(pair *p, unsigned conn, int k)
{
  pair_conn *c = &p->conns[conn];
  side *s = p->sides[k];
  int32_t op = c->asked.items[c->asked.count - 1].op;

  list_drop_last(&c->said[k]);
  c->answered[k]--;
  put_request(p, conn, k, op, list_at(&c->asked, c->asked.count - 1));
  s->kind->rest(s);
  s->kind->send(s, conn, lk__buf_bytes(&c->out[k]), lk__buf_len(&c->out[k]));
  lk__buf_consume(&c->out[k], lk__buf_len(&c->out[k]));
  hear_all(p, conn, k);
}

/* Every server applies transactions when it comes to it; a sync would help
   with followers, but not with a leader, which answers at once. */
void pair_settle(pair *p, unsigned conn)
{
  struct lk_reply_header head;

  pair_send(p, conn);
  for (int k = 0; k < 2; k++) {
    hear_all(p, conn, k);
    for (int i = 0; i < AGAIN && last_answer(p, conn, k, &head) &&
                    head.zxid < p->normal_form[k].zxid;
         i++)
      ask_again(p, conn, k);
  }
  p->conns[conn].heard = true;
  compare(p, conn);
}

void pair_await(pair *p, unsigned conn, int err)
{
  struct lk_reply_header head;

  pair_send(p, conn);
  for (int k = 0; k < 2; k++) {
    hear_all(p, conn, k);
    for (int i = 0;
         i < AGAIN && last_answer(p, conn, k, &head) && head.err != err; i++)
      ask_again(p, conn, k);
  }
  p->conns[conn].heard = true;
  compare(p, conn);
}

void pair_hear_end(pair *p, unsigned conn)
{
  pair_send(p, conn);
  for (int k = 0; k < 2; k++)
    while (hear_one(p, conn, k) == SIDE_FRAME)
      continue;
  p->conns[conn].heard = true;
  compare(p, conn);
  pair_close(p, conn);
}
