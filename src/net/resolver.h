/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RESOLVER_H
#define LK_NET_RESOLVER_H

#include "base/list.h"
#include "net/address.h"
#include "net/clock.h"
#include "net/fork_check.h"
#include "net/loop.h"
#include "net/resolver_thread.h"

/**
 * Resolves names as every other program does, by getaddrinfo(), without
 * blocking the loop. It remembers the addresses that each name had last.
 *
 * A name is looked up at most once a second, by one query for both families. If
 * that takes LK_LOOKUP_FAMILIES_MS or fails, a query for each family follows,
 * since a name server may reply to the queries for one family only. Both of
 * them wait for the other one, but not longer than
 * LK_LOOKUP_SECOND_FAMILY_MS. Remembered addresses are given out
 * LK_LOOKUP_REMEMBERED_MS after the start, or if the queries fail. The result
 * of a query that ends later is remembered.
 */
typedef struct lk_resolver lk_resolver;

enum {
  LK_LOOKUP_INTERVAL_MS = 1000,
  LK_LOOKUP_FAMILIES_MS = 300,
  LK_LOOKUP_SECOND_FAMILY_MS = 50,
  LK_LOOKUP_REMEMBERED_MS = 250
};

/**
 * A lookup of one name. The caller owns the memory, sets `done`, and
 * initialises `link` as an empty list. `list` and `why` are valid until `done`
 * returns. The addresses have port 0, and there are no duplicates. `why` is the
 * reason if `count` is 0, otherwise NULL.
 *
 * If lk__lookup_waits() is true in `done`, the addresses are remembered ones,
 * and `done` will be called a second time, with the result of the queries.
 */
typedef struct lk_lookup {
  void (*done)(struct lk_lookup *l, const lk_address *list, size_t count,
               const char *why);
  lk_link link;
  bool got_remembered; /**< of the resolver */
} lk_lookup;

/** Returns 0, LK_ERR_NO_MEMORY or LK_ERR_SYSTEM. `clock`, `fork_check` and
    `mem` are borrowed. A resolver does not keep the loop running, and starts no
    thread before the first lookup. In a forked child it takes nothing that was
    sent to its parent. */
int lk__resolver_new(lk_resolver **out, lk_loop *loop, const lk_clock *clock,
                     const lk_fork_check *fork_check, const lk_mem *mem);
/** Free the resolver, without waiting for outstanding queries. Must not be
    called while a lookup waits or lk__resolver_deliver() runs. NULL is fine. */
void lk__resolver_free(lk_resolver *r);

/** Look up `host`. lk__resolver_deliver() calls `done` once or twice, unless
    the lookup is cancelled. false: no memory, and `done` is not called. */
bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host);
/** Cancel a lookup: `done` is not called. Does nothing if it does not wait. */
void lk__lookup_cancel(lk_lookup *l);
/** Whether a query of this kind for `host` has not ended. */
bool lk__resolver_is_asking(const lk_resolver *r, const char *host,
                            lk_lookup_kind kind);
/** Whether `done` will be called (again). */
static inline bool lk__lookup_waits(const lk_lookup *l)
{
  return !lk__list_empty(&l->link);
}
/** Called by resolver_thread.c: the query of a name has ended. */
void lk__resolver_on_query_result(lk_resolver *r,
                                  const lk_lookup_result *result);
/** Call `done` of the lookups that are complete. To be called each time before
    the loop waits. */
void lk__resolver_deliver(lk_resolver *r);

#endif
