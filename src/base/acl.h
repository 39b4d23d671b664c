/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_ACL_H
#define LK_BASE_ACL_H

#include <latchkey/types.h>

/** A copy of an access list and its texts in one block of memory, to be given
    back as one; NULL: no memory. */
lk_acls *lk__acls_copy(const lk_mem *mem, const lk_acls *from);

#endif
