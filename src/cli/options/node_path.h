/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_NODE_PATH_H
#define LK_CLI_OPTIONS_NODE_PATH_H

#include "cli/output/text.h"

/** Whether `path` is valid in a request; the path of a sequential create may
    end with "/". On false, `complaint` gets one line with the broken rule. */
bool cli_path_check(const char *path, bool sequential, cli_text *complaint);

/** Whether `path` is at or below /zookeeper on the servers: `hosts` may end
    with a chroot. */
bool cli_path_is_reserved(const char *hosts, const char *path);

#endif
