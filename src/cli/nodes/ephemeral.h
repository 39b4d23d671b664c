/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_EPHEMERAL_H
#define LK_CLI_NODES_EPHEMERAL_H

#include "cli/session/command.h"
#include "cli/session/interrupt.h"

/** Keeps the session of `command`, and with it the ephemeral node `path`, until
    INT, TERM or HUP. Then closes the session. Returns CLI_EXIT_DONE;
    CLI_EXIT_NO if another client deleted the node; CLI_EXIT_FAILED if the
    session ended. The reason is printed. `interrupt` is open, and is closed
    here. */
int cli_ephemeral_keep(cli_command *command, const char *path,
                       cli_interrupt *interrupt);

#endif
