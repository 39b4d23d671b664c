/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_EPHEMERAL_H
#define LK_CLI_NODES_EPHEMERAL_H

#include "cli/session/command.h"

/** Keep the session of `a`, and with it the ephemeral node `path`, until INT,
    TERM or HUP. Gives the exit code: CLI_EXIT_DONE; CLI_EXIT_NO once it has
   said that another client deleted the node; CLI_EXIT_FAILED once it has said
   that the session ended. */
int cli_ephemeral_keep(cli_command *a, const char *path);

#endif
