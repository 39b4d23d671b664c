/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_COMPARE_TREES_H
#define LK_DIFFERENTIAL_COMPARE_TREES_H

#include "differential/pair.h"

/** Compare a node and all nodes below it by the replies to getData, getACL and
    getChildren2. The requests have the xids after `xid`, which is advanced. */
void compare_trees(pair *p, unsigned conn, int32_t *xid, const char *path);

#endif
