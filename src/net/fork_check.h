/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_FORK_CHECK_H
#define LK_NET_FORK_CHECK_H

/**
 * @file
 * Whether this process is a forked child, and random bytes that parent and
 * child do not share.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/** Random bytes that were read from the system in advance. A pool of zeros is
    empty. */
typedef struct lk_random_pool {
  size_t left; /**< how many bytes, at the end of `bytes`, are unused */
  unsigned char bytes[256];
} lk_random_pool;

/**
 * Tells whether the process was forked after lk__fork_check_new(), and keeps
 * random bytes that a child must not use again. The struct has a memory page of
 * its own, which the kernel fills with zeros in a child (MADV_WIPEONFORK, Linux
 * 4.14). The check then needs no system call. Older kernels do not do this;
 * there the process id is compared.
 */
typedef struct lk_fork_check {
  bool made_here; /**< true; the kernel sets it to false in a child */
  pid_t pid;      /**< the process that made it, if the kernel does not fill the
                       page with zeros; otherwise 0 */
  lk_random_pool random;
} lk_fork_check;

/** NULL: no memory, or the system has no random bytes. */
lk_fork_check *lk__fork_check_new(void);
/** Whether this is a forked child. May be called from any thread and from
    signal handlers. */
static inline bool lk__fork_check_in_child(const lk_fork_check *f)
{
  return !f->made_here || (f->pid != 0 && f->pid != getpid());
}
/** Fill `out` with random bytes. Parent and child get different ones. */
void lk__fork_check_random(lk_fork_check *f, void *out, size_t len);
/** NULL is fine. */
void lk__fork_check_free(lk_fork_check *f);

#endif
