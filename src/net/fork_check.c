/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/fork_check.h"

#include <sys/mman.h>

#define NO_ADVICE (-1) /* every kernel refuses this value */
#ifndef MADV_WIPEONFORK
#  define MADV_WIPEONFORK NO_ADVICE
#endif

/* Ask the kernel to fill the page with zeros in a child. Returns whether it
   will. qemu-user 7.2 accepts every advice and follows few: it does not. */
static bool wipe_on_fork(void *page, size_t len)
{
  return madvise(page, len, NO_ADVICE) != 0 &&
         madvise(page, len, MADV_WIPEONFORK) == 0;
}

lk_fork_check *lk__fork_check_new(void)
{
  lk_fork_check *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (f == MAP_FAILED)
    return NULL;
  if (!wipe_on_fork(f, sizeof *f))
    f->pid = getpid();
  if (!lk__random_fill(&f->random)) {
    lk__fork_check_free(f);
    return NULL;
  }
  f->made_here = true; /* MADV_WIPEONFORK clears this in a child */
  return f;
}

void lk__fork_check_random(lk_fork_check *f, void *out, size_t len)
{
  /* On an old kernel the child has the random bytes of its parent. */
  if (lk__fork_check_in_child(f))
    f->random.left = 0;
  lk__random_take(&f->random, out, len);
}

void lk__fork_check_free(lk_fork_check *f)
{
  if (f != NULL)
    munmap(f, sizeof *f);
}
