/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_ACCESS_CHECK_H
#define LK_CLI_DOCTOR_ACCESS_CHECK_H

#include "cli/doctor/report.h"
#include "cli/session/command.h"

/** Reports the permissions that a lock needs at the path of `a`, for the
    identity of `a`. No node is left behind. */
void cli_access_check(cli_command *a, cli_doctor_report *f);

#endif
