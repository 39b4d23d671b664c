/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_STAT_FIELDS_H
#define LK_CLI_NODES_STAT_FIELDS_H

#include "cli/output/json.h"

/** Appends all fields, one a line. */
void cli_stat_fields_text(cli_text *out, const lk_stat *s);
/** Adds all fields to the open object. */
void cli_stat_fields_json(cli_json *j, const lk_stat *s);

#endif
