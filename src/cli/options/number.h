/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_NUMBER_H
#define LK_CLI_OPTIONS_NUMBER_H

/**
 * @file
 * Numbers and limits of sizes on the command line and in the environment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output/text.h"

/* The functions return NULL, or the end of a complaint about `text`, such as
   "is out of range". */

/** Parses seconds with decimals to milliseconds, rounded up; at most 24
    days. */
const char *cli_number_seconds(const char *text, int64_t *out_ms);
/** Parses a whole number from `least` to `most`. */
const char *cli_number_whole(const char *text, int64_t least, int64_t most,
                             int64_t *out);

/** --max-request is no larger: `set -` and `create -` read so many bytes of
    standard input at most. */
enum { CLI_MOST_REQUEST_BYTES = 64 << 20 };

typedef enum cli_size_limit {
  CLI_MAX_REQUEST, /**< --max-request, LATCHKEY_MAX_REQUEST */
  CLI_MAX_REPLY    /**< --max-reply, LATCHKEY_MAX_REPLY */
} cli_size_limit;

/** Parses the value of the option or of its variable. Returns NULL, or the end
    of a complaint about `text`. */
const char *cli_size_limit_parse(cli_size_limit limit, const char *text,
                                 int64_t *out);

/** Gives the limit in bytes for lk_client_config: `given`, the value of the
    option, unless it is 0; else that of the variable; else 0, the library's
    default. Returns false if the variable has no valid value. */
bool cli_size_limit_read(cli_size_limit limit, int64_t given, size_t *out,
                         cli_text *complaint);

#endif
