/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_MEM_H
#define LK_BASE_MEM_H

#include <latchkey/types.h>

/** The C library's allocator. */
extern const lk_mem lk__mem_libc;

/** Zeroed memory, or NULL; `size` > 0. */
void *lk__mem_new(const lk_mem *mem, size_t size);
/** As realloc; `p` stays whole when this gives NULL. */
void *lk__mem_resize(const lk_mem *mem, void *p, size_t size);
void lk__mem_free(const lk_mem *mem, void *p);
/** Overwrite a secret with zeros, which the compiler must not leave out. */
void lk__mem_wipe(void *at, size_t len);
/** A copy of a C string, or NULL. */
char *lk__mem_text(const lk_mem *mem, const char *s);

#endif
