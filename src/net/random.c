/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

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

bool lk__random_fill(lk_random_pool *p)
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

void lk__random_take(lk_random_pool *p, void *out, size_t len)
{
  unsigned char *at = out;

  while (len > 0) {
    if (p->left == 0 && !lk__random_fill(p))
      random_mix(p);
    const unsigned char *unused = p->bytes + sizeof p->bytes - p->left;
    size_t taken = len < p->left ? len : p->left;

    memcpy(at, unused, taken);
    at += taken;
    len -= taken;
    p->left -= taken;
  }
}
