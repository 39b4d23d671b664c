/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RESOLVER_H
#define LK_NET_RESOLVER_H

#include "base/list.h"
#include "base/mem.h"
#include "net/address.h"

struct ev_loop;

/** Turns names into addresses off the loop. Who asks for a name that is being
    asked for already shares the answer. */
typedef struct lk_resolver lk_resolver;

/**
 * Somebody who waits for an answer. Memory is the asker's; `link` is to be
 * initialised as an empty list first. `list` and `why` are borrowed until
 * `done` returns; port 0. `why` is NULL unless `count` is 0.
 */
typedef struct lk_lookup {
  void (*done)(struct lk_lookup *l, const lk_address *list, size_t count,
               const char *why);
  lk_link link;
} lk_lookup;

/** 0, LK_ERR_NO_MEMORY, LK_ERR_SYSTEM. `mem` is borrowed. Its watchers take
    no reference on the loop. */
int lk__resolver_new(lk_resolver **out, struct ev_loop *loop,
                     const lk_mem *mem);
/** Nobody may wait any more, and not out of lk__resolver_deliver(). Does not
    wait for answers. `forked`: in a child, where nothing may be sent. */
void lk__resolver_free(lk_resolver *r, bool forked);

/** `done` is called once by lk__resolver_deliver(), unless it is cancelled.
    false: no memory, then never. */
bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host);
/** Nothing happens to one that does not wait. */
void lk__lookup_cancel(lk_lookup *l);
/** Hand out what has been answered; to be called before the loop waits. */
void lk__resolver_deliver(lk_resolver *r);

/* ---- between resolve.c and the file that really asks -------------------- */

typedef struct lk_name_service
    lk_name_service; /**< resolve_cares.c or resolve_thread.c */

/** A name that is being asked for. */
typedef struct lk_name_query {
  lk_link link;
  lk_link lookups;
  lk_resolver *resolver;
  lk_address *list;
  size_t count, cap;
  bool starved; /**< no memory for an address */
  char why[160];
  char host[]; /**< NUL-terminated */
} lk_name_query;

int lk__name_service_new(lk_name_service **out, struct ev_loop *loop,
                         const lk_mem *mem);
/** lk__name_query_complete() is called once, by this or later on the loop's
   thread, not after lk__name_service_free(). */
void lk__name_service_query(lk_name_service *n, lk_name_query *q);
/** No query is under way: keep nothing that grows stale. */
void lk__name_service_idle(lk_name_service *n);
void lk__name_service_free(lk_name_service *n, bool forked);

/** An address was found; without memory for it, it is forgotten. */
void lk__name_query_add_address(lk_name_query *q,
                                const struct sockaddr *address);
/** The answer is complete. `trouble`: why there is none, or NULL. */
void lk__name_query_complete(lk_name_query *q, const char *trouble);

#endif
