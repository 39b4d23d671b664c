/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_INVARIANTS_H
#define LK_PROTO_ENGINE_INVARIANTS_H

/**
 * @file
 * What is true of a client whenever a callback is invoked, and after each
 * input. Builds with --enable-debug check it and end the process where it is
 * not; others have none of this.
 */

#include <latchkey/client.h>

/** Where the client stands when it is looked at. */
typedef enum lk_moment {
  LK_MOMENT_ANSWER,   /**< listeners are told of a reply, of which the request
                           has left its ring and has not completed */
  LK_MOMENT_CALLBACK, /**< before any other callback */
  LK_MOMENT_REST      /**< the outermost call ends: no callback is running */
} lk_moment;

/** The first invariant that does not hold, as text; or NULL. */
const char *lk__invariants_broken(const lk_client *c, lk_moment moment);

#ifdef LK_DEBUG
/** Print what is broken and abort. Of large clients not every call looks. */
void lk__invariants_check(lk_client *c, lk_moment moment);
#else
static inline void lk__invariants_check(lk_client *c, lk_moment moment)
{
  (void)c;
  (void)moment;
}
#endif

#endif
