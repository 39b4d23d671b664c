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

/* The indices of the descriptors of pipe2(). */
enum { READ_END, WRITE_END };

/* The descriptors of a copying thread. The thread owns them and closes them at
   its end. */
typedef struct copy {
  int from;  /* reading end of the private pipe */
  int to;    /* a duplicate of the shared descriptor */
  int alive; /* writing end of a second pipe: nothing is written, but its reader
                sees end-of-file when the thread has ended */
} copy;

bool cli_write_all_waiting(int fd, const char *at, size_t len)
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
    if (n > 0 && !cli_write_all_waiting(c->to, bytes, (size_t)n))
      break;
  }
  close(c->from);
  close(c->to);
  close(c->alive);
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

/* Starts a thread that copies from `from` to a duplicate of `fd` and owns
   `alive`. On error `from` and `alive` are closed. Returns 0 or an errno. */
static int start_copying(int fd, int from, int alive)
{
  copy *c = malloc(sizeof *c);
  int to = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int error = 0;

  if (to < 0)
    error = errno;
  else if (c == NULL)
    error = ENOMEM;
  if (error == 0) {
    *c = (copy){.from = from, .to = to, .alive = alive};
    error = start_copy_thread(c);
  }
  if (error == 0)
    return 0;
  close(from);
  close(alive);
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
  int alive[2];

  if (pipe2(data, O_CLOEXEC) != 0)
    return errno;
  if (pipe2(alive, O_CLOEXEC) != 0) {
    int error = errno;

    close(data[READ_END]);
    close(data[WRITE_END]);
    return error;
  }
  int error = start_copying(fd, data[READ_END], alive[WRITE_END]);

  if (error != 0) {
    close(data[WRITE_END]);
    close(alive[READ_END]);
    return error;
  }
  fcntl(data[WRITE_END], F_SETFL, O_NONBLOCK);
  *s = (cli_nonblocking_fd){.fd = data[WRITE_END],
                            .opened_here = true,
                            .thread_end = alive[READ_END]};
  return 0;
}

int cli_nonblocking_fd_open(cli_nonblocking_fd *s, int fd)
{
  struct stat st;
  char name[64];

  *s = (cli_nonblocking_fd){.fd = fd, .thread_end = -1};
  if (fstat(fd, &st) != 0) {
    s->fd = -1;
    return errno;
  }
  /* Opened again, /dev/null in place of a closed descriptor could be written
     to. */
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY) {
    s->fd = -1;
    return EBADF;
  }
  /* A regular file does not block; send() on a socket takes MSG_DONTWAIT. */
  if (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode))
    return 0;
  /* Opened again: O_NONBLOCK on `fd` would hold for other processes, too. */
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  s->fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  s->opened_here = s->fd >= 0;
  if (!s->opened_here && open_copied_pipe(s, fd) != 0)
    s->fd = fd; /* no descriptor is left; see cli_nonblocking_fd_write() */
  return 0;
}

/* `fd` may be the shared descriptor, which may block. But a pipe that poll()
   reports as writable takes PIPE_BUF bytes, unless another process fills it
   first. */
ssize_t cli_nonblocking_fd_write(const cli_nonblocking_fd *s, const char *at,
                                 size_t len)
{
  size_t chunk = len < PIPE_BUF ? len : PIPE_BUF;
  ssize_t n = send(s->fd, at, chunk, MSG_DONTWAIT | MSG_NOSIGNAL);

  return n < 0 && errno == ENOTSOCK ? write(s->fd, at, chunk) : n;
}

void cli_nonblocking_fd_close(cli_nonblocking_fd *s, int max_wait_ms)
{
  struct pollfd thread_end = {s->thread_end, POLLIN, 0};

  if (s->fd >= 0 && s->opened_here)
    close(s->fd); /* the thread sees end-of-file and ends */
  s->fd = -1;
  if (s->thread_end < 0)
    return;
  poll(&thread_end, 1, max_wait_ms);
  close(s->thread_end);
  s->thread_end = -1;
}
