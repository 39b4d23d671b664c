/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_PATH_H
#define LK_PROTO_WIRE_PATH_H

#include <latchkey/types.h>

#include "jute/record.h"

/** What the path of a request names. */
typedef enum lk_path_use {
  LK_PATH_OF_NODE,
  LK_PATH_BEFORE_NUMBER /**< in a sequential create: the server appends a
                             number to the path */
} lk_path_use;

/**
 * Whether a server would accept `path`. A path must begin with "/", have no
 * component that is empty, "." or "..", and be valid UTF-8 without control
 * characters, surrogates, private-use characters and characters above U+FFEF.
 * A "/", "." or ".." at the end is valid with LK_PATH_BEFORE_NUMBER only.
 */
bool lk__path_valid(const char *path, lk_path_use use);

/**
 * `path` without `chroot`, which is "" or a valid path of `len` bytes. If
 * `path` is the chroot, the result is "/". A path outside of the chroot is
 * returned unchanged: a server can report one (ZOOKEEPER-4565). If path.at is
 * NULL, so is the result's.
 */
lk_bytes lk__path_strip(const char *chroot, size_t len, lk_bytes path);

/**
 * The part of the server path behind `chroot`, which is `path` with one
 * exception. If there is a chroot, the node "/" is the chroot itself, and the
 * part behind it is "".
 */
const char *lk__path_rest(const char *chroot, const char *path,
                          lk_path_use use);

/**
 * Encode a request whose first field is its path. The path is written as
 * `chroot` (which may be "") followed by `path`; the path in `value` is
 * ignored.
 */
void lk__path_encode(const lk_record *rec, const void *value,
                     const char *chroot, const char *path, lk_writer *out);

#endif
