/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_ACL_SPEC_H
#define LK_CLI_OPTIONS_ACL_SPEC_H

#include <latchkey/client.h>

#include "cli/output/text.h"

/** An access list made from --acl or from SPEC. */
typedef struct cli_acl {
  lk_acls list;    /**< the content of `parsed`, or a constant of the library */
  lk_acls *parsed; /**< from lk_acl_parse(); NULL: `list` is a constant */
} cli_acl;

/** Parses "open", "creator" or the syntax of lk_acl_parse(); ids of the scheme
    digest must contain a hash. On error returns false with one line in
    `complaint`, which begins with `name` (of the option or operand), and leaves
    nothing to free. */
bool cli_acl_read(cli_acl *out, const char *name, const char *spec,
                  cli_text *complaint);
void cli_acl_free(cli_acl *acl);

/** Reads the next line of an auth file from `*text`, which becomes the rest of
    the file. Skips empty lines and lines that begin with "#". Returns false at
    the end. A line without a colon has an empty `scheme`. */
bool cli_auth_file_next_line(lk_bytes *text, lk_bytes *scheme, lk_bytes *auth);

#endif
