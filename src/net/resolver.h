/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RESOLVER_H
#define LK_NET_RESOLVER_H

#include "base/list.h"
#include "net/address.h"
#include "net/loop.h"

/** Resolves names without blocking the loop. Lookups of the same name at the
    same time share one query. */
typedef struct lk_resolver lk_resolver;

/**
 * A lookup. Its memory is the caller's; `link` is to be initialised as an empty
 * list first. `list` (port 0) and `why` are borrowed until `done` returns.
 * `why` is NULL unless `count` is 0.
 */
typedef struct lk_lookup {
  void (*done)(struct lk_lookup *l, const lk_address *list, size_t count,
               const char *why);
  lk_link link;
} lk_lookup;

/** 0, LK_ERR_NO_MEMORY, LK_ERR_SYSTEM. `mem` is borrowed. Does not keep the
    loop running. */
int lk__resolver_new(lk_resolver **out, lk_loop *loop, const lk_mem *mem);
/** Not while a lookup waits or lk__resolver_deliver() runs. Does not wait for
    outstanding queries. `forked`: in a child, which must send nothing.
    NULL is fine. */
void lk__resolver_free(lk_resolver *r, bool forked);

/** `done` is called once by lk__resolver_deliver(), unless the lookup is
    cancelled. false: no memory, then never. */
bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host);
/** `done` is not called. Does nothing to a lookup that does not wait. */
void lk__lookup_cancel(lk_lookup *l);
/** Complete lookups whose query has ended; to be called before the loop waits.
 */
void lk__resolver_deliver(lk_resolver *r);

#endif
