/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_WATCH_CHILDREN_H
#define LK_CLI_NODES_WATCH_CHILDREN_H

#include "cli/options/options.h"

/** `latchkey watch --children PATH`: prints the list now and after each change.
    Returns the exit code. */
int cli_watch_children(const cli_options *o, const char *path);

#endif
