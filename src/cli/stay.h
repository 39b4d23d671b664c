/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_STAY_H
#define LK_CLI_STAY_H

#include "cli/ask.h"

/** Keep the session of `a`, and with it the ephemeral node `path`, until INT,
    TERM or HUP. Gives the exit code: CLI_DONE; CLI_NO once it has said that
    another client deleted the node; CLI_FAILED once it has said that the
    session ended. */
int cli_stay(cli_ask *a, const char *path);

#endif
