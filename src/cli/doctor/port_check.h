/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_PORT_CHECK_H
#define LK_CLI_DOCTOR_PORT_CHECK_H

#include <sys/types.h>

#include "cli/doctor/port_check_child.h"
#include "net/loop.h"

/**
 * @file
 * A check of a server's port without a session: resolves the name, connects, by
 * TLS if that is selected, and sends a four-letter word. A child process does
 * all this, since resolving a name can block without limit. The caller kills it
 * at the deadline by cli_port_check_end().
 */

typedef struct cli_port_check {
  /** Invoked once, from the loop, when the child has ended. */
  void (*on_end)(struct cli_port_check *check, void *arg);
  void *arg;
  cli_port_result result; /**< the last message of the child */
  pid_t pid;     /**< of the child */
  lk_loop *loop; /**< NULL: the check has ended */
  lk_loop_io io; /**< of the pipe from the child */
} cli_port_check;

/** Starts a child that plans its steps for `patience_ms`; the lookup of a name
    can last longer. `tls` NULL: plain TCP. The caller
    zeroes `check` and sets `on_end` first. Returns 0 or an errno. */
int cli_port_check_begin(cli_port_check *check, const char *host, uint16_t port,
                         const lk_tls_config *tls, int64_t patience_ms,
                         lk_loop *loop);
/** Ends the check at any stage, and kills the child. Does nothing if the check
    has ended. */
void cli_port_check_end(cli_port_check *check);

#endif
