/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/nonblocking_fd.h"

/* The descriptors of a copying thread. The thread owns them and closes them at
   its end. */
typedef struct copy {
  int from; /* reading end of the private pipe */
  int to;   /* a duplicate of the shared descriptor */
  int end;  /* writing end of a second pipe: nothing is written, but its reader
               sees end-of-file when the thread has ended */
} copy;

/* Writes all bytes, also if another process has made the descriptor
   non-blocking. Returns false on error. */
static bool write_all_waiting(int fd, const char *at, size_t len)
{
  while (len > 0) {
    ssize_t n = write(fd, at, len);
    struct pollfd ready = {fd, POLLOUT, 0};

    if (n < 0 && errno == EAGAIN)
      poll(&ready, 1, -1);
    else if (n < 0 && errno != EINTR)
      return false;
    if (n > 0) {
      at += n;
      len -= (size_t)n;
    }
  }
  return true;
}

/* Copies until end-of-file or an error. */
static void *run_copy_thread(void *arg)
{
  copy *c = arg;
  char bytes[4096];
  ssize_t n;

  while ((n = read(c->from, bytes, sizeof bytes)) != 0) {
    if (n < 0 && errno != EINTR)
      break;
    if (n > 0 && !write_all_waiting(c->to, bytes, (size_t)n))
      break;
  }
  close(c->from);
  close(c->to);
  close(c->end);
  free(c);
  return NULL;
}

static int start_copy_thread(copy *c)
{
  pthread_attr_t attr;
  pthread_t thread;

  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  int error = pthread_create(&thread, &attr, run_copy_thread, c);

  pthread_attr_destroy(&attr);
  return error;
}

/* Starts the thread. It gets the reading end of the pipe `data` and the writing
   end of the pipe `end`. On error both are closed. Returns 0 or an errno. */
static int start_copying(int fd, const int *data, const int *end)
{
  copy *c = malloc(sizeof *c);
  int to = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int error = c == NULL ? ENOMEM : to < 0 ? errno : 0;

  if (error == 0) {
    *c = (copy){.from = data[0], .to = to, .end = end[1]};
    error = start_copy_thread(c);
  }
  if (error == 0)
    return 0;
  close(data[0]);
  close(end[1]);
  if (to >= 0)
    close(to);
  free(c);
  return error;
}

/* Opens a private pipe; a thread copies from it to `fd`. Returns 0 or an errno.
 */
static int open_copied_pipe(cli_nonblocking_fd *s, int fd)
{
  int data[2];
  int end[2];

  if (pipe2(data, O_CLOEXEC) != 0)
    return errno;
  if (pipe2(end, O_CLOEXEC) != 0) {
    int error = errno;

    close(data[0]);
    close(data[1]);
    return error;
  }
  int error = start_copying(fd, data, end);

  if (error != 0) {
    close(data[1]);
    close(end[0]);
    return error;
  }
  fcntl(data[1], F_SETFL, O_NONBLOCK);
  *s = (cli_nonblocking_fd){.fd = data[1], .own = true, .copied = end[0]};
  return 0;
}

int cli_nonblocking_fd_open(cli_nonblocking_fd *s, int fd)
{
  struct stat st;
  char name[64];

  *s = (cli_nonblocking_fd){.fd = fd, .copied = -1};
  if (fstat(fd, &st) != 0) {
    s->fd = -1;
    return errno;
  }
  if (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode))
    return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  s->fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  s->own = s->fd >= 0;
  if (!s->own && open_copied_pipe(s, fd) != 0)
    s->fd = fd; /* no descriptor is left; see cli_nonblocking_fd_write() */
  return 0;
}

/* A descriptor that is not a socket may block. But a pipe that poll() reports
   as writable takes PIPE_BUF bytes, unless another process fills it first. */
ssize_t cli_nonblocking_fd_write(const cli_nonblocking_fd *s, const char *at,
                                 size_t len)
{
  size_t part = len < PIPE_BUF ? len : PIPE_BUF;
  ssize_t n = send(s->fd, at, part, MSG_DONTWAIT | MSG_NOSIGNAL);

  return n < 0 && errno == ENOTSOCK ? write(s->fd, at, part) : n;
}

void cli_nonblocking_fd_close(cli_nonblocking_fd *s, int most_ms)
{
  struct pollfd end = {s->copied, POLLIN, 0};

  if (s->fd >= 0 && s->own)
    close(s->fd);
  s->fd = -1;
  if (s->copied < 0)
    return;
  poll(&end, 1, most_ms);
  close(s->copied);
  s->copied = -1;
}
