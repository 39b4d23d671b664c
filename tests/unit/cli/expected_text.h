/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_CLI_EXPECTED_TEXT_H
#define LK_UNIT_CLI_EXPECTED_TEXT_H

#include "cli/output/text.h"

/** Check the whole text, and free it. */
void expect_text(cli_text *t, const char *expected);

/** The bytes of a string literal, which may contain NUL bytes. */
#define BYTES(literal) lk_bytes_of(literal, sizeof(literal) - 1)

#endif
