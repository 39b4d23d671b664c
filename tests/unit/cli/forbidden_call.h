/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_CLI_FORBIDDEN_CALL_H
#define LK_UNIT_CLI_FORBIDDEN_CALL_H

#include <stdbool.h>

/** Make a system call fail with ENOSYS until this process ends, as on an old
    kernel and in some sandboxes. It does so in child processes, too. `number`:
    SYS_... of <sys/syscall.h>. false: this system has no filters for calls. */
bool forbid_call(unsigned number);

#endif
