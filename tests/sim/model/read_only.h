/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_READ_ONLY_H
#define LK_SIM_MODEL_READ_ONLY_H

#include "sim/model/model.h"

/**
 * A server that has had no quorum for a while, and serves reads: what it has
 * committed, to clients that say that this will do and ask for no session.
 */

/** It has looked for a leader for so long. */
void sim_read_only_begin(sim_server *s);
/** It has found one, and drops these clients. */
void sim_read_only_end(sim_server *s);
/** A connect request at such a server. */
void sim_read_only_connect(sim_conn *c, bool accepts_read_only,
                           int64_t session);
/** A request at such a server. */
void sim_read_only_receive(sim_conn *c, int32_t xid, int32_t op,
                           lk_reader *body);
/** The answer to "isro": whether it has a quorum. */
void sim_answer_isro(sim_conn *c);

#endif
