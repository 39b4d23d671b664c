/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RESOLVER_H
#define LK_NET_RESOLVER_H

#include "base/list.h"
#include "net/address.h"
#include "net/fork_check.h"
#include "net/loop.h"

/** Resolves names without blocking the loop. Lookups of the same name at the
    same time share one query. */
typedef struct lk_resolver lk_resolver;

/**
 * A lookup of one name. The caller owns the memory, sets `done`, and
 * initialises `link` as an empty list. `list` and `why` are valid until `done`
 * returns. The addresses have port 0. `why` is the reason if `count` is 0,
 * otherwise NULL.
 */
typedef struct lk_lookup {
  void (*done)(struct lk_lookup *l, const lk_address *list, size_t count,
               const char *why);
  lk_link link;
} lk_lookup;

/** Returns 0, LK_ERR_NO_MEMORY or LK_ERR_SYSTEM. `fork_check` and `mem` are
    borrowed. A resolver does not keep the loop running. In a forked child it
    takes nothing that was sent to its parent. */
int lk__resolver_new(lk_resolver **out, lk_loop *loop,
                     const lk_fork_check *fork_check, const lk_mem *mem);
/** Free the resolver, without waiting for outstanding queries. Must not be
    called while a lookup waits or lk__resolver_deliver() runs. `forked`: the
    process is a forked child, which must send nothing. NULL is fine. */
void lk__resolver_free(lk_resolver *r, bool forked);

/** Look up `host`. lk__resolver_deliver() calls `done` once, unless the lookup
    is cancelled. false: no memory, and `done` is not called. */
bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host);
/** Cancel a lookup: `done` is not called. Does nothing if it does not wait. */
void lk__lookup_cancel(lk_lookup *l);
/** Call `done` of the lookups whose query has ended. To be called each time
    before the loop waits. */
void lk__resolver_deliver(lk_resolver *r);

#endif
