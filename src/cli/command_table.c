/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/command_table.h"
#include "cli/locks/fence.h"
#include "cli/options/verbs.h"
#include "cli/run/run.h"

/* The lists of options that each verb with a session has. The -V of set and
   delete is --node-version. */
#define SESSION_LISTS \
  cli_options_session, cli_options_json, cli_options_common, cli_options_version

/* clang-format off */
const cli_command_entry cli_command_table[] = {
  {"run", "[OPTION...] LOCK [--] COMMAND [ARG...]",
   "run COMMAND while holding LOCK", 1, CLI_ANY_NUMBER,
   /* cli_options_command has the --json of these verbs. */
   {cli_options_run, cli_options_job, cli_options_command, cli_options_layout,
    cli_options_session, cli_options_common, cli_options_version}, .run = cli_run},
  {"elect", "[OPTION...] PATH [--] COMMAND [ARG...]",
   "run COMMAND while leading the election at PATH", 1, CLI_ANY_NUMBER,
   {cli_options_elect, cli_options_job, cli_options_command, cli_options_layout,
    cli_options_session, cli_options_common, cli_options_version}, .run = cli_elect},
  {"join", "[OPTION...] PATH [--] COMMAND [ARG...]",
   "run COMMAND as a member of the group at PATH", 1, CLI_ANY_NUMBER,
   {cli_options_join, cli_options_command, cli_options_session,
    cli_options_common, cli_options_version}, .run = cli_join},
  {"status", "[OPTION...] LOCK", "show the holders of LOCK and the queue", 1, 1,
   {cli_options_layout, SESSION_LISTS}, .call = cli_status},
  {"wait", "[OPTION...] LOCK", "wait until LOCK is free", 1, 1,
   {cli_options_wait, cli_options_layout, SESSION_LISTS}, .call = cli_wait},
  {"revoke", "[OPTION...] LOCK", "ask the holders of LOCK to release it", 1, 1,
   {cli_options_layout, SESSION_LISTS}, .call = cli_revoke},
  {"ls", "[OPTION...] PATH", "list the children of a node", 1, 1,
   {cli_options_ls, cli_options_read, SESSION_LISTS}, .call = cli_ls},
  {"tree", "[OPTION...] PATH", "show all nodes below a node", 1, 1,
   {cli_options_read, SESSION_LISTS}, .call = cli_tree},
  {"get", "[OPTION...] PATH", "write the data of a node to standard output", 1, 1,
   {cli_options_read, SESSION_LISTS}, .call = cli_get},
  {"stat", "[OPTION...] PATH", "show the Stat of a node", 1, 1,
   {cli_options_read, SESSION_LISTS}, .call = cli_stat},
  {"create", "[OPTION...] PATH [DATA|-]", "create a node and print its path", 1, 2,
   {cli_options_create, SESSION_LISTS}, .call = cli_create},
  {"set", "[OPTION...] PATH DATA|-", "replace the data of a node", 2, 2,
   {cli_options_write, cli_options_session, cli_options_json,
    cli_options_common, cli_options_long_version}, .call = cli_set},
  {"delete", "[OPTION...] PATH", "delete a node", 1, 1,
   {cli_options_delete, cli_options_write, cli_options_session,
    cli_options_json, cli_options_common, cli_options_long_version},
   .call = cli_delete},
  {"watch", "[OPTION...] PATH [[--] COMMAND [ARG...]]",
   "report events at a node, or run COMMAND with each state of it", 1, CLI_ANY_NUMBER,
   {cli_options_watch, SESSION_LISTS}, .call = cli_watch, .optional_command = true},
  {"members", "[OPTION...] PATH", "show the members of a group and their data", 1, 1,
   {cli_options_members, SESSION_LISTS}, .call = cli_members},
  {"acl", "[OPTION...] PATH [SPEC]", "show or replace the access list of a node", 1, 2,
   {SESSION_LISTS}, .call = cli_acl_verb},
  {"fence", "[OPTION...] FILE TOKEN", "record TOKEN in FILE, unless FILE holds a larger one", 2, 2,
   {cli_options_json, cli_options_common, cli_options_version}, .call = cli_fence},
  {"doctor", "[OPTION...] [PATH]", "examine the servers, the connection and the permissions at PATH", 0, 1,
   {SESSION_LISTS}, .call = cli_doctor},
  {0}};
/* clang-format on */

const cli_command_entry *cli_command_table_find(const char *name)
{
  for (const cli_command_entry *c = cli_command_table; c->name != NULL; c++)
    if (strcmp(c->name, name) == 0)
      return c;
  return NULL;
}

static void add_program_help(cli_text *out)
{
  const cli_command_entry *after_run = cli_command_table + 1;

  cli_text_puts(out, "       latchkey [OPTION...] LOCK COMMAND [ARG...]   "
                     "(the same)\n");
  for (const cli_command_entry *c = after_run; c->name != NULL; c++)
    cli_text_printf(out, "       latchkey %s %s\n", c->name, c->usage);
  cli_text_puts(out, "\nDistributed locks on ZooKeeper; reading and "
                     "writing of nodes.\n\n");
  for (const cli_command_entry *c = cli_command_table; c->name != NULL; c++)
    cli_text_printf(out, "  %-8s %s\n", c->name, c->help);
  cli_text_puts(
      out, "\nOptions may stand before, between and after operands, "
           "those of run only before LOCK,\nthose of elect, join and watch "
           "with COMMAND only before PATH. -- ends them.\n\nOptions of "
           "run:\n");
}

/* The help of a verb is printed as a sentence. */
static void add_verb_help(const cli_command_entry *c, cli_text *out)
{
  int capital = c->help[0] - 'a' + 'A';

  cli_text_printf(out, "\n%c%s.\n\n", capital, c->help + 1);
}

static void add_exit_codes_of_run(cli_text *out)
{
  cli_text_puts(
      out, "\nExit codes: COMMAND's own, or 128+N after signal N; 123 the lock "
           "was lost, or\n--on-lost or --max-hold acted; 124 the lock was not "
           "acquired (-E); 125 latchkey\nfailed; 126 COMMAND cannot be "
           "executed; 127 COMMAND was not found.\n");
}

void cli_command_table_help(const cli_command_entry *c, bool whole_program,
                            cli_text *out)
{
  cli_text_printf(out, "usage: latchkey %s %s\n", c->name, c->usage);
  if (whole_program)
    add_program_help(out);
  else
    add_verb_help(c, out);
  cli_options_help(c->options, out);
  if (strcmp(c->name, "run") == 0)
    add_exit_codes_of_run(out);
  cli_text_puts(out, "\nThe manual: man latchkey\n");
}
