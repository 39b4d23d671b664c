/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_STAT_H
#define LK_CLI_STAT_H

#include "cli/json.h"

/** All of it, a field a line. */
void cli_stat_show(cli_text *out, const lk_stat *s);
/** The same as members of the object that is open. */
void cli_stat_json(cli_json *j, const lk_stat *s);

#endif
