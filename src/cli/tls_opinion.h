/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_TLS_OPINION_H
#define LK_CLI_TLS_OPINION_H

#include "cli/findings.h"
#include "cli/knock.h"

/** Say why the connection to a server failed by TLS. Gives what to do. */
const char *cli_tls_judge(const cli_knock_news *n, cli_text *said);

/** Tell of the TLS connection to the server `name`, which works. `insecure`:
    its certificate was not verified. */
void cli_tls_tell(const char *name, const cli_knock_news *n, bool insecure,
                  cli_findings *f);

/** Tell of the certificate that the client shows, if there is one. */
void cli_tls_tell_own(const lk_tls_certificate *own, cli_findings *f);

/** The facts of a connection, for programs. */
void cli_tls_facts(const cli_knock_news *n, cli_json *facts);

/** How many days a certificate is valid from `now_s` on; < 0: it has expired.
 */
int64_t cli_tls_days(const lk_tls_certificate *c, int64_t now_s);

#endif
