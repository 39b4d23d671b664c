/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <latchkey/client.h>

#include "cli/doctor/blocking_connection.h"
#include "cli/system_clocks.h"

/* A reply ends when no more bytes come for this time. */
enum { MAX_PAUSE_MS = 1000 };

/* Length of a four-letter word. */
enum { WORD_LEN = 4 };

bool cli_blocking_connection_init(cli_blocking_connection *c,
                                  const lk_transport_type *type)
{
  c->type = type;
  c->flow = LK_FLOW_FAILED;
  c->transport = calloc(1, type->size);
  if (c->transport != NULL)
    c->transport->fd = -1;
  return c->transport != NULL;
}

/* Returns the timeout for poll(). -1 (no timeout) stands for more than 24 days.
 */
static int poll_timeout_ms(int64_t until)
{
  int64_t left_ms = until - cli_boottime_ms();

  if (left_ms <= 0)
    return 0;
  return left_ms > INT32_MAX ? -1 : (int)left_ms;
}

/* Waits until the descriptor is readable or writable, as the last call of the
   transport required (c->flow). Returns false if it is not so in time. */
static bool wait_for_flow(const cli_blocking_connection *c, int64_t until)
{
  struct pollfd ready = {.fd = c->transport->fd,
                         .events = c->flow == LK_FLOW_READ ? POLLIN : POLLOUT};
  int ready_count;

  do {
    int timeout_ms = poll_timeout_ms(until);

    ready_count = timeout_ms == 0 ? 0 : poll(&ready, 1, timeout_ms);
  } while (ready_count < 0 && errno == EINTR);
  return ready_count > 0;
}

static bool is_waiting(const cli_blocking_connection *c)
{
  return c->flow == LK_FLOW_READ || c->flow == LK_FLOW_WRITE;
}

cli_connection_result cli_blocking_connect_continue(cli_blocking_connection *c,
                                                    int64_t until)
{
  while (is_waiting(c)) {
    if (!wait_for_flow(c, until))
      return CLI_CONNECTION_LATE;
    c->flow = c->type->handshake(c->transport);
  }
  return c->flow == LK_FLOW_DONE ? CLI_CONNECTION_READY : CLI_CONNECTION_FAILED;
}

cli_connection_result cli_blocking_connect(cli_blocking_connection *c,
                                           const lk_endpoint *to, int64_t until)
{
  c->flow = c->type->open(c->transport, to);
  return cli_blocking_connect_continue(c, until);
}

bool cli_blocking_connection_has_tcp(const cli_blocking_connection *c)
{
  struct sockaddr_storage peer;
  socklen_t len = sizeof peer;

  return c->transport->fd >= 0 &&
         getpeername(c->transport->fd, (struct sockaddr *)&peer, &len) == 0;
}

bool cli_blocking_connection_send_word(cli_blocking_connection *c,
                                       const char *word, int64_t until)
{
  size_t sent = 0;

  while (sent < WORD_LEN) {
    size_t done;

    c->flow = c->type->send(c->transport, word + sent, WORD_LEN - sent, &done);
    sent += done;
    if (c->flow == LK_FLOW_FAILED)
      return false;
    if (sent < WORD_LEN && !wait_for_flow(c, until))
      return false;
  }
  return true;
}

/* Returns -1 if nothing came in time; 0 if the connection ended or failed
   before the first byte. */
ssize_t cli_blocking_connection_receive(cli_blocking_connection *c,
                                        int64_t until, char *out, size_t size)
{
  size_t len = 0;

  while (len < size) {
    size_t got;

    c->flow = c->type->recv(c->transport, out + len, size - len, &got);
    len += got;
    if (c->flow == LK_FLOW_END || c->flow == LK_FLOW_FAILED)
      break;
    int64_t end_of_pause = cli_boottime_ms() + MAX_PAUSE_MS;

    if (got > 0 && end_of_pause < until)
      until = end_of_pause;
    if (c->flow != LK_FLOW_DONE && !wait_for_flow(c, until))
      return len == 0 ? -1 : (ssize_t)len;
  }
  return (ssize_t)len;
}

void cli_blocking_connection_close(cli_blocking_connection *c)
{
  c->type->close(c->transport);
}

void cli_blocking_connection_free(cli_blocking_connection *c)
{
  if (c->transport == NULL)
    return;
  c->type->close(c->transport);
  if (c->type->end != NULL)
    c->type->end(c->transport);
  free(c->transport);
}
