/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_ACCESS_CHECK_H
#define LK_CLI_DOCTOR_ACCESS_CHECK_H

#include "cli/doctor/report.h"
#include "cli/session/command.h"

/** Reports the permissions that a lock needs at the path of `command`, for the
    identity of `command`. No node is left behind. */
void cli_access_check(cli_command *command, cli_doctor_report *report);

#endif
