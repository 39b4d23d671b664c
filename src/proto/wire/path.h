/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_PATH_H
#define LK_PROTO_WIRE_PATH_H

#include <latchkey/types.h>

/**
 * Whether a server would take `path`: absolute, no empty, "." or ".."
 * component, valid UTF-8 without control characters, surrogates, private use
 * and what lies beyond the basic plane. A trailing "/" is fine for sequential
 * creates only.
 */
bool lk__path_valid(const char *path, bool sequential);

/**
 * `path` without `chroot`, which is "" or a valid path of `len` bytes. The
 * chroot itself becomes "/". A path outside it stays as it is
 * (ZOOKEEPER-4565).
 */
lk_bytes lk__path_strip(const char *chroot, size_t len, lk_bytes path);

/**
 * The part of `path` that follows `chroot` in the server path. "/" is the
 * chroot itself, unless a sequential name begins with it.
 */
const char *lk__path_rest(const char *chroot, const char *path,
                          bool sequential);

#endif
