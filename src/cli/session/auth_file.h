/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_AUTH_FILE_H
#define LK_CLI_SESSION_AUTH_FILE_H

#include <latchkey/client.h>

#include "cli/output/text.h"

enum { CLI_USER_ROOM = 256 };

/** What --auth-file says. Zero it to begin; it stays where it is while a client
    uses it. */
typedef struct cli_auth_file {
  const char *name; /**< of the file; NULL: there is none */
  char *at;         /**< what it contains; wiped when it is not needed */
  size_t len;
  bool others; /**< the file's mode lets other users read it */
  bool sasl;   /**< it has a line of SASL */
  char user[CLI_USER_ROOM];
  lk_bytes password; /**< in `at` */
  lk_sasl_config config;
} cli_auth_file;

/** Read the file `name`, which can be a FIFO or a terminal and take its time.
    False with one line in `complaint`: it cannot be read, or not understood. */
bool cli_auth_file_read(cli_auth_file *i, const char *name,
                        cli_text *complaint);

/** For lk_client_config.sasl; NULL: no line of SASL. */
const lk_sasl_config *cli_auth_file_sasl(const cli_auth_file *i);

/** Hand all others to `c`, and forget what is not needed any more. */
bool cli_auth_file_add_to(cli_auth_file *i, lk_client *c, cli_text *complaint);

/** Wipe and free it. */
void cli_auth_file_free(cli_auth_file *i);

#endif
