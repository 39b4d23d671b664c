/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/pipe.h"

#include "base/mem.h"
#include "sim/world/allocate.h"
#include "sim/world/process.h"

#include <stdlib.h>

enum {
  IN_FLIGHT_MAX = 64 * 1024,
  KB = 1024,
  SPLITS_PERMILLE = 30, /* segments that arrive in two pieces */
  PARTIAL_WRITES_PERMILLE = 20
};

/* Bytes that were sent together, or the end of the stream. */
typedef struct segment {
  int64_t at_us; /* when it arrives */
  size_t len;
  bool end;
} segment;

static sim_route *route_of(const sim_pipe *p)
{
  return sim_network_route(p->network, p->process, p->server);
}

static void trace_pipe(const sim_pipe *p, const char *what)
{
  SIM_TRACE(&p->network->world->trace, "network", "p%u - server %u: %s",
            p->process, p->server, what);
}

static void notify_process(sim_pipe *p)
{
  if (p->on_ready != NULL)
    p->on_ready(p->arg);
}

/* ---- end of a connection ------------------------------------------------ */

void sim_pipe_empty(sim_pipe *p, int direction)
{
  sim_flow *f = &p->flows[direction];

  sim_unschedule(&p->network->world->agenda, &f->job);
  while (f->parts.count > 0)
    lk__ring_pop(&f->parts);
  lk__buf_consume(&f->bytes, lk__buf_len(&f->bytes));
}

void sim_pipe_free_if_unused(sim_pipe *p)
{
  if (p->on_ready != NULL || p->conn != NULL)
    return;
  sim_unschedule(&p->network->world->agenda, &p->connecting);
  sim_pipe_empty(p, SIM_UP);
  sim_pipe_empty(p, SIM_DOWN);
  lk__list_remove(&p->link);
  lk__list_add(&p->network->freed_later, &p->link);
}

void sim_pipes_free(sim_network *n)
{
  while (!lk__list_empty(&n->freed_later)) {
    sim_pipe *p = LK_OWNER(n->freed_later.next, sim_pipe, link);

    lk__list_remove(&p->link);
    for (int direction = SIM_UP; direction <= SIM_DOWN; direction++) {
      lk__buf_free(&p->flows[direction].bytes);
      lk__ring_free(&p->flows[direction].parts);
    }
    lk__buf_free(&p->arrived);
    free(p);
  }
}

/* ---- bytes in flight ---------------------------------------------------- */

static int64_t random_delay(const sim_pipe *p, int direction)
{
  int64_t least = route_of(p)->delay_us[direction];

  return sim_between(&p->network->rng, least, least + 200);
}

/* Schedules the arrival of the first segment, unless the route is cut. */
static void schedule_delivery(sim_pipe *p, int direction)
{
  sim_flow *f = &p->flows[direction];

  if (f->parts.count == 0 || route_of(p)->cut[direction] > 0)
    return;
  segment *first = lk__ring_at(&f->parts, 0);

  sim_schedule_at(&p->network->world->agenda, &f->job, first->at_us);
}

static void add_segment(sim_pipe *p, int direction, const void *bytes,
                        segment added)
{
  sim_flow *f = &p->flows[direction];
  int64_t at = p->network->world->agenda.now_us + random_delay(p, direction);

  if (!lk__ring_reserve(&f->parts) ||
      (added.len > 0 && !lk__buf_append(&f->bytes, bytes, added.len)))
    abort();
  if (f->last_us < at)
    f->last_us = at;
  if (direction == SIM_DOWN)
    f->last_us += route_of(p)->us_per_kb * (int64_t)added.len / KB;
  added.at_us = f->last_us;
  *(segment *)lk__ring_push(&f->parts) = added;
  if (f->parts.count == 1)
    schedule_delivery(p, direction);
}

/* If the bandwidth is limited, long data are sent in segments of a kilobyte. */
static void send_bytes(sim_pipe *p, int direction, const void *bytes,
                       size_t len)
{
  const unsigned char *at = bytes;
  bool is_limited = direction == SIM_DOWN && route_of(p)->us_per_kb > 0;

  for (; is_limited && len > KB; at += KB, len -= KB)
    add_segment(p, direction, at, (segment){.len = KB});
  add_segment(p, direction, at, (segment){.len = len});
}

static void send_end_of_stream(sim_pipe *p, int direction)
{
  add_segment(p, direction, NULL, (segment){.end = true});
}

void sim_pipe_remove_bandwidth(sim_pipe *p)
{
  sim_flow *f = &p->flows[SIM_DOWN];
  int64_t soon = p->network->world->agenda.now_us + random_delay(p, SIM_DOWN);

  for (size_t i = 0; i < f->parts.count; i++) {
    segment *a = lk__ring_at(&f->parts, i);

    if (a->at_us > soon)
      a->at_us = soon;
  }
  if (f->last_us > soon)
    f->last_us = soon;
  schedule_delivery(p, SIM_DOWN);
}

/* Breaks the connection; the process, the server or both notice. Bytes sent to
 * the server may still arrive. */
void sim_pipe_break(sim_pipe *p)
{
  enum { ONLY_PROCESS, ONLY_SERVER, BOTH, CHOICES = 8 }; /* mostly both */
  uint32_t notices =
      p->network->has_faults ? sim_roll(&p->network->rng, CHOICES) : BOTH;

  if (notices == ONLY_PROCESS)
    trace_pipe(p, "broken, and the server does not know");
  else if (notices == ONLY_SERVER)
    trace_pipe(p, "broken, and the process does not know");
  else
    trace_pipe(p, "broken");
  p->flows[SIM_UP].lossy = true;
  p->flows[SIM_DOWN].lossy = true;
  sim_pipe_empty(p, SIM_DOWN);
  if (sim_one_in(&p->network->rng, 2))
    sim_pipe_empty(p, SIM_UP);
  if (notices != ONLY_PROCESS)
    send_end_of_stream(p, SIM_UP);
  if (notices == ONLY_SERVER)
    return;
  p->state = SIM_PIPE_RESET;
  notify_process(p);
}

/* Takes the first segment, or a piece of it whose rest arrives a little
 * later. */
static segment take_segment(sim_pipe *p, int direction)
{
  sim_flow *f = &p->flows[direction];
  sim_network *n = p->network;
  segment *first = lk__ring_at(&f->parts, 0);
  segment piece = *first;
  int64_t rest_within_us = 200;
  bool is_limited = n->max_piece != SIM_PIECES_OF_ANY_SIZE;

  if (is_limited && piece.len > n->max_piece) {
    piece.len = 1 + sim_roll(&n->rng, (uint32_t)n->max_piece);
  } else if (n->has_faults && piece.len > 1 &&
             sim_chance(&n->rng, SPLITS_PERMILLE)) {
    piece.len = 1 + sim_roll(&n->rng, (uint32_t)piece.len - 1);
    rest_within_us = 5 * SIM_MS;
  }
  if (piece.len > f->break_after)
    piece.len = f->break_after;
  if (piece.len == first->len) {
    lk__ring_pop(&f->parts);
    return piece;
  }
  first->len -= piece.len;
  first->at_us =
      n->world->agenda.now_us + sim_between(&n->rng, 0, rest_within_us);
  return piece;
}

/* The server may reply and close before this returns. */
static void deliver_to_server(sim_pipe *p, size_t len)
{
  sim_flow *f = &p->flows[SIM_UP];
  unsigned char *copy = sim_allocate(len);

  memcpy(copy, lk__buf_bytes(&f->bytes), len);
  lk__buf_consume(&f->bytes, len);
  if (p->conn != NULL) {
    sim_conn_input(p->conn, copy, len);
  } else if (p->host_is_down && sim_server_runs(sim_ensemble_server(
                                    p->network->world->ensemble, p->server))) {
    /* the machine has restarted and does not know the connection */
    p->state = SIM_PIPE_RESET;
    notify_process(p);
  }
  free(copy);
}

static void deliver_up(sim_pipe *p, const segment *a)
{
  sim_conn *c = p->conn;

  if (a->len > 0)
    deliver_to_server(p, a->len);
  if (a->end && c != NULL) {
    p->conn = NULL;
    sim_conn_close(c);
  }
  if (p->waits_to_send) {
    p->waits_to_send = false;
    notify_process(p);
  }
  sim_pipe_free_if_unused(p);
}

static void deliver_down(sim_pipe *p, const segment *a)
{
  sim_flow *f = &p->flows[SIM_DOWN];

  if (a->end)
    p->state = SIM_PIPE_CLOSED;
  if (a->len > 0 &&
      !lk__buf_append(&p->arrived, lk__buf_bytes(&f->bytes), a->len))
    abort();
  lk__buf_consume(&f->bytes, a->len);
  notify_process(p);
}

static void deliver(sim_pipe *p, int direction)
{
  sim_flow *f = &p->flows[direction];

  if (route_of(p)->cut[direction] > 0 || p->state == SIM_PIPE_CONNECTING)
    return;
  segment piece = take_segment(p, direction);
  bool breaks = f->break_after == piece.len;

  if (breaks)
    f->break_after = SIM_NEVER_BREAK;
  else if (f->break_after != SIM_NEVER_BREAK)
    f->break_after -= piece.len;
  schedule_delivery(p, direction);
  if (direction == SIM_UP)
    deliver_up(p, &piece);
  else
    deliver_down(p, &piece);
  if (breaks && p->on_ready != NULL && p->state == SIM_PIPE_OPEN)
    sim_pipe_break(p);
}

static void on_up(void *arg)
{
  deliver(arg, SIM_UP);
}

static void on_down(void *arg)
{
  deliver(arg, SIM_DOWN);
}

/* ---- the server's side -------------------------------------------------- */

static void on_output(const void *bytes, size_t len, void *arg)
{
  sim_pipe *p = arg;

  if (p->on_ready != NULL && !p->flows[SIM_DOWN].lossy)
    send_bytes(p, SIM_DOWN, bytes, len);
}

/* The server has closed. If it had unread bytes, the connection is reset, and
 * the last bytes that it sent may be lost. */
static void on_closed(void *arg)
{
  sim_pipe *p = arg;

  p->conn = NULL;
  p->refused = p->refused || !p->answered;
  if (p->on_ready != NULL && !p->host_is_down && !p->flows[SIM_DOWN].lossy) {
    if (p->network->has_faults && sim_one_in(&p->network->rng, 8))
      sim_pipe_empty(p, SIM_DOWN);
    send_end_of_stream(p, SIM_DOWN);
  }
  sim_pipe_free_if_unused(p);
}

/* The client's SYN reaches the server. Behind a proxy it does not, and the
 * proxy accepts the connection. */
static void reach_server(sim_pipe *p)
{
  sim_network *n = p->network;
  sim_server *s = sim_ensemble_server(n->world->ensemble, p->server);
  sim_conn_hooks hooks = {.output = on_output, .closed = on_closed, .arg = p};
  int64_t back = n->world->agenda.now_us + random_delay(p, SIM_DOWN);

  sim_schedule_at(&n->world->agenda, &p->connecting, back);
  p->flows[SIM_DOWN].last_us = back;
  if (route_of(p)->proxies == 0) {
    sim_conn *c = sim_server_accept(s, &hooks);

    if (c != NULL && !p->refused) {
      p->conn = c;
      sim_conn_chroot(c, n->world->processes[p->process].chroot);
    }
    p->refused = c == NULL;
  }
  p->answered = true;
}

static void on_connecting(void *arg)
{
  sim_pipe *p = arg;
  sim_route *r = route_of(p);

  if (r->cut[SIM_UP] > 0 || r->cut[SIM_DOWN] > 0)
    return;
  if (!p->answered) {
    reach_server(p);
    return;
  }
  p->state = p->refused ? SIM_PIPE_REFUSED : SIM_PIPE_OPEN;
  schedule_delivery(p, SIM_DOWN);
  notify_process(p);
}

/* ---- the process's side ------------------------------------------------- */

sim_pipe *sim_pipe_open(sim_network *n, unsigned process, unsigned server,
                        void (*on_ready)(void *arg), void *arg)
{
  sim_pipe *p = sim_allocate(sizeof *p);

  sim_pipes_free(n);
  p->network = n;
  p->process = process;
  p->server = server;
  p->on_ready = on_ready;
  p->arg = arg;
  p->arrived.mem = &lk__mem_libc;
  p->connecting = (sim_job){.run = on_connecting, .arg = p};
  for (int direction = SIM_UP; direction <= SIM_DOWN; direction++) {
    sim_flow *f = &p->flows[direction];

    f->bytes.mem = &lk__mem_libc;
    f->break_after = SIM_NEVER_BREAK;
    f->job = (sim_job){.run = direction == SIM_UP ? on_up : on_down, .arg = p};
    lk__ring_init(&f->parts, &lk__mem_libc, sizeof(segment));
  }
  lk__list_init(&p->link);
  lk__list_add(&n->pipes, &p->link);
  sim_schedule_in(&n->world->agenda, &p->connecting, random_delay(p, SIM_UP));
  return p;
}

sim_pipe_state sim_pipe_get_state(const sim_pipe *p)
{
  return p->state;
}

unsigned sim_pipe_server(const sim_pipe *p)
{
  return p->server;
}

size_t sim_pipe_send(sim_pipe *p, const void *bytes, size_t len)
{
  sim_network *n = p->network;
  sim_flow *f = &p->flows[SIM_UP];
  size_t taken = len;

  if (f->lossy) /* all bytes are lost */
    return len;
  if (lk__buf_len(&f->bytes) >= IN_FLIGHT_MAX)
    taken = 0;
  else if (n->has_faults && sim_chance(&n->rng, PARTIAL_WRITES_PERMILLE))
    taken = 1 + sim_roll(&n->rng, (uint32_t)len);
  if (taken > len)
    taken = len;
  p->waits_to_send = taken < len;
  if (taken > 0)
    send_bytes(p, SIM_UP, bytes, taken);
  return taken;
}

size_t sim_pipe_arrived(const sim_pipe *p)
{
  return lk__buf_len(&p->arrived);
}

void sim_pipe_receive(sim_pipe *p, void *out, size_t len)
{
  memcpy(out, lk__buf_bytes(&p->arrived), len);
  lk__buf_consume(&p->arrived, len);
}

/* The process closes. If it had unread bytes, what it sent last may be lost. */
void sim_pipe_close(sim_pipe *p, sim_close_mode mode)
{
  if (p == NULL)
    return;
  p->on_ready = NULL;
  p->state = SIM_PIPE_CLOSED;
  sim_unschedule(&p->network->world->agenda, &p->connecting);
  sim_pipe_empty(p, SIM_DOWN);
  if (mode == SIM_CLOSE_SILENTLY)
    sim_pipe_empty(p, SIM_UP);
  if (p->conn != NULL && mode == SIM_CLOSE && !p->flows[SIM_UP].lossy) {
    if (p->network->has_faults && sim_one_in(&p->network->rng, 8))
      sim_pipe_empty(p, SIM_UP);
    send_end_of_stream(p, SIM_UP);
  }
  p->flows[SIM_UP].lossy = true;
  sim_pipe_free_if_unused(p);
}
