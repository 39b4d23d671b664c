/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/connection_transfer.h"

#include "net/connection_attempt.h"

/* Moving bytes between the client and its transport. These functions set
   `send_waits_for` and `recv_waits_for`; lk__connection_update() then has the
   loop watch the descriptor for these events. lk__connection_send() is only
   called by lk__connection_update(); lk__connection_receive() requests an
   update if it has changed anything. */

/* After so many reads from one connection, the loop serves the others. */
enum { MAX_READS_IN_A_ROW = 16 };

int lk__connection_receive_events(const lk_connection *n)
{
  return n->recv_waits_for != 0 ? n->recv_waits_for : LK_LOOP_READ;
}

/* Receive once, into the client's memory if it offers any, else into the common
   buffer. Returns whether there may be more to receive now. */
static bool connection_receive_once(lk_connection *n)
{
  const lk_watched_transport *s = n->transport;
  uint64_t attempt = n->attempt;
  size_t got, size;
  void *room = lk_client_receive_buffer(n->client, attempt,
                                        LK_RECEIVE_BUFFER_SIZE, &size);

  if (room == NULL) {
    room = n->shared->receive_buffer;
    size = LK_RECEIVE_BUFFER_SIZE;
  }
  switch (s->type->recv(s->object, room, size, &got)) {
  case LK_FLOW_READ: return false;
  case LK_FLOW_WRITE:
    n->recv_waits_for = LK_LOOP_WRITE; /* TLS has to send first */
    lk__connection_request_update(n);
    return false;
  case LK_FLOW_END: lk__connection_closed_by_server(n); return false;
  case LK_FLOW_FAILED:
    lk__connection_fail_transport(n, n->transport);
    return false;
  case LK_FLOW_DONE: break;
  }
  lk__connection_request_update(n);
  lk_client_received(n->client, attempt, room, got);
  bool filled_room = got == size; /* so the descriptor may have more */

  return lk__connection_attempt_goes_on(n, attempt) &&
         (filled_room || lk__watched_transport_has_more(s));
}

void lk__connection_receive(lk_connection *n)
{
  lk_loop *loop = n->shared->loop;

  if (n->recv_waits_for != 0)
    lk__connection_request_update(n); /* to watch for bytes again */
  n->recv_waits_for = 0;
  for (int i = 0; i < MAX_READS_IN_A_ROW; i++)
    if (!connection_receive_once(n))
      return;
  /* Bytes that the transport has already read do not make the descriptor
     readable, so feed_io() makes the loop call on_connection_events(). */
  if (lk__watched_transport_has_more(n->transport))
    loop->type->feed_io(loop, &n->transport->io, LK_LOOP_READ);
}

void lk__connection_send(lk_connection *n)
{
  const lk_watched_transport *s = n->transport;
  uint64_t attempt = n->attempt;
  lk_bytes bytes = lk_client_pending(n->client);
  size_t done;

  if (bytes.len == 0)
    return;

  lk_flow flow = s->type->send(s->object, bytes.at, bytes.len, &done);

  if (flow == LK_FLOW_READ)
    n->send_waits_for = LK_LOOP_READ;
  if (flow == LK_FLOW_WRITE)
    n->send_waits_for = LK_LOOP_WRITE;
  if (done > 0)
    lk_client_sent(n->client, attempt, done);
  if (flow != LK_FLOW_FAILED)
    return;
  /* The server may have replied before it closed the connection: the client
     gets these replies first. */
  if (lk__connection_attempt_goes_on(n, attempt))
    lk__connection_receive(n);
  if (lk__connection_attempt_goes_on(n, attempt))
    lk__connection_fail_transport(n, n->transport);
}
