/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_SCENARIOS_H
#define LK_CONFORMANCE_SCENARIOS_H

#include "conformance/fixture.h"

typedef const TTest **scenario;

/* The scenarios of each file, up to NULL. */
extern const scenario request_scenarios[];  /* what an acquire costs */
extern const scenario waiting_scenarios[];  /* grants, and waits that end */
extern const scenario fault_scenarios[];    /* breaks, refusals, memory */
extern const scenario loss_scenarios[];     /* sessions and nodes that go */
extern const scenario lifetime_scenarios[]; /* handles and clients that go */

#endif
