/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CANDIDATE_H
#define LK_SYNC_CANDIDATE_H

#include <latchkey/sync.h>

/** Drop a reference of lk_sync_candidate.refs; the last one frees the
    memory. */
void lk__sync_candidate_unref(lk_sync_candidate *c);

#endif
