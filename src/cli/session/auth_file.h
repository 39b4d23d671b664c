/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_AUTH_FILE_H
#define LK_CLI_SESSION_AUTH_FILE_H

#include <latchkey/client.h>

#include "cli/output/text.h"

/** Room for the user of SASL, with a NUL. */
enum { CLI_SASL_USER_ROOM = 256 };

/** The contents of --auth-file. The caller zeroes it first. It must stay at its
    address while a client uses it, since the client asks it for the password.
 */
typedef struct cli_auth_file {
  const char *name; /**< path of the file; NULL: no --auth-file */
  char *at;         /**< contents of the file; NULL: not read, or wiped */
  size_t len;
  bool readable_by_others; /**< by the group or by other users */
  bool sasl; /**< the file has a line for SASL; the members below are set */
  char user[CLI_SASL_USER_ROOM];
  lk_bytes password; /**< points into `at` */
  lk_sasl_config config;
} cli_auth_file;

/** Reads the file `name`, unless it is NULL or a file was read before. It may
    be a FIFO or a terminal, so the call can block. On false, `complaint` gets
    one line: the file cannot be read or has a wrong line. `kept`: NULL, or the
    contents to use in place of those of the file. */
bool cli_auth_file_read(cli_auth_file *file, const char *name,
                        const cli_auth_file *kept, cli_text *complaint);

/** Reads the contents of `name` into `file`, for several later calls of
    cli_auth_file_read(), if it is no regular file and so may be readable only
    once. Otherwise `file->at` stays NULL. Returns false as
    cli_auth_file_read(). */
bool cli_auth_file_keep(cli_auth_file *file, const char *name,
                        cli_text *complaint);

/** Returns the value for lk_client_config.sasl; NULL: no line for SASL. */
const lk_sasl_config *cli_auth_file_sasl(const cli_auth_file *file);

/** Passes the credentials of all lines but that for SASL to `c`. Then wipes the
    contents, unless the password for SASL is among them. */
bool cli_auth_file_add_to(cli_auth_file *file, lk_client *c,
                          cli_text *complaint);

/** Wipes and frees the contents. */
void cli_auth_file_free(cli_auth_file *file);

#endif
