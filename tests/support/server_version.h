/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SERVER_VERSION_H
#define LK_SUPPORT_SERVER_VERSION_H

/** @file What versions of ZooKeeper do. */

#include <stdbool.h>
#include <stdint.h>

/** A row of server_differences.def. */
typedef enum server_difference {
#define DIFFERENCE(name, first, issue, servers, latchkey, test) SERVER_##name,
#include "support/server_differences.def"
#undef DIFFERENCE
  SERVER_DIFFERENCES
} server_difference;

/** Set `has[d]` to whether this version has the change; `version` is as in
    "3.9.5"; NULL, "" or "debian": Debian's build of 3.8.0. */
void server_changes_of(const char *version, bool has[SERVER_DIFFERENCES]);
/** The version with which this test runs, from LATCHKEY_ZOOKEEPER; NULL:
    Debian's. */
const char *server_tested_version(void);
/** Whether servers with these changes have the request, if any change brought
    it; else true. */
bool server_changes_have_opcode(const bool has[SERVER_DIFFERENCES], int32_t op);

/** Whether the version with which this test runs has the change, or the
    request. */
bool server_has(server_difference d);
bool server_has_opcode(int32_t op);

#endif
