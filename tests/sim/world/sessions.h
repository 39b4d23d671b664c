/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_SESSIONS_H
#define LK_SIM_WORLD_SESSIONS_H

#include <latchkey/client.h>

enum { SIM_SESSION_STATES = LK_STATE_CLOSED + 1 };

/** Whether the session state may change from `from` to `to`. The first state is
    CONNECTING. `resumes`: the client resumes a session of an earlier process,
    which it may find expired before it was connected. */
static inline bool sim_session_may_change(int from, int to, bool resumes)
{
  static const unsigned char may[SIM_SESSION_STATES] = {
      [LK_STATE_CONNECTING] = 1 << LK_STATE_CONNECTED |
                              1 << LK_STATE_READ_ONLY | 1 << LK_STATE_CLOSED,
      [LK_STATE_CONNECTED] = 1 << LK_STATE_SUSPENDED | 1 << LK_STATE_CLOSED,
      [LK_STATE_READ_ONLY] = 1 << LK_STATE_SUSPENDED | 1 << LK_STATE_CLOSED,
      [LK_STATE_SUSPENDED] = 1 << LK_STATE_CONNECTED | 1 << LK_STATE_READ_ONLY |
                             1 << LK_STATE_EXPIRED | 1 << LK_STATE_CLOSED,
      [LK_STATE_EXPIRED] = 1 << LK_STATE_CONNECTING | 1 << LK_STATE_CLOSED};

  return (may[from] >> to & 1) != 0 ||
         (resumes && from == LK_STATE_CONNECTING && to == LK_STATE_EXPIRED);
}

#endif
