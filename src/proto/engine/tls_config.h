/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_TLS_CONFIG_H
#define LK_PROTO_ENGINE_TLS_CONFIG_H

/**
 * @file
 * The client's copy of the options of TLS, and their check.
 */

#include "base/mem.h"

#include <latchkey/tls.h>

#include "base/sized_struct.h"

/** Bytes of the longest server name, as in the DNS. */
enum { LK_TLS_LONGEST_NAME = 255 };

/**
 * Copy a program's options with everything that they point to. `from` NULL
 * gives the defaults. `*wrong` is set to why the options are invalid, which may
 * be in `text`, or to NULL.
 * @return 0, LK_ERR_BAD_ARGUMENT, LK_ERR_NO_MEMORY.
 */
int lk__tls_copy(lk_tls_config **out, const lk_mem *mem,
                 const lk_tls_config *from, const char **wrong,
                 char text[LK_SIZE_TEXT_ROOM]);
/** Wipe and free such a copy, unless it is NULL. */
void lk__tls_free(const lk_mem *mem, lk_tls_config *config);

#endif
