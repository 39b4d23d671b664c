/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_SERVER_DIAGNOSIS_H
#define LK_CLI_DOCTOR_SERVER_DIAGNOSIS_H

#include "cli/doctor/report.h"
#include "cli/doctor/server_checks.h"

/** Reports each server that was checked, with advice, and whether all belong to
    one ensemble. */
void cli_server_diagnosis_report(const cli_server_checks *s,
                                 cli_doctor_report *report);

#endif
