/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_CONNECTION_ATTEMPTS_H
#define LK_CLI_SESSION_CONNECTION_ATTEMPTS_H

#include <latchkey/tls.h>

#include "cli/options/tls_options.h"
#include "cli/output/text.h"

/** How the last connection attempt to one server ended. */
typedef struct cli_connection_attempt {
  char *server;       /**< "host:port", as the library's log has it */
  int err;            /**< 0: none has ended */
  lk_tls_cause cause; /**< after LK_ERR_TLS */
  char *why;          /**< own memory; NULL: none has ended */
} cli_connection_attempt;

/** The servers of a connect string, in its order. Zero it to begin. Where
    memory is short servers are missing. */
typedef struct cli_connection_attempts {
  cli_connection_attempt *items;
  size_t count;
} cli_connection_attempts;

void cli_connection_attempts_init(cli_connection_attempts *a,
                                  const cli_tls_options *tls,
                                  const char *hosts);
/** Take note of a line of the library's log that begins with a server's name;
    others are left alone. */
void cli_connection_attempts_record(cli_connection_attempts *a, int err,
                                    lk_tls_cause cause, const char *line);
/** Whether any has ended. */
bool cli_connection_attempts_any(const cli_connection_attempts *a);
void cli_connection_attempts_free(cli_connection_attempts *a);

/** List how they ended, as part of a line. `current` is the server that is
   tried now; `seconds` have passed. */
void cli_connection_attempts_list(const cli_connection_attempts *a,
                                  const char *current, double seconds,
                                  cli_text *out);

/** The same as the start of a line which says that no server gives a session.
 */
void cli_connection_attempts_say(const cli_connection_attempts *a,
                                 const char *current, double seconds,
                                 cli_text *out);

/** What to do about a connection by TLS that failed, as part of a line; a
    constant. */
const char *cli_connection_attempts_tls_advice(lk_tls_cause cause);

/** The likely cause and what to do, as part of a line; a constant. */
const char *cli_connection_attempts_advice(const cli_connection_attempts *a);

#endif
