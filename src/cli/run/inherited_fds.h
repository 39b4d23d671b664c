/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_INHERITED_FDS_H
#define LK_CLI_RUN_INHERITED_FDS_H

#include <stddef.h>

/** Closes all descriptors but those in `keep`, which may contain -1. The
    descriptors 0, 1 and 2 become /dev/null. */
void cli_inherited_fds_close(const int *keep, size_t count);

#endif
