/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_FORK_CHECK_H
#define LK_NET_FORK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * What must not pass to a forked child: the knowledge that this is the process
 * that made it, and random bytes drawn in advance. It is a page of its own
 * that the kernel wipes in a child, so that asking costs no system call; where
 * the kernel cannot, the process id is compared.
 */
typedef struct lk_fork_check {
  bool here; /**< gone in a child */
  pid_t pid; /**< the maker's, if the page is not wiped; else 0 */
  size_t left;
  unsigned char pool[256]; /**< its last `left` bytes are fresh */
} lk_fork_check;

/** NULL: no memory, or the system has no random bytes. */
lk_fork_check *lk__fork_check_new(void);
/** Any thread, and signal handlers. */
bool lk__fork_check_in_child(const lk_fork_check *o);
void lk__fork_check_random(lk_fork_check *o, void *out, size_t len);
void lk__fork_check_free(lk_fork_check *o);

#endif
