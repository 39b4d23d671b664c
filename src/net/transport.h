/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TRANSPORT_H
#define LK_NET_TRANSPORT_H

#include <latchkey/client.h>

/** Set `t->err` and `t->sys_errno`, and `t->why` to "what: text of sys_errno".
    Returns LK_FLOW_FAILED. */
lk_flow lk__transport_fail(lk_transport *t, int err, const char *what,
                           int sys_errno);

/** Copy what the program gave to open(). Returns LK_FLOW_DONE, or
    LK_FLOW_FAILED with the error in `t`. */
lk_flow lk__transport_copy_endpoint(lk_transport *t, lk_endpoint *out,
                                    const lk_endpoint *from);

#endif
