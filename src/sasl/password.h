/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SASL_PASSWORD_H
#define LK_SASL_PASSWORD_H

#include <stddef.h>

/**
 * Read the first line of `file`, or of the descriptor `fd` if `file` is NULL,
 * into the `size` bytes at `out`. The line's end, LF or CR LF, is dropped, and
 * no NUL is added. `out` is wiped if this fails. No byte behind the line is
 * read from a descriptor.
 *
 * @return the length; LK_ERR_SYSTEM (errno says why); LK_ERR_TOO_BIG: the line
 *         is longer than `size`; LK_ERR_BAD_ARGUMENT: the line is empty.
 */
int lk__password_read(char *out, size_t size, const char *file, int fd);

#endif
