/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_CHILD_NAMES_H
#define LK_CLI_NODES_CHILD_NAMES_H

#include "cli/output/json.h"

/** Appends the names of children, ordered by their bytes, one a line. `names`
    may be NULL if `count` is 0. If memory runs out, `out` has failed. */
void cli_child_names_text(cli_text *out, const lk_bytes *names, size_t count);
/** The same as an array `key` of the open object. */
void cli_child_names_json(cli_json *j, const char *key, const lk_bytes *names,
                          size_t count);

#endif
