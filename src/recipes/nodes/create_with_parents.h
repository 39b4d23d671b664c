/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_CREATE_WITH_PARENTS_H
#define LK_RECIPES_NODES_CREATE_WITH_PARENTS_H

#include <latchkey/client.h>

/** Create an empty node and its missing parents, all with these flags, for a
    recipe that needs no Stat: it is sent as create, which all servers know. See
    lk_create_with_parents(). */
int lk__create_directories(lk_client *c, const char *path, const lk_acls *acl,
                           int flags, lk_create_cb done, void *arg);

#endif
