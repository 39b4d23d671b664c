/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sink.h"
#include "suite.h"

enum { MOST_SECONDS = 20 };

static char block[4096];

/* Write until nothing more is taken; gives how much was. */
static size_t fill(const cli_sink *s)
{
  size_t len = 0;
  ssize_t n;

  alarm(MOST_SECONDS); /* a test that hangs is named */
  while ((n = cli_sink_write(s, block, sizeof block)) > 0)
    len += (size_t)n;
  ck_assert_int_eq(n, -1);
  ck_assert_int_eq(errno, EAGAIN);
  return len;
}

static void expect_end(int fd, size_t len)
{
  char bytes[4096];
  ssize_t n;

  while ((n = read(fd, bytes, sizeof bytes)) > 0)
    len -= (size_t)n;
  ck_assert_int_eq(n, 0);
  ck_assert_uint_eq(len, 0);
}

/* The writing end fills up, keeps its flags, and loses nothing. */
static void fill_and_read(const int *ends)
{
  cli_sink s;

  ck_assert_int_eq(cli_sink_open(&s, ends[1]), 0);
  size_t len = fill(&s);

  ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
  cli_sink_close(&s, 0);
  close(ends[1]);
  expect_end(ends[0], len);
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
  cli_sink s;
  FILE *f = tmpfile();
  int fd = fileno(f);

  ck_assert_int_eq(write(fd, "before ", 7), 7);
  ck_assert_int_eq(cli_sink_open(&s, fd), 0);
  ck_assert_int_eq(cli_sink_write(&s, "behind", 6), 6);
  cli_sink_close(&s, 0);
  ck_assert_int_eq(pread(fd, text, sizeof text - 1, 0), 13);
  ck_assert_str_eq(text, "before behind");
  fclose(f);
}
END_TEST

START_TEST(descriptor_that_is_not_open_is_refused)
{
  cli_sink s;

  ck_assert_int_eq(cli_sink_open(&s, 900), EBADF);
  cli_sink_close(&s, 0);
}
END_TEST

/* A pipe of root may not be opened by another user, so a thread copies. */
static void be_another_user(void)
{
  cli_sink s;
  int ends[2];

  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(setuid(65534), 0);
  ck_assert_int_eq(cli_sink_open(&s, ends[1]), 0);
  ck_assert_int_ge(s.copied, 0);
  ck_assert_int_eq(cli_sink_write(&s, "line\n", 5), 5);
  size_t len = 5;
  struct pollfd room = {s.fd, POLLOUT, 0};

  /* What the thread holds makes room once more. */
  for (int i = 0; i < 20; i++) {
    len += fill(&s);
    poll(&room, 1, 50);
  }
  cli_sink_close(&s, 0); /* it is stuck, and is left behind */
  close(ends[1]);
  expect_end(ends[0], len);
}

START_TEST(where_it_cannot_be_opened_again_a_thread_copies)
{
  int status;
  pid_t pid;

  if (getuid() != 0)
    return;
  pid = fork();
  if (pid == 0) {
    be_another_user();
    _exit(0);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}
END_TEST

SUITE("sink", full_pipe_does_not_block_and_keeps_its_flags,
      full_socket_does_not_block, regular_file_keeps_its_offset,
      descriptor_that_is_not_open_is_refused,
      where_it_cannot_be_opened_again_a_thread_copies)
