/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_JSON_H
#define LK_CLI_OUTPUT_JSON_H

#include "cli/output/text.h"

/** Writes JSON into a text. Set `out` to begin. In an array `key` is NULL. */
typedef struct cli_json {
  cli_text *out;
  bool comma; /**< something stands before what comes next */
} cli_json;

void cli_json_open(cli_json *j, const char *key, char bracket);
void cli_json_close(cli_json *j, char bracket);
/** Text that is known to be UTF-8, or should be: what is not is replaced by
    U+FFFD. NULL gives null. */
void cli_json_text(cli_json *j, const char *key, lk_bytes text);
void cli_json_number(cli_json *j, const char *key, int64_t n);
void cli_json_yes(cli_json *j, const char *key, bool yes);
/** A number that may pass 2^53: in quotes, decimal. */
void cli_json_big(cli_json *j, const char *key, uint64_t n);
/** The same as 0x and hexadecimal, as sessions are shown. */
void cli_json_hex(cli_json *j, const char *key, uint64_t n);
/** A time in milliseconds since 1970, as RFC 3339. */
void cli_json_time(cli_json *j, const char *key, int64_t ms);
/** Bytes of other clients: text where they are UTF-8, else base64 under the key
    "data_base64". */
void cli_json_data(cli_json *j, const char *key, lk_bytes data);

#endif
