/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CANDIDATE_WAIT_H
#define LK_SYNC_CANDIDATE_WAIT_H

#include <latchkey/sync.h>

/** Complete the waits that are over, and, unless `err` is 0, the others with
    that error. For the thread of the handle. */
void lk__sync_candidate_end_waits(lk_sync_candidate *c, int err);

#endif
