/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_TWIN_WALK_H
#define LK_TWIN_WALK_H

#include "twin/pair.h"

/** Compare the node and all below it, with all that can be read. Requests have
    the xids after `xid`, which moves on. */
void walk_nodes(pair *p, unsigned conn, int32_t *xid, const char *path);

#endif
