/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/loopback.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jute/reader.h"
#include "unit/fake/sockets.h"

/* ---- connections, under the mutex ---------------------------------------- */

static void close_connection(loopback *b, size_t i)
{
  model_link *l = b->connections[i].link;

  model_hang_up(l);
  lk__buf_free(&b->connections[i].in);
  shutdown(b->connections[i].fd, SHUT_RDWR); /* a child may have copies */
  close(b->connections[i].fd);
  b->connections[i] = b->connections[--b->count];
}

static void accept_connection(loopback *b)
{
  int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

  if (fd < 0)
    return;
  ck_assert_uint_lt(b->count, LOOPBACK_CONNECTIONS);
  b->connections[b->count].fd = fd;
  b->connections[b->count].in = (lk_buf){.mem = &lk__mem_libc};
  b->connections[b->count].link = model_accept(&b->server);
  b->connections[b->count].link->frozen = b->frozen;
  b->count++;
}

enum { FRAME_HEADER = 4 }; /* the length of the frame behind it */

/* The first four bytes of a connection are letters: it is no client's. */
static bool serve_four_letters(loopback *b, lk_buf *in, model_link *l)
{
  const char *reply = b->four_letter_reply;
  const unsigned char *bytes = lk__buf_bytes(in);

  if (reply == NULL || l->greeted || lk__buf_len(in) < FRAME_HEADER ||
      bytes == NULL || *bytes < 'a')
    return false;
  ck_assert(lk__buf_append(&l->out, reply, strlen(reply)));
  lk__buf_consume(in, lk__buf_len(in));
  l->closed_by_server = true;
  return true;
}

static void serve_whole_frames(loopback *b, lk_buf *in, model_link *l)
{
  while (lk__buf_len(in) >= FRAME_HEADER && !l->frozen) {
    const unsigned char *bytes = lk__buf_bytes(in);
    lk_reader r;

    if (bytes == NULL)
      return;
    lk__reader_init(&r, bytes, lk__buf_len(in));
    size_t size = FRAME_HEADER + (size_t)lk__reader_int(&r);

    if (lk__buf_len(in) < size)
      return;
    if (b->quiet)
      l->log[0] = '\0';
    model_take(l, lk_bytes_of(bytes, size));
    lk__buf_consume(in, size);
  }
}

static bool must_try_again(ssize_t received_or_sent)
{
  return received_or_sent < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Returns false if the client has closed. */
static bool receive(loopback *b, size_t i)
{
  lk_buf *in = &b->connections[i].in;
  ssize_t received;

  ck_assert(lk__buf_reserve(in, 65536));
  received = recv(b->connections[i].fd, lk__buf_room(in), 65536, 0);
  if (received <= 0)
    return must_try_again(received);
  in->end += (size_t)received;
  return true;
}

/* Returns false if the server or the client has closed. Frames that came while
   the server was frozen are served here. */
static bool serve_and_send(loopback *b, size_t i)
{
  model_link *l = b->connections[i].link;

  if (!serve_four_letters(b, &b->connections[i].in, l))
    serve_whole_frames(b, &b->connections[i].in, l);
  while (lk__buf_len(&l->out) > 0) {
    ssize_t sent = send(b->connections[i].fd, lk__buf_bytes(&l->out),
                        lk__buf_len(&l->out), MSG_NOSIGNAL);

    if (sent < 0)
      return must_try_again(sent);
    lk__buf_consume(&l->out, (size_t)sent);
  }
  return l->up && !l->closed_by_server;
}

/* ---- the thread ---------------------------------------------------------- */

/* Positions in the array for poll(). */
enum { LISTENER, WAKE, FIRST_CONNECTION };

/* Returns the number of descriptors. */
static nfds_t list_descriptors(loopback *b, struct pollfd *fds)
{
  struct pollfd *connections = &fds[FIRST_CONNECTION];

  fds[LISTENER] = (struct pollfd){.fd = b->listener, .events = POLLIN};
  fds[WAKE] = (struct pollfd){.fd = b->wake_fd, .events = POLLIN};
  for (size_t i = 0; i < b->count; i++) {
    connections[i] =
        (struct pollfd){.fd = b->connections[i].fd, .events = POLLIN};
    if (lk__buf_len(&b->connections[i].link->out) > 0)
      connections[i].events |= POLLOUT;
  }
  return FIRST_CONNECTION + b->count;
}

/* The loops run backwards, since close_connection() moves the last one. */
static void serve_descriptors(loopback *b, const struct pollfd *fds)
{
  eventfd_t discarded;

  if (fds[WAKE].revents != 0)
    (void)eventfd_read(b->wake_fd, &discarded);
  for (size_t i = b->count; i-- > 0;) {
    if (fds[FIRST_CONNECTION + i].revents != 0 && !receive(b, i))
      close_connection(b, i);
  }
  for (size_t i = b->count; i-- > 0;) {
    if (!serve_and_send(b, i))
      close_connection(b, i);
  }
  if (fds[LISTENER].revents != 0)
    accept_connection(b);
}

/* Only this thread changes the number of connections. */
static void *run_server(void *arg)
{
  struct pollfd fds[FIRST_CONNECTION + LOOPBACK_CONNECTIONS];
  loopback *b = arg;

  pthread_mutex_lock(&b->mutex);
  while (!b->stopping) {
    nfds_t count = list_descriptors(b, fds);

    pthread_mutex_unlock(&b->mutex);
    (void)poll(fds, count, -1);
    pthread_mutex_lock(&b->mutex);
    serve_descriptors(b, fds);
  }
  while (b->count > 0)
    close_connection(b, 0);
  pthread_mutex_unlock(&b->mutex);
  return NULL;
}

/* ---- for tests ----------------------------------------------------------- */

void loopback_start(loopback *b)
{
  uint16_t port;

  memset(b, 0, sizeof *b);
  model_init(&b->server);
  pthread_mutex_init(&b->mutex, NULL);
  b->listener = sockets_listen("127.0.0.1", &port);
  ck_assert_int_eq(fcntl(b->listener, F_SETFL, O_NONBLOCK), 0);
  b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ck_assert_int_ge(b->wake_fd, 0);
  snprintf(b->hosts, sizeof b->hosts, "127.0.0.1:%u", (unsigned)port);
  ck_assert_int_eq(pthread_create(&b->thread, NULL, run_server, b), 0);
}

void loopback_stop(loopback *b)
{
  loopback_lock(b);
  b->stopping = true;
  loopback_unlock(b);
  ck_assert_int_eq(pthread_join(b->thread, NULL), 0);
  close(b->listener);
  close(b->wake_fd);
  model_done(&b->server);
  pthread_mutex_destroy(&b->mutex);
}

void loopback_lock(loopback *b)
{
  pthread_mutex_lock(&b->mutex);
}

void loopback_unlock(loopback *b)
{
  pthread_mutex_unlock(&b->mutex);
  ck_assert_int_eq(eventfd_write(b->wake_fd, 1), 0);
}

void loopback_drop(loopback *b)
{
  loopback_lock(b);
  for (size_t i = 0; i < b->count; i++)
    b->connections[i].link->closed_by_server = true;
  loopback_unlock(b);
}

void loopback_expire(loopback *b)
{
  loopback_lock(b);
  for (model_link *l = b->server.links; l != NULL; l = l->next)
    model_expire(&b->server, l->last_session);
  loopback_unlock(b);
  loopback_drop(b);
}

static void set_frozen(loopback *b, bool frozen)
{
  loopback_lock(b);
  b->frozen = frozen;
  for (size_t i = 0; i < b->count; i++)
    b->connections[i].link->frozen = frozen;
  loopback_unlock(b);
}

void loopback_freeze(loopback *b)
{
  set_frozen(b, true);
}

void loopback_thaw(loopback *b)
{
  set_frozen(b, false);
}

unsigned loopback_requests(loopback *b, const char *name)
{
  unsigned count = 0;

  loopback_lock(b);
  for (const model_link *l = b->server.links; l != NULL; l = l->next)
    count += model_count(l, name);
  loopback_unlock(b);
  return count;
}
