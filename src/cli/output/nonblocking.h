/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_NONBLOCKING_H
#define LK_CLI_OUTPUT_NONBLOCKING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * A descriptor to write to that never blocks, for one that other processes
 * share: O_NONBLOCK belongs to the open file description, so setting it there
 * would change theirs. A pipe or a terminal is opened once more through /proc;
 * where that is refused, a thread copies to it from a pipe of our own. A socket
 * is told with each write not to block, and a regular file does not. Without a
 * descriptor left for any of this, `fd` itself is written to.
 */
typedef struct cli_nonblocking {
  int fd;     /**< to wait until there is room; -1: not open */
  bool own;   /**< it is to be closed */
  int copied; /**< becomes readable when the thread has ended; -1: none */
} cli_nonblocking;

/** Open one for `fd`, which stays open. 0, or an errno. */
int cli_nonblocking_open(cli_nonblocking *s, int fd);
/** As write(), once poll() says that `fd` is ready: the number of bytes, or -1
    with errno. */
ssize_t cli_nonblocking_write(const cli_nonblocking *s, const char *at,
                              size_t len);
/** Give it back. A thread that cannot write what it has is left behind after
    `most_ms`. */
void cli_nonblocking_close(cli_nonblocking *s, int most_ms);

#endif
