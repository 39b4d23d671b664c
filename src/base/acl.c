/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/types.h>

static const lk_acl everybody = {LK_PERM_ALL, {"world", 5}, {"anyone", 6}};
static const lk_acl creator = {LK_PERM_ALL, {"auth", 4}, {"", 0}};
static const lk_acl readers = {LK_PERM_READ, {"world", 5}, {"anyone", 6}};

const lk_acls lk_acl_open = {&everybody, 1};
const lk_acls lk_acl_creator = {&creator, 1};
const lk_acls lk_acl_read = {&readers, 1};
