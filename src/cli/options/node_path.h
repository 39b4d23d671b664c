/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_NODE_PATH_H
#define LK_CLI_OPTIONS_NODE_PATH_H

#include "cli/output/text.h"

/** Whether requests take `path`; a sequential create takes one that ends with
    "/", too. False, with one line in `complaint`: which rule it breaks. */
bool cli_path_check(const char *path, bool sequential, cli_text *complaint);

/** Whether `path` is /zookeeper or below it, by the names that servers use:
    `hosts` may end with a chroot. */
bool cli_path_is_reserved(const char *hosts, const char *path);

#endif
