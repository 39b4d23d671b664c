/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_COMPARE_TREES_H
#define LK_DIFFERENTIAL_COMPARE_TREES_H

#include "differential/pair.h"

/** Compare the node and all below it, with all that can be read. Requests have
    the xids after `xid`, which moves on. */
void compare_trees(pair *p, unsigned conn, int32_t *xid, const char *path);

#endif
