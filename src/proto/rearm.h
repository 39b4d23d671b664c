/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_REARM_H
#define LK_PROTO_REARM_H

#include "base/buf.h"
#include "proto/watch.h"

/**
 * Append the setWatches requests that register all standing watches again, as
 * many as it takes to keep each below 128 KiB of paths (ZOOKEEPER-706) and its
 * frame within `send_limit`; one with a single path is never too long. Gives
 * their number, or -1: no memory.
 */
int lk__rearm_encode(const lk_watches *ws, int64_t relative_zxid,
                     size_t send_limit, lk_buf *out);

#endif
