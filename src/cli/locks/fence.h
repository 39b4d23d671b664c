/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_FENCE_H
#define LK_CLI_LOCKS_FENCE_H

#include "cli/options/options.h"

/**
 * @file
 * `latchkey fence FILE TOKEN`: a file that remembers the largest fencing token.
 *
 * FILE holds one decimal number and a line end. It is replaced as a whole, by
 * rename(), so a crash leaves the old number or the new one. The lock is taken
 * on FILE itself, so it is worth nothing when FILE has been replaced meanwhile:
 * then the new FILE is locked. A larger token is on the disk before it is
 * accepted.
 */

/** Read a token: decimal digits and nothing else, at most 2^64-1. */
bool cli_fence_read(lk_bytes text, uint64_t *out);

/**
 * Remember `token` in `file`, which is made where it is missing. CLI_EXIT_DONE:
 * no larger token was seen; CLI_EXIT_NO: one was, and is in `seen`;
 * CLI_EXIT_FAILED, with one line in `complaint`: nothing is known, and `token`
 * must not be used.
 */
int cli_fence_pass(const char *file, uint64_t token, uint64_t *seen,
                   cli_text *complaint);

/** The verb. */
int cli_fence(const cli_options *o, char **operands);

#endif
