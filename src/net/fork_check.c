/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/fork_check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#  define MADV_WIPEONFORK (-1) /* refused, as by an old kernel */
#endif

static bool draw(void *out, size_t len)
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

lk_fork_check *lk__fork_check_new(void)
{
  lk_fork_check *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (o == MAP_FAILED)
    return NULL;
  if (madvise(o, sizeof *o, MADV_WIPEONFORK) != 0)
    o->pid = getpid();
  if (!draw(o->pool, sizeof o->pool)) {
    lk__fork_check_free(o);
    return NULL;
  }
  o->left = sizeof o->pool;
  o->here = true;
  return o;
}

bool lk__fork_check_in_child(const lk_fork_check *o)
{
  return !o->here || (o->pid != 0 && o->pid != getpid());
}

/* getrandom() cannot fail once it has worked, unless somebody forbids it
   later. Then what is left of the pool is stirred: not secret, still unlike
   anybody else's. */
static void stir(lk_fork_check *o)
{
  unsigned long long sum = 0;

  for (size_t i = 0; i < 2 * sizeof o->pool; i++) {
    unsigned char *at = &o->pool[i % sizeof o->pool];

    sum = (sum + *at + i) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
    *at = (unsigned char)(sum >> 40);
  }
}

void lk__fork_check_random(lk_fork_check *o, void *out, size_t len)
{
  unsigned char *at = out;

  if (lk__fork_check_in_child(o))
    o->left = 0;
  while (len > 0) {
    if (o->left == 0) {
      if (!draw(o->pool, sizeof o->pool))
        stir(o);
      o->left = sizeof o->pool;
    }
    size_t part = len < o->left ? len : o->left;

    memcpy(at, o->pool + sizeof o->pool - o->left, part);
    at += part;
    len -= part;
    o->left -= part;
  }
}

void lk__fork_check_free(lk_fork_check *o)
{
  if (o != NULL)
    munmap(o, sizeof *o);
}
