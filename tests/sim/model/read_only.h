/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_READ_ONLY_H
#define LK_SIM_MODEL_READ_ONLY_H

#include "sim/model/model.h"

/**
 * A read-only server has had no quorum for some time. It answers reads from the
 * transactions that it has applied, for clients that accept a read-only server.
 */

/** The server has had no leader for read_only_after_us. */
void sim_read_only_begin(sim_server *s);
/** The server has found a leader. It closes the connections of the clients that
    it served without one. */
void sim_read_only_end(sim_server *s);
/** A connect request at a read-only server. */
void sim_read_only_connect(sim_conn *c, bool accepts_read_only,
                           int64_t session);
/** A request at a read-only server. */
void sim_read_only_receive(sim_conn *c, int32_t xid, int32_t op,
                           lk_reader *body);
/** Answer "isro" with "rw" or "ro", and close the connection. */
void sim_answer_isro(sim_conn *c);

#endif
