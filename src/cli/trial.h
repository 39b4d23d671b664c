/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_TRIAL_H
#define LK_CLI_TRIAL_H

#include "cli/ask.h"
#include "cli/findings.h"

/** Find out what the identity of `a` may do at its path, as a lock has to,
    without leaving a trace, and say it. */
void cli_trial(cli_ask *a, cli_findings *f);

#endif
