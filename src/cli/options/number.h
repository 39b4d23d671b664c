/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_NUMBER_H
#define LK_CLI_OPTIONS_NUMBER_H

#include <stdint.h>

/* The functions return NULL, or the end of a complaint about `text`, such as
   "is out of range". */

/** Parses seconds with decimals to milliseconds, rounded up; at most 24
    days. */
const char *cli_number_seconds(const char *text, int64_t *out_ms);
/** Parses a number of bytes from `least` to `most`, with K, M or G behind it
   for 2^10, 2^20 or 2^30. */
const char *cli_number_size(const char *text, int64_t least, int64_t most,
                            int64_t *out);
/** Parses a whole number from `least` to `most`. */
const char *cli_number_whole(const char *text, int64_t least, int64_t most,
                             int64_t *out);

#endif
