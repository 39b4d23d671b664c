/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_MEM_H
#define LK_BASE_MEM_H

#include <latchkey/types.h>

/** The C library's allocator. */
extern const lk_mem lk__mem_libc;

/** Zeroed memory; NULL: there is none. `size` must not be 0, which would
    free. */
void *lk__mem_new(const lk_mem *mem, size_t size);
/** Like realloc(): if this returns NULL, the block at `p` is unchanged. */
void *lk__mem_resize(const lk_mem *mem, void *p, size_t size);
void lk__mem_free(const lk_mem *mem, void *p);
/** Overwrite a secret with zeros. The compiler does not remove this call, as it
    might remove a memset() before free(). */
void lk__mem_wipe(void *at, size_t len);
/** A copy of a C string; NULL: there is no memory. */
char *lk__mem_text(const lk_mem *mem, const char *s);

#endif
