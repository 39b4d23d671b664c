/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_MISSING_CALL_H
#define LK_BASE_MISSING_CALL_H

#include <errno.h>
#include <stdbool.h>

/**
 * Whether this errno of a system call means that the system does not have the
 * call: the kernel lacks it (ENOSYS), or a filter of system calls refuses it
 * (EPERM). For calls that need no privilege only. A fallback serves then; after
 * other errors, such as EMFILE, it would hide the cause.
 */
static inline bool lk__call_is_missing(int error)
{
  return error == ENOSYS || error == EPERM;
}

#endif
