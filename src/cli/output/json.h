/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_JSON_H
#define LK_CLI_OUTPUT_JSON_H

#include "cli/output/text.h"

/** Writes JSON into a text. Set `out` to begin. In an array `key` is NULL. */
typedef struct cli_json {
  cli_text *out;
  bool comma; /**< a comma is needed before the next item */
} cli_json;

void cli_json_open(cli_json *j, const char *key, char bracket);
void cli_json_close(cli_json *j, char bracket);
/** Writes text that should be UTF-8: other bytes are replaced by U+FFFD. NULL
    becomes null. */
void cli_json_text(cli_json *j, const char *key, lk_bytes text);
void cli_json_number(cli_json *j, const char *key, int64_t n);
void cli_json_bool(cli_json *j, const char *key, bool yes);
/** Writes a number that may exceed 2^53: in quotes, decimal. */
void cli_json_uint64(cli_json *j, const char *key, uint64_t n);
/** The same in hexadecimal with 0x, as sessions are shown. */
void cli_json_hex(cli_json *j, const char *key, uint64_t n);
/** Writes a time in milliseconds since 1970, as RFC 3339. */
void cli_json_time(cli_json *j, const char *key, int64_t ms);
/** Writes data of other clients: as text if it is UTF-8, else as base64 under
    the key "data_base64". */
void cli_json_data(cli_json *j, const char *key, lk_bytes data);

#endif
