/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CALLS_H
#define LK_PROTO_ENGINE_CALLS_H

/**
 * @file
 * Functions that all calls of client.h use: they check the options, add the
 * fields that all requests have, and queue the request. Each returns 0 or the
 * error with which the call is refused.
 */

#include "base/sized_struct.h"
#include "proto/engine/request_queue.h"

/** Copy a caller's struct, which begins with its size; see base/sized_struct.h.
    LK_ERR_BAD_ARGUMENT: the log says why. */
int lk__call_copy_options(const lk_client *c, const lk_sized_struct *what,
                          void *out, const void *from);

/** Copy the caller's options to `own`, to which `spec` then refers; `call`
    NULL: there are none, and `own` is left as it is. A watch among them is
    refused unless `watchable`. */
int lk__call_take_options(lk_client *c, lk_call_spec *spec, lk_call *own,
                          const lk_call *call, bool watchable);

/** Queue `spec`, which has its options, with a body; its `chroot` NULL: the
    client's. */
int lk__call_send(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                  const void *value);

/** A request that names one node and sets no watch. `sequence`: of a path that
    a number follows. */
int lk__call_on_node(lk_client *c, lk_call_spec *spec, bool sequence,
                     const lk_record *rec, const void *value,
                     const lk_call *call);

/** A read of one node, which may watch. */
int lk__call_read(lk_client *c, lk_call_spec *spec, const lk_call *call);

#endif
