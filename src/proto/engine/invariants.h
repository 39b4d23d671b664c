/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_INVARIANTS_H
#define LK_PROTO_ENGINE_INVARIANTS_H

/**
 * @file
 * Invariants of a client, checked before each callback and after each input in
 * builds with --enable-debug. A broken invariant aborts the process. Other
 * builds contain no checks.
 *
 * Each kind of callback is invoked in one file, after all fields have changed:
 * that of a request in request_completion.c, of a watch in watch_events.c, of
 * lk_add_auth() in auth.c, of a timer in timers.c, of
 * lk_client_close() in session_end.c, those of listeners in listeners.c, those
 * of a SASL mechanism in sasl.c. The log (log.c) must not call the client.
 */

#include <latchkey/client.h>

/** The point at which a client is checked. */
typedef enum lk_moment {
  LK_MOMENT_ANSWER,   /**< listeners get a reply; its request has left its ring
                           and has not completed */
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
