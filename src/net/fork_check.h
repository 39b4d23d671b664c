/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_FORK_CHECK_H
#define LK_NET_FORK_CHECK_H

#include <sys/types.h>
#include <unistd.h>

#include "net/random.h"

/**
 * Tells a forked child from the process that made it, and keeps random bytes
 * that a child must not use again. It is a page of its own that the kernel
 * wipes in a child (MADV_WIPEONFORK, Linux 4.14), so that the check costs no
 * system call. If the kernel cannot, the process id is compared.
 */
typedef struct lk_fork_check {
  bool made_here; /**< false in a child, if the page is wiped */
  pid_t pid;      /**< of the maker, if the page is not wiped; else 0 */
  lk_random_pool random;
} lk_fork_check;

/** NULL: no memory, or the system has no random bytes. */
lk_fork_check *lk__fork_check_new(void);
/** From any thread and from signal handlers. */
static inline bool lk__fork_check_in_child(const lk_fork_check *f)
{
  return !f->made_here || (f->pid != 0 && f->pid != getpid());
}
/** Random bytes, which a child does not share with its parent. */
void lk__fork_check_random(lk_fork_check *f, void *out, size_t len);
/** NULL is fine. */
void lk__fork_check_free(lk_fork_check *f);

#endif
