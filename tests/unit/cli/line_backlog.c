/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/output/line_backlog.h"
#include "poll/loop.h"
#include "support/suite.h"

enum { MAX_SECONDS = 20 };

/* How long cli_nonblocking_fd_close() waits for the thread, in ms. */
enum { NO_WAIT = 0 };

static char block[4096];

/* Writes until nothing more is accepted. Returns the number of bytes. */
static size_t write_until_full(const cli_nonblocking_fd *s)
{
  size_t len = 0;
  ssize_t n;

  alarm(MAX_SECONDS); /* ends this test if it hangs */
  while ((n = cli_nonblocking_fd_write(s, block, sizeof block)) > 0)
    len += (size_t)n;
  ck_assert_int_eq(n, -1);
  ck_assert_int_eq(errno, EAGAIN);
  return len;
}

/* Reads `len` bytes, behind which the pipe must end. */
static void expect_bytes_and_end(int fd, size_t len)
{
  char bytes[4096];
  ssize_t n;

  while ((n = read(fd, bytes, sizeof bytes)) > 0)
    len -= (size_t)n;
  ck_assert_int_eq(n, 0);
  ck_assert_uint_eq(len, 0);
}

/* Fills the pipe or socket, whose second end is for writing. That end keeps its
 * flags, and no byte is lost. */
static void fill_and_read(const int *ends)
{
  cli_nonblocking_fd s;

  ck_assert_int_eq(cli_nonblocking_fd_open(&s, ends[1]), 0);
  size_t len = write_until_full(&s);

  ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
  cli_nonblocking_fd_close(&s, NO_WAIT);
  close(ends[1]);
  expect_bytes_and_end(ends[0], len);
  close(ends[0]);
}

START_TEST(full_pipe_does_not_block_and_keeps_its_flags)
{
  int ends[2];

  ck_assert_int_eq(pipe(ends), 0);
  fill_and_read(ends);
}
END_TEST

START_TEST(full_socket_does_not_block)
{
  int ends[2];

  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  fill_and_read(ends);
}
END_TEST

START_TEST(regular_file_keeps_its_offset)
{
  char text[16] = "";
  cli_nonblocking_fd s;
  FILE *f = tmpfile();
  int fd = fileno(f);

  ck_assert_int_eq(write(fd, "before ", 7), 7);
  ck_assert_int_eq(cli_nonblocking_fd_open(&s, fd), 0);
  ck_assert_int_eq(cli_nonblocking_fd_write(&s, "behind", 6), 6);
  cli_nonblocking_fd_close(&s, NO_WAIT);
  ck_assert_int_eq(pread(fd, text, sizeof text - 1, 0), 13);
  ck_assert_str_eq(text, "before behind");
  fclose(f);
}
END_TEST

START_TEST(descriptor_that_is_not_open_is_refused)
{
  cli_nonblocking_fd s;

  ck_assert_int_eq(cli_nonblocking_fd_open(&s, 900), EBADF);
  cli_nonblocking_fd_close(&s, NO_WAIT);
}
END_TEST

/* Runs `act` as another user, with a pipe of root, if this process is root's.
 * The other user may not open the pipe again, so a thread has to copy. */
static void run_as_another_user(void (*act)(const int *ends))
{
  int status;
  pid_t pid;

  if (getuid() != 0)
    return;
  pid = fork();
  if (pid == 0) {
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(setuid(65534), 0); /* nobody */
    act(ends);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}

static void fill_beyond_the_thread(const int *ends)
{
  cli_nonblocking_fd s;

  ck_assert_int_eq(cli_nonblocking_fd_open(&s, ends[1]), 0);
  ck_assert_int_ge(s.thread_end, 0);
  ck_assert_int_eq(cli_nonblocking_fd_write(&s, "line\n", 5), 5);
  size_t len = 5;
  struct pollfd room = {s.fd, POLLOUT, 0};

  /* When the thread has taken lines, there is room for more. */
  for (int i = 0; i < 20; i++) {
    len += write_until_full(&s);
    poll(&room, 1, 50);
  }
  cli_nonblocking_fd_close(&s, NO_WAIT); /* the thread cannot write */
  close(ends[1]);
  expect_bytes_and_end(ends[0], len);
}

START_TEST(thread_copies_if_the_descriptor_cannot_be_opened_again)
{
  run_as_another_user(fill_beyond_the_thread);
}
END_TEST

/* The number of open descriptors. */
static int count_open(void)
{
  int count = 0;

  for (int fd = 0; fd < 100; fd++)
    if (fcntl(fd, F_GETFD) >= 0)
      count++;
  return count;
}

/* Closes the descriptor. That must take much less time than the close may wait
 * for the thread. */
static void close_and_expect_no_wait(cli_nonblocking_fd *s)
{
  struct timespec before, after;

  clock_gettime(CLOCK_MONOTONIC, &before);
  cli_nonblocking_fd_close(s, 1000 * MAX_SECONDS);
  clock_gettime(CLOCK_MONOTONIC, &after);
  ck_assert_int_lt(after.tv_sec - before.tv_sec, MAX_SECONDS / 2);
}

static void copy_a_line(const int *ends)
{
  int before = count_open();
  cli_nonblocking_fd s;

  ck_assert_int_eq(cli_nonblocking_fd_open(&s, ends[1]), 0);
  ck_assert_int_eq(cli_nonblocking_fd_write(&s, "line\n", 5), 5);
  close_and_expect_no_wait(&s);
  ck_assert_int_eq(count_open(), before);
  close(ends[1]);
  expect_bytes_and_end(ends[0], 5);
}

START_TEST(end_of_the_thread_is_waited_for_and_no_descriptor_is_left)
{
  run_as_another_user(copy_a_line);
}
END_TEST

static void copy_to_nobody(const int *ends)
{
  cli_nonblocking_fd s;

  signal(SIGPIPE, SIG_IGN);
  close(ends[0]);
  ck_assert_int_eq(cli_nonblocking_fd_open(&s, ends[1]), 0);
  ck_assert_int_eq(cli_nonblocking_fd_write(&s, "line\n", 5), 5);
  close_and_expect_no_wait(&s);
}

START_TEST(thread_ends_when_the_reader_is_gone)
{
  run_as_another_user(copy_to_nobody);
}
END_TEST

/* There are descriptors for two pipes, but not for the copy that the thread
 * writes to. */
static void open_with_four_descriptors(const int *ends)
{
  struct rlimit limit;
  int before = count_open();
  cli_nonblocking_fd s;

  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = (rlim_t)ends[1] + 1 + 4;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ck_assert_int_eq(cli_nonblocking_fd_open(&s, ends[1]), 0);
  ck_assert_int_eq(s.fd, ends[1]);
  ck_assert_int_lt(s.thread_end, 0);
  ck_assert_int_eq(cli_nonblocking_fd_write(&s, "line\n", 5), 5);
  cli_nonblocking_fd_close(&s, NO_WAIT);
  ck_assert_int_eq(count_open(), before);
  close(ends[1]);
  expect_bytes_and_end(ends[0], 5);
}

START_TEST(without_a_descriptor_for_the_thread_writes_are_direct)
{
  run_as_another_user(open_with_four_descriptors);
}
END_TEST

/* ---- lines --------------------------------------------------------------- */

static void write_dropped(cli_text *out, size_t lines)
{
  cli_text_printf(out, "dropped %zu\n", lines);
}

START_TEST(line_without_memory_is_counted_and_later_ones_are_written)
{
  lk_loop *loop;
  char text[64] = "";
  cli_line_backlog o;
  int ends[2];

  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(lk__poll_loop_new(&loop, &lk__mem_libc), 0);
  cli_line_backlog_init(&o, ends[1], loop, write_dropped);
  o.queue.failed = true; /* as after an allocation that failed */
  cli_line_backlog_put(&o, lk_text("lost\n"));
  cli_line_backlog_put(&o, lk_text("line\n"));
  cli_line_backlog_close(&o);
  ck_assert_int_eq(read(ends[0], text, sizeof text - 1), 15);
  ck_assert_str_eq(text, "dropped 1\nline\n");
  close(ends[0]);
  close(ends[1]);
  lk__poll_loop_free(loop);
}
END_TEST

SUITE("line_backlog", full_pipe_does_not_block_and_keeps_its_flags,
      full_socket_does_not_block, regular_file_keeps_its_offset,
      descriptor_that_is_not_open_is_refused,
      thread_copies_if_the_descriptor_cannot_be_opened_again,
      end_of_the_thread_is_waited_for_and_no_descriptor_is_left,
      thread_ends_when_the_reader_is_gone,
      without_a_descriptor_for_the_thread_writes_are_direct,
      line_without_memory_is_counted_and_later_ones_are_written)
