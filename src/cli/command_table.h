/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_COMMAND_TABLE_H
#define LK_CLI_COMMAND_TABLE_H

#include "cli/options/options.h"
#include "cli/run/supervisor_handle.h"

enum { CLI_ANY_NUMBER = -1 };

/** An entry of the command table: one verb. */
typedef struct cli_command_entry {
  const char *name;
  const char *usage; /**< what follows the name on the command line */
  const char *help;  /**< begins with a small letter, without a full stop */
  int min_operands;
  int max_operands; /**< may be CLI_ANY_NUMBER */
  cli_option_lists options;
  /** Runs the verb; `operands` ends with NULL. Returns the exit code. NULL if
      there is `run`. */
  int (*call)(const cli_options *o, char **operands);
  /** Runs a verb that runs COMMAND, whose options end at the first operand.
      `title` is the memory of argv. */
  int (*run)(const cli_options *o, char **operands, cli_process_title title);
  /** COMMAND may follow PATH: cli_options_take_before_command() parses. */
  bool optional_command;
} cli_command_entry;

/** The verbs, `run` first; the last has no name. */
extern const cli_command_entry cli_command_table[];

/** Returns the entry of the verb `name`, or NULL. */
const cli_command_entry *cli_command_table_find(const char *name);

/** Appends the help for the verb `c`. With `whole_program`, `c` must be the
    entry of `run`, and the help lists all verbs. */
void cli_command_table_help(const cli_command_entry *c, bool whole_program,
                            cli_text *out);

#endif
