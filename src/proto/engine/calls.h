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
#include "proto/engine/requests.h"

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

#endif
