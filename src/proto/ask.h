/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ASK_H
#define LK_PROTO_ASK_H

/**
 * @file
 * What the calls of client.h have in common: their options are looked at, what
 * all requests have is added, and they are queued. Each gives 0 or why it is
 * refused.
 */

#include "proto/engine.h"

/** Whether `call` is one, and asks for a watch only where there can be one. */
int lk__ask_check(const lk_call *call, bool watchable);

/** Queue `ask` with a body; its `chroot` NULL: the client's. */
int lk__ask_send(lk_client *c, lk_ask *ask, const lk_record *rec,
                 const void *value, const lk_call *call);

/** A request that names one node and sets no watch. `sequence`: of a path that
    a number follows. */
int lk__ask_node(lk_client *c, lk_ask *ask, bool sequence, const lk_record *rec,
                 const void *value, const lk_call *call);

/** A read of one node, which may watch. */
int lk__ask_read(lk_client *c, lk_ask *ask, const lk_call *call);

#endif
