/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TRANSPORT_H
#define LK_NET_TRANSPORT_H

#include <latchkey/client.h>

/** Set `t->err` and `t->sys_errno`, and `t->why` to "what: text of sys_errno".
    Returns LK_FLOW_FAILED. */
lk_flow lk__transport_fail(lk_transport *t, int err, const char *what,
                           int sys_errno);

#endif
