/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_TEXT_H
#define LK_CLI_OUTPUT_TEXT_H

#include <latchkey/types.h>

#include <stdarg.h>

/**
 * A growing text. The caller zeroes it first. If memory runs out, `failed` is
 * set, and later calls append nothing. So only the final user of the text
 * checks for that.
 */
typedef struct cli_text {
  char *at; /**< not NUL-terminated; see cli_text_end() */
  size_t len;
  size_t cap;
  bool failed; /**< memory ran out: the text is not complete */
} cli_text;

void cli_text_add(cli_text *t, const void *bytes, size_t len);
void cli_text_puts(cli_text *t, const char *s);
void cli_text_printf(cli_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_text_vprintf(cli_text *t, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/** Appends bytes of other clients for one line of a terminal: control
    characters, bytes that are not UTF-8 and characters that change the
    direction of text become \xNN. */
void cli_text_add_printable(cli_text *t, lk_bytes b);
/** Replaces the same bytes of a message by question marks. */
void cli_text_mask_controls(char *text);
/** Whether the character of `len` bytes at `s` is a control character: a C0 or
    C1 control (some terminals execute the C1 controls U+0080 to U+009F), or one
    that ends a line or changes the direction of text. `*code` gets its number.
 */
bool cli_utf8_is_control(const void *s, size_t len, unsigned *code);
void cli_text_base64(cli_text *t, lk_bytes b);
/** Appends milliseconds since 1970 as RFC 3339 in UTC:
    2026-11-21T04:17:29.123Z */
void cli_text_time(cli_text *t, int64_t ms);

/** Returns the text, ended by a NUL; NULL if memory ran out. */
const char *cli_text_end(cli_text *t);
void cli_text_free(cli_text *t);

/** Returns the length of the UTF-8 character at the start of `b`. Returns 0 if
    `b` is empty or begins with no valid character. */
size_t cli_utf8_char_len(lk_bytes b);
/** Whether all of `b` is valid UTF-8. */
bool cli_utf8_ok(lk_bytes b);

#endif
