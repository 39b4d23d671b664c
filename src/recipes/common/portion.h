/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_PORTION_H
#define LK_RECIPES_COMMON_PORTION_H

#include "base/acl.h"

#include <latchkey/client.h>
#include <string.h>

/**
 * @file
 * A path of n bytes has up to n/2 parents, so requests for all of them have up
 * to n²/4 bytes. Requests that are under way at the same time have about
 * LK_PORTION_BYTES at most, the default limit of a single request.
 */

enum {
  LK_PORTION_BYTES = 1 << 20,
  LK_FIXED_BYTES = 64 /* of a request, at most: what is neither path nor acl */
};

/** How many creates of parents of `path`, with this access list or NULL, may be
    under way at a time; at least 1. */
static inline size_t
lk__portion_of_creates(const lk_client *c, const char *path, const lk_acls *acl)
{
  size_t size = LK_FIXED_BYTES + strlen(lk_client_chroot(c)) + strlen(path) +
                (acl == NULL ? 0 : lk__acls_size(acl));

  return size < LK_PORTION_BYTES ? LK_PORTION_BYTES / size : 1;
}

#endif
