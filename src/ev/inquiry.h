/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_EV_INQUIRY_H
#define LK_EV_INQUIRY_H

#include "ev/conn.h"

/** See to the client's second wish: to ask a server whether it has a quorum, on
    a connection of its own. */
void lk__inquiry_follow(lk_conn *n);
/** Give up what is under way, and tell nobody. */
void lk__inquiry_end(lk_conn *n);

#endif
