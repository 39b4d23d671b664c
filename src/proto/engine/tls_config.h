/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_TLS_CONFIG_H
#define LK_PROTO_ENGINE_TLS_CONFIG_H

#include "base/mem.h"

#include <latchkey/tls.h>

/** Bytes of a server's name; those of the DNS are no longer. */
enum { LK_TLS_LONGEST_NAME = 255 };

/** NULL, or what is wrong with these options: a line for the log. */
const char *lk__tls_complaint(const lk_tls_config *config);

/**
 * Copy a program's options with all that they point to; NULL: defaults.
 * `wrong`: as lk__tls_complaint(), or that the size is not set.
 * @return 0, LK_ERR_BAD_ARGUMENT, LK_ERR_NO_MEMORY.
 */
int lk__tls_copy(lk_tls_config **out, const lk_mem *mem,
                 const lk_tls_config *from, const char **wrong);
/** Wipe and free such a copy. NULL is fine. */
void lk__tls_free(const lk_mem *mem, lk_tls_config *config);

#endif
