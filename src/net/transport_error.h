/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TRANSPORT_ERROR_H
#define LK_NET_TRANSPORT_ERROR_H

#include <latchkey/client.h>

/** Set `err`, and `why` to `what` with the text of the errno `number`. Returns
    LK_FLOW_FAILED. */
lk_flow lk__transport_fail(lk_transport *t, int err, const char *what,
                           int number);

#endif
