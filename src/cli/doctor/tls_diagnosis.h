/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_TLS_DIAGNOSIS_H
#define LK_CLI_DOCTOR_TLS_DIAGNOSIS_H

#include "cli/doctor/port_check.h"
#include "cli/doctor/report.h"

/** Appends why the connection to a server failed, by TLS or for lack of TLS.
    Returns advice. */
const char *cli_tls_diagnose_failure(const cli_port_result *result,
                                     cli_text *said);

/** Reports the working TLS connection to the server `name`. `insecure`: its
    certificate was not verified. */
void cli_tls_report_server(const char *name, const cli_port_result *result,
                           bool insecure, cli_doctor_report *report);

/** Reports the certificate that the client sends, if there is one. */
void cli_tls_report_own_certificate(const lk_tls_certificate *own,
                                    cli_doctor_report *report);

/** Adds the facts of a TLS connection, for programs. */
void cli_tls_add_facts(const cli_port_result *result, cli_json *facts);

/** Returns for how many whole days from `now_s` a certificate is valid; < 0:
    expired. */
int64_t cli_tls_days_left(const lk_tls_certificate *c, int64_t now_s);

#endif
