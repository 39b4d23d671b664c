/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_ACCESS_H
#define LK_RECIPES_ACCESS_H

#include <latchkey/types.h>

/** A copy of an access list and its texts in one block of memory, to be given
    back as one; NULL: no memory. */
lk_acls *lk__access_copy(const lk_mem *mem, const lk_acls *from);

#endif
