/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SERVER_VERSION_H
#define LK_SUPPORT_SERVER_VERSION_H

/**
 * @file
 * What the version of ZooKeeper does with which a test runs: that which the
 * environment variable LATCHKEY_ZOOKEEPER names, or Debian's build of 3.8.0.
 */

#include <stdbool.h>

/** A row of server_differences.def. */
typedef enum server_difference {
#define DIFFERENCE(name, first, issue, servers, latchkey, test) SERVER_##name,
#include "support/server_differences.def"
#undef DIFFERENCE
} server_difference;

/** Whether the servers of this test have the change. */
bool server_has(server_difference d);

#endif
