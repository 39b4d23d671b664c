/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_ERROR_MEANING_H
#define LK_CLI_ERROR_MEANING_H

#include "cli/exit_code.h"

/**
 * @file
 * What an error code of the library means for the command: the exit code, the
 * words of the message, and what the user can do.
 */

/** What to do if an access list forbids an operation. */
#define CLI_ADVICE_IDENTITY \
  "--auth-file or --cert gives an identity that the access list names"

/** CLI_EXIT_NO if the server's reply is a plain no, such as "no such node";
    else CLI_EXIT_FAILED. */
int cli_error_exit_code(int err);

/** What happened, for messages. */
const char *cli_error_reason(int err);

/** What happened and what to do, where `err` means more to the verb than
    cli_error_reason() says; else NULL. */
const char *cli_error_verb_reason(const char *verb, int err);

/** "; " and what to do, or "". */
const char *cli_error_advice(int err);

/** "; latchkey doctor tells more" if the doctor examines the cause, or "". */
const char *cli_error_doctor_advice(int err);

/** The layer under which the doctor reports `err`. */
const char *cli_error_layer(int err);

#endif
