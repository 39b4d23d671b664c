/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_JSON_H
#define LK_CLI_OUTPUT_JSON_H

#include "cli/output/text.h"

/** Writes JSON into the text `out`, which the caller sets; the rest is zero. In
    an array, and for the outermost object, `key` is NULL. */
typedef struct cli_json {
  cli_text *out;
  bool comma; /**< a comma is needed before the next item */
} cli_json;

/** Begins an object with "{", or an array with "[". */
void cli_json_open(cli_json *j, const char *key, char bracket);
/** Ends the object with "}", or the array with "]". */
void cli_json_close(cli_json *j, char bracket);
/** Writes text that should be UTF-8: U+FFFD replaces other bytes. A text whose
    `at` is NULL is written as null. */
void cli_json_text(cli_json *j, const char *key, lk_bytes text);
void cli_json_number(cli_json *j, const char *key, int64_t n);
void cli_json_bool(cli_json *j, const char *key, bool yes);
/** Writes a number in quotes, decimal, since it may exceed 2^53. */
void cli_json_uint64(cli_json *j, const char *key, uint64_t n);
/** Writes a number in quotes, hexadecimal with 0x, as sessions are shown. */
void cli_json_hex(cli_json *j, const char *key, uint64_t n);
/** Writes a time in milliseconds since 1970, as RFC 3339. */
void cli_json_time(cli_json *j, const char *key, int64_t ms);
/** Writes data of other clients. If it is UTF-8, writes it as text under `key`;
    else as base64 under "data_base64", whatever `key` is. */
void cli_json_data(cli_json *j, const char *key, lk_bytes data);

#endif
