/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_TIME_PASSES_H
#define LK_DIFFERENTIAL_TIME_PASSES_H

#include "differential/pair.h"

/**
 * What servers do when time passes: delete empty containers and TTL nodes, and
 * expire sessions. The servers of `p` must have a short interval and a short
 * minimum timeout.
 */
void time_passes_run(pair *p, unsigned servers);

#endif
