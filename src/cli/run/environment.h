/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_ENVIRONMENT_H
#define LK_CLI_RUN_ENVIRONMENT_H

#include <latchkey/client.h>

#include "cli/output/text.h"

/**
 * @file
 * The variables that COMMAND gets in addition to those of latchkey. They are
 * collected as one text: NAME=VALUE, each followed by a NUL.
 */

/** Appends a variable. */
void cli_environment_add(cli_text *out, const char *name, const char *value);
/** Appends LATCHKEY_SESSION. */
void cli_environment_add_session(cli_text *out, const lk_client *c);

#endif
