/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_TLS_JUDGEMENT_H
#define LK_CLI_DOCTOR_TLS_JUDGEMENT_H

#include "cli/doctor/port_check.h"
#include "cli/doctor/report.h"

/** Say why the connection to a server failed by TLS. Gives what to do. */
const char *cli_tls_judge_failure(const cli_port_result *n, cli_text *said);

/** Tell of the TLS connection to the server `name`, which works. `insecure`:
    its certificate was not verified. */
void cli_tls_report_server(const char *name, const cli_port_result *n,
                           bool insecure, cli_doctor_report *f);

/** Tell of the certificate that the client shows, if there is one. */
void cli_tls_report_own_certificate(const lk_tls_certificate *own,
                                    cli_doctor_report *f);

/** The facts of a connection, for programs. */
void cli_tls_add_facts(const cli_port_result *n, cli_json *facts);

/** How many days a certificate is valid from `now_s` on; < 0: it has expired.
 */
int64_t cli_tls_days_left(const lk_tls_certificate *c, int64_t now_s);

#endif
