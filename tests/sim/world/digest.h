/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_DIGEST_H
#define LK_SIM_WORLD_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/** The hash FNV-1a of no bytes. */
#define SIM_DIGEST UINT64_C(0xcbf29ce484222325)

/** The hash FNV-1a of the bytes of `digest`, followed by these. */
static inline uint64_t sim_digest_add(uint64_t digest, const void *at,
                                      size_t len)
{
  const unsigned char *bytes = at;

  for (size_t i = 0; i < len; i++)
    digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
  return digest;
}

#endif
