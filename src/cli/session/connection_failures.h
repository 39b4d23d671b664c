/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_CONNECTION_FAILURES_H
#define LK_CLI_SESSION_CONNECTION_FAILURES_H

#include <latchkey/tls.h>

#include "cli/options/tls_options.h"
#include "cli/output/text.h"

/** How the last connection attempt to one server ended. */
typedef struct cli_connection_failure {
  char *server;       /**< "host:port", as in the library's log */
  int err;            /**< error of the last attempt; 0: none has ended */
  lk_tls_cause cause; /**< why TLS failed, if `err` is LK_ERR_TLS */
  char *why;          /**< the library's text; own memory; NULL: no attempt has
                         ended */
} cli_connection_failure;

/** The servers of a connect string, in its order. The caller zeroes it first.
    If memory runs out, the list is not complete. */
typedef struct cli_connection_failures {
  cli_connection_failure *items;
  size_t count;
} cli_connection_failures;

void cli_connection_failures_init(cli_connection_failures *failures,
                                  const cli_tls_options *tls,
                                  const char *hosts);
/** Records a line of the library's log if it begins with a server's name. */
void cli_connection_failures_record(cli_connection_failures *failures, int err,
                                    lk_tls_cause cause, const char *line);
/** Whether any attempt has ended. */
bool cli_connection_failures_any(const cli_connection_failures *failures);
void cli_connection_failures_free(cli_connection_failures *failures);

/** Appends how the attempts ended, as part of a line. `current` is the server
    of the current attempt; `seconds` have passed since the client began to
    connect. */
void cli_connection_failures_list(const cli_connection_failures *failures,
                                  const char *current, double seconds,
                                  cli_text *out);

/** Appends "cannot connect to" and the text of cli_connection_failures_list().
 */
void cli_connection_failures_say(const cli_connection_failures *failures,
                                 const char *current, double seconds,
                                 cli_text *out);

/** Returns advice for a failed TLS connection, as part of a line; a
    constant. */
const char *cli_connection_failures_tls_advice(lk_tls_cause cause);

/** Returns the likely cause and advice, as part of a line; a constant. */
const char *
cli_connection_failures_advice(const cli_connection_failures *failures);

#endif
