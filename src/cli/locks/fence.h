/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_FENCE_H
#define LK_CLI_LOCKS_FENCE_H

#include "cli/options/options.h"

/**
 * @file
 * `latchkey fence FILE TOKEN`: keeps the largest fencing token in a file.
 *
 * FILE contains one decimal number and a newline. It is replaced by rename(),
 * so a crash leaves the old number or the new one. The file lock is on FILE
 * itself.
 * If FILE was replaced before it was locked, the new FILE is locked instead. A
 * larger token is synced to the disk before it is accepted.
 */

/** Parses a token: decimal digits and nothing else, at most 2^64-1. */
bool cli_fence_parse_token(lk_bytes text, uint64_t *out);

/**
 * Compares `token` with the one in `file`, and stores the larger one. A missing
 * `file` is created. Returns CLI_EXIT_DONE if `file` contained no larger token;
 * CLI_EXIT_NO if it contains a larger one, which `seen` gets. Returns
 * CLI_EXIT_FAILED with one line in `complaint` if the result is not known:
 * `token` must not be used then.
 */
int cli_fence_check_token(const char *file, uint64_t token, uint64_t *seen,
                          cli_text *complaint);

/** Runs the verb `fence`. */
int cli_fence(const cli_options *o, char **operands);

#endif
