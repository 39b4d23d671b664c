/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_VERBS_H
#define LK_CLI_OPTIONS_VERBS_H

#include "cli/options/options.h"

/** The verbs for plain nodes. `operands`: PATH, and DATA or NULL. Each returns
    the exit code. */
int cli_ls(const cli_options *o, char **operands);
int cli_tree(const cli_options *o, char **operands);
int cli_members(const cli_options *o, char **operands);
int cli_get(const cli_options *o, char **operands);
int cli_stat(const cli_options *o, char **operands);
int cli_set(const cli_options *o, char **operands);
int cli_create(const cli_options *o, char **operands);
int cli_delete(const cli_options *o, char **operands);

/** `latchkey watch PATH [COMMAND]` */
int cli_watch(const cli_options *o, char **operands);

/** `latchkey acl PATH [SPEC]` */
int cli_acl_verb(const cli_options *o, char **operands);

/** `latchkey status LOCK` */
int cli_status(const cli_options *o, char **operands);
/** `latchkey revoke LOCK`, `latchkey wait LOCK` */
int cli_revoke(const cli_options *o, char **operands);
int cli_wait(const cli_options *o, char **operands);

/** `latchkey doctor [PATH]` */
int cli_doctor(const cli_options *o, char **operands);

#endif
