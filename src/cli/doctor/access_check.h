/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_ACCESS_CHECK_H
#define LK_CLI_DOCTOR_ACCESS_CHECK_H

#include "cli/doctor/report.h"
#include "cli/session/command.h"

/** Find out what the identity of `a` may do at its path, as a lock has to,
    without leaving a trace, and say it. */
void cli_access_check(cli_command *a, cli_doctor_report *f);

#endif
