/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_ACL_SPEC_H
#define LK_CLI_OPTIONS_ACL_SPEC_H

#include <latchkey/client.h>

#include "cli/output/text.h"

/** An access list made from --acl. */
typedef struct cli_acl {
  lk_acls list; /**< that of `made`, or a constant */
  lk_acls *made;
} cli_acl;

/** Read "open", "creator" or what lk_acl_parse() reads, with ids of digests
   that hold a hash. False with one line in `complaint`, which begins with
   `what`; there is nothing to free then. */
bool cli_acl_read(cli_acl *out, const char *what, const char *spec,
                  cli_text *complaint);
void cli_acl_free(cli_acl *acl);

/** The next line of an auth file, `*text` being what is left of it; skips empty
    lines and those that begin with #. False at the end; a line without a colon
    gives an empty `scheme`. */
bool cli_auth_file_next_line(lk_bytes *text, lk_bytes *scheme, lk_bytes *auth);

#endif
