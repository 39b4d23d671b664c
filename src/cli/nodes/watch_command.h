/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_WATCH_COMMAND_H
#define LK_CLI_NODES_WATCH_COMMAND_H

#include "cli/options/options.h"

/** `latchkey watch [--children] PATH COMMAND`: runs COMMAND with each state of
    the node. `argv` is COMMAND, and ends with NULL. Returns the exit code. */
int cli_watch_command(const cli_options *o, const char *path, char **argv);

#endif
