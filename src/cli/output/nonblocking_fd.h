/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_NONBLOCKING_FD_H
#define LK_CLI_OUTPUT_NONBLOCKING_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * Non-blocking writes to a descriptor that other processes share. O_NONBLOCK
 * must not be set: it belongs to the open file description, so it would change
 * the writes of these processes, too. A pipe or a terminal is opened once more
 * through /proc. If that is refused, a thread copies from a private pipe to it.
 * Writes to a socket use MSG_DONTWAIT, and a regular file does not block. If no
 * descriptor is left for all this, writes go to the shared descriptor and may
 * block.
 */
typedef struct cli_nonblocking_fd {
  int fd;           /**< to write to, and to poll for POLLOUT; -1: not open */
  bool opened_here; /**< `fd` is closed with this */
  int thread_end;   /**< descriptor, readable when the thread has ended; -1: no
                         thread */
} cli_nonblocking_fd;

/** Prepares writes to `fd`, which stays open. Returns 0 or an errno. */
int cli_nonblocking_fd_open(cli_nonblocking_fd *s, int fd);
/** Writes after poll() has reported `fd` writable. Returns the number of bytes
    written, or -1 with errno. */
ssize_t cli_nonblocking_fd_write(const cli_nonblocking_fd *s, const char *at,
                                 size_t len);
/** Closes the descriptors. Waits at most `max_wait_ms` for the thread to write
    its bytes; then the thread is left running. */
void cli_nonblocking_fd_close(cli_nonblocking_fd *s, int max_wait_ms);

/** Writes all bytes, also if another process has made the descriptor
    non-blocking. Returns false with errno. */
bool cli_write_all_waiting(int fd, const char *at, size_t len);

#endif
