/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_LOCK_TARGET_H
#define LK_CLI_RUN_LOCK_TARGET_H

/**
 * @file
 * The lock of a run: it is acquired when the session is established, and
 * released at the end. cli_lock_target in runner.h is its table.
 */

#include "cli/options/options.h"
#include "cli/output/text.h"

/** Appends the text that other clients see in the own node: that of the option,
    or host name, process id and start time. */
void cli_own_label_add(const cli_options *o, cli_text *out);

#endif
