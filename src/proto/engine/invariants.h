/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_INVARIANTS_H
#define LK_PROTO_ENGINE_INVARIANTS_H

/**
 * @file
 * Invariants of a client, checked before each callback and after each input in
 * builds with --enable-debug. A broken invariant aborts the process. Other
 * builds contain no checks.
 *
 * Each kind of callback is invoked in one place, after all fields have changed:
 * that of a request in requests.c, of a watch in watches.c, of lk_add_auth() in
 * auth.c, of a SASL mechanism in sasl.c, of lk_client_close() in session.c, and
 * those of listeners and timers in client.c. The log must not call the client.
 */

#include <latchkey/client.h>

/** The point at which a client is checked. */
typedef enum lk_moment {
  LK_MOMENT_CALLBACK, /**< before a callback */
  LK_MOMENT_REST      /**< at the end of the outermost call, when no callback is
                           running */
} lk_moment;

/** A text about the first invariant that does not hold; NULL: all hold. */
const char *lk__invariants_broken(const lk_client *c, lk_moment moment);

#ifdef LK_DEBUG
/** If an invariant does not hold, print the text and abort. For a client with
    many requests or watches, only some of the calls check. */
void lk__invariants_check(lk_client *c, lk_moment moment);
#else
static inline void lk__invariants_check(lk_client *c, lk_moment moment)
{
  (void)c;
  (void)moment;
}
#endif

#endif
