/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CALLS_H
#define LK_PROTO_ENGINE_CALLS_H

/**
 * @file
 * Functions for the calls of <latchkey/client.h> that make a request. They
 * check the options, set the fields that all requests have, and queue the
 * request. Each returns 0 or the error with which the call is refused.
 */

#include "base/sized_struct.h"
#include "proto/engine/request_queue.h"

/** Copy a caller's struct, which begins with its size; see base/sized_struct.h.
    If the struct is invalid, log why and return LK_ERR_BAD_ARGUMENT. */
int lk__call_copy_options(const lk_client *c, const lk_sized_struct *what,
                          void *out, const void *from);

/** Copy the caller's options to spec->options; `call` NULL: there are none. An
    option that sets a watch is refused. */
int lk__call_take_options(lk_client *c, lk_call_spec *spec,
                          const lk_call *call);
/** Copy the caller's options for a request that can set a watch. */
int lk__call_take_watch_options(lk_client *c, lk_call_spec *spec,
                                const lk_call *call);

/** Queue `spec`, whose options were taken, with the body `value`, a struct of
    the record `rec`; NULL: the body is empty or consists of operations. If
    spec->chroot is NULL, the client's chroot is used. */
int lk__call_send(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                  const void *value);

/** Queue a request that names the node spec->path and sets no watch. */
int lk__call_on_node(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                     const void *value, const lk_call *call);
/** Queue a request that creates a node with `flags`. */
int lk__call_create(lk_client *c, lk_call_spec *spec, int flags,
                    const lk_record *rec, const void *value,
                    const lk_call *call);

/** Queue a read of one node, which may set a watch. */
int lk__call_read(lk_client *c, lk_call_spec *spec, const lk_call *call);

#endif
