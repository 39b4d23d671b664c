/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_LEADER_ELECTION_H
#define LK_RECIPES_LEADER_ELECTION_H

#include <latchkey/leader.h>

/** Whether the child `name` is a candidate's; `number` gets its sequence
    number. `layout` is valid. */
bool lk__election_has(lk_election_layout layout, lk_bytes name,
                      int64_t *number);
bool lk__election_layout_is_valid(lk_election_layout layout);

#endif
