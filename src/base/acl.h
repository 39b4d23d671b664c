/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_ACL_H
#define LK_BASE_ACL_H

#include <latchkey/types.h>

/** The size of an access list with its texts in memory; in a request it is
    smaller. */
size_t lk__acls_size(const lk_acls *acls);
/** Copy an access list and its texts into one block of memory, which the caller
    frees with lk__mem_free(). NULL: there is no memory. */
lk_acls *lk__acls_copy(const lk_mem *mem, const lk_acls *from);

#endif
