/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_ORIGIN_H
#define LK_EV_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * What must not pass to a forked child: the knowledge that this is the process
 * that made it, and random bytes drawn in advance. It is a page of its own
 * that the kernel wipes in a child, so that asking costs no system call; where
 * the kernel cannot, the process id is compared.
 */
typedef struct lk_origin {
  bool here; /**< gone in a child */
  pid_t pid; /**< the maker's, if the page is not wiped; else 0 */
  size_t left;
  unsigned char pool[256]; /**< its last `left` bytes are fresh */
} lk_origin;

/** NULL: no memory, or the system has no random bytes. */
lk_origin *lk__origin_new(void);
/** Any thread, and signal handlers. */
bool lk__origin_forked(const lk_origin *o);
void lk__origin_random(lk_origin *o, void *out, size_t len);
void lk__origin_free(lk_origin *o);

#endif
