/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_SESSION_MESSAGES_H
#define LK_CLI_SESSION_SESSION_MESSAGES_H

#include "cli/session/session.h"

/**
 * @file
 * What latchkey says of a session that failed: parts of a line, without a
 * newline.
 */

/** Returns the error to report: LK_ERR_AUTH_FAILED without --auth-file becomes
    LK_ERR_AUTH_REQUIRED. */
int cli_session_error(const cli_session *s, int err);

/** Appends why there is no session, the likely cause and advice, as one line
    without a newline. */
void cli_session_say_no_session(const cli_session *s, cli_text *out);
/** Appends only why there is no session. */
void cli_session_say_failure(const cli_session *s, cli_text *out);
/** Returns the likely cause and advice. */
const char *cli_session_advice(const cli_session *s);

/** Appends that the chroot does not exist, and the command that creates it. */
void cli_session_say_no_chroot(const cli_session *s, cli_text *out);
/** Appends only "latchkey create ... creates it". */
void cli_session_say_chroot_command(const cli_session *s, cli_text *out);

/** Appends "connection to HOST:PORT lost", and why if that is known. */
void cli_session_say_connection_lost(const cli_session *s, cli_text *out);

#endif
