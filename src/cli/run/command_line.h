/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_COMMAND_LINE_H
#define LK_CLI_RUN_COMMAND_LINE_H

#include "cli/options/options.h"

/** The words of COMMAND. */
typedef struct cli_command_line {
  char **argv;        /**< ends with NULL */
  char **shell_words; /**< of `$SHELL -c STRING`, allocated; NULL: none */
} cli_command_line;

/** Finds COMMAND in `operands`, of which the first is LOCK. Returns a
   complaint, or NULL. */
const char *cli_command_line_parse(const cli_options *o, char **operands,
                                   cli_command_line *out);
void cli_command_line_free(cli_command_line *c);

#endif
