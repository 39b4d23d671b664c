/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_TIME_PASSES_H
#define LK_DIFFERENTIAL_TIME_PASSES_H

#include "differential/pair.h"

/**
 * What servers do by themselves when time passes: they take empty containers
 * away and end sessions of which nothing is heard. The servers of `p` are in
 * no hurry otherwise: their sweep and their shortest timeout are.
 */
void time_passes_run(pair *p, unsigned servers);

#endif
