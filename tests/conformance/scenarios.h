/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_SCENARIOS_H
#define LK_CONFORMANCE_SCENARIOS_H

#include "conformance/fixture.h"

typedef const TTest **scenario;

/* The scenarios of each file; NULL ends each list. */
extern const scenario request_scenarios[];   /* what an acquire costs */
extern const scenario waiting_scenarios[];   /* grants, and waits that end */
extern const scenario fault_scenarios[];     /* breaks, refusals, memory */
extern const scenario loss_scenarios[];      /* lost sessions and nodes */
extern const scenario lifetime_scenarios[];  /* freed handles and clients */
extern const scenario callback_scenarios[];  /* calls in callbacks */
extern const scenario read_only_scenarios[]; /* servers without a quorum */

#endif
