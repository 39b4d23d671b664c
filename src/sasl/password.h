/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SASL_PASSWORD_H
#define LK_SASL_PASSWORD_H

#include <stddef.h>

/**
 * Read the first line of `file`, or with `file` NULL of the descriptor `fd`,
 * without its end: at most `size` bytes into `out`, which is wiped where it
 * fails. No byte behind the line is read from a descriptor.
 *
 * @return its length; LK_ERR_SYSTEM (errno says why); LK_ERR_TOO_BIG;
 *         LK_ERR_BAD_ARGUMENT: the line is empty.
 */
int lk__password_read(char *out, size_t size, const char *file, int fd);

#endif
