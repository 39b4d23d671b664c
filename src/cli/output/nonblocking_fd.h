/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_NONBLOCKING_FD_H
#define LK_CLI_OUTPUT_NONBLOCKING_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * Non-blocking writes to a descriptor that other processes share. O_NONBLOCK
 * belongs to the open file description, so setting it would change theirs. A
 * pipe or a terminal is opened once more through /proc; if that is refused, a
 * thread copies to it from a private pipe. A socket is written with
 * MSG_DONTWAIT, and a regular file does not block. If no descriptor is left for
 * this, `fd` itself is written to.
 */
typedef struct cli_nonblocking_fd {
  int fd;     /**< to write to, and to poll for POLLOUT; -1: not open */
  bool own;   /**< `fd` was opened here and is closed here */
  int copied; /**< readable when the thread has ended; -1: no thread */
} cli_nonblocking_fd;

/** Prepares writes to `fd`, which stays open. Returns 0 or an errno. */
int cli_nonblocking_fd_open(cli_nonblocking_fd *s, int fd);
/** As write(), after poll() has reported `fd` writable: returns the number of
    bytes, or -1 with errno. */
ssize_t cli_nonblocking_fd_write(const cli_nonblocking_fd *s, const char *at,
                                 size_t len);
/** Closes the descriptors. A thread that cannot write its bytes is left running
    after `most_ms`. */
void cli_nonblocking_fd_close(cli_nonblocking_fd *s, int most_ms);

#endif
