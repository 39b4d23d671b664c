/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_COMMAND_TABLE_H
#define LK_CLI_COMMAND_TABLE_H

#include "cli/options/options.h"

/** A verb. */
typedef struct cli_command_entry {
  const char *name;
  const char *form; /**< of the operands, for help */
  const char *help;
  int least; /**< operands */
  int most;  /**< -1: any number */
  cli_option_lists options;
  /** Do it; `operands` ends with NULL. NULL: `run`, which main() does. */
  int (*run)(const cli_options *o, char **operands);
} cli_command_entry;

/** The verbs, `run` first; the last has no name. */
extern const cli_command_entry cli_command_table[];

/** NULL: there is none of that name. */
const cli_command_entry *cli_command_table_find(const char *name);

/** Help for one verb, or, with `all`, for the program. */
void cli_command_table_help(const cli_command_entry *c, bool all,
                            cli_text *out);

#endif
