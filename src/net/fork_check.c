/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/fork_check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* ---- random bytes -------------------------------------------------------- */

static bool random_read(void *out, size_t len)
{
  unsigned char *at = out;

  while (len > 0) {
    ssize_t got = getrandom(at, len, 0);

    if (got < 0 && errno != EINTR)
      return false;
    if (got > 0) {
      at += got;
      len -= (size_t)got;
    }
  }
  return true;
}

/* Fill the pool with new bytes; false: the system has none. */
static bool random_fill(lk_random_pool *p)
{
  if (!random_read(p->bytes, sizeof p->bytes))
    return false;
  p->left = sizeof p->bytes;
  return true;
}

/* Make new bytes of the old ones. This is needed only if getrandom() fails
   after it has worked, as when the program forbids the system call by a filter
   (seccomp). The new bytes can be guessed, but differ from those of other
   processes. The multiplier is 2^64 divided by the golden ratio, as in
   Fibonacci hashing. */
static void random_mix(lk_random_pool *p)
{
  unsigned long long sum = 0;

  /* Each byte is mixed twice, so that the first ones depend on the last. */
  for (size_t i = 0; i < 2 * sizeof p->bytes; i++) {
    unsigned char *at = &p->bytes[i % sizeof p->bytes];

    sum = (sum + *at + i) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
    *at = (unsigned char)(sum >> 40);
  }
  p->left = sizeof p->bytes;
}

/* Move `len` bytes from the pool to `out`, and refill an empty pool. */
static void random_take(lk_random_pool *p, void *out, size_t len)
{
  unsigned char *at = out;

  while (len > 0) {
    if (p->left == 0 && !random_fill(p))
      random_mix(p);
    const unsigned char *unused = p->bytes + sizeof p->bytes - p->left;
    size_t taken = len < p->left ? len : p->left;

    memcpy(at, unused, taken);
    at += taken;
    len -= taken;
    p->left -= taken;
  }
}

/* ---- the check ----------------------------------------------------------- */

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
  if (!random_fill(&f->random)) {
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
  random_take(&f->random, out, len);
}

void lk__fork_check_free(lk_fork_check *f)
{
  if (f != NULL)
    munmap(f, sizeof *f);
}
