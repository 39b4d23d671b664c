/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_ERROR_REPORT_H
#define LK_CLI_OUTPUT_ERROR_REPORT_H

/**
 * @file
 * The meaning of the library's error codes for the command: the exit code, the
 * text of the message, and advice for the user.
 */

#include "cli/output/exit_code.h"

/** The oldest version of ZooKeeper that latchkey supports. */
#define CLI_OLDEST_VERSION "3.5.9"

/** Advice for an operation that an access list forbids. */
#define CLI_ADVICE_IDENTITY \
  "--auth-file or --cert gives an identity that the access list names"

/** Returns CLI_EXIT_DONE for 0; CLI_EXIT_NO for a negative reply that is not a
    failure, such as "no such node"; else CLI_EXIT_FAILED. */
int cli_error_exit_code(int err);

/** Returns the reason that messages give for `err`. */
const char *cli_error_reason(int err);

/** Returns the reason and advice for `err` if they are special for this verb;
    NULL: use cli_error_reason(). */
const char *cli_error_verb_reason(const char *verb, int err);

/** Returns "; " and advice, or "". */
const char *cli_error_advice(int err);

/** Returns "; latchkey doctor tells more" if the doctor examines the cause,
    else "". */
const char *cli_error_doctor_advice(int err);

/** Returns the layer under which the doctor reports `err`. */
const char *cli_error_layer(int err);

#endif
