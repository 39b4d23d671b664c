/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_PATH_H
#define LK_PROTO_WIRE_PATH_H

#include <latchkey/types.h>

/**
 * Whether a server would accept `path`. A path must begin with "/", have no
 * component that is empty, "." or "..", and be valid UTF-8 without control
 * characters, surrogates, private-use characters and characters above U+FFEF.
 * A trailing "/" is valid for sequential creates only.
 */
bool lk__path_valid(const char *path, bool sequential);

/**
 * `path` without `chroot`, which is "" or a valid path of `len` bytes. If
 * `path` is the chroot, the result is "/". A path outside of the chroot is
 * returned unchanged: a server can report one (ZOOKEEPER-4565). If path.at is
 * NULL, so is the result's.
 */
lk_bytes lk__path_strip(const char *chroot, size_t len, lk_bytes path);

/**
 * The part of the server path behind `chroot`. It is `path`, but "" if `path`
 * is
 * "/" and there is a chroot: then the server path is the chroot alone. In a
 * sequential create the "/" stays, since the server appends a number to it.
 */
const char *lk__path_rest(const char *chroot, const char *path,
                          bool sequential);

#endif
