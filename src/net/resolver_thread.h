/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_RESOLVER_THREAD_H
#define LK_NET_RESOLVER_THREAD_H

#include "net/fork_check.h"
#include "net/loop.h"

struct addrinfo;

/**
 * Calls getaddrinfo() on threads, at most LK_LOOKUP_THREADS at a time; further
 * queries wait for one of them. A thread that never returns, since a module of
 * the C library's name service switch hangs, costs its stack. It outlives this
 * object.
 */
typedef struct lk_lookup_threads lk_lookup_threads;

/** The kinds of queries. */
typedef enum lk_lookup_kind {
  LK_LOOKUP_ANY,  /**< as other programs ask: both families */
  LK_LOOKUP_IPV4, /**< IPv4 addresses alone */
  LK_LOOKUP_IPV6,
  LK_LOOKUP_KINDS
} lk_lookup_kind;

/** If a name server drops the queries of one family, two kinds of queries hang,
    and have to leave threads for the third one. */
enum { LK_LOOKUP_THREADS = 16, LK_LOOKUP_THREADS_OF_A_KIND = 6 };

struct lk_resolver;

/** The result of a query, for lk__resolver_on_query_result(). The pointers are
    borrowed during that call. */
typedef struct lk_lookup_result {
  void *name; /**< as given to lk__lookup_threads_query() */
  lk_lookup_kind kind;
  const struct addrinfo *found; /**< NULL: no address */
  const char *why;              /**< the reason, if `found` is NULL */
  bool temporary;               /**< the name may exist */
} lk_lookup_result;

/** Make the threads of `resolver`, which gets the results. Returns 0,
    LK_ERR_NO_MEMORY or LK_ERR_SYSTEM. No thread is started yet, and the loop is
    not kept running. `fork_check` and `mem` are borrowed. */
int lk__lookup_threads_new(lk_lookup_threads **out, lk_loop *loop,
                           const lk_fork_check *fork_check, const lk_mem *mem,
                           struct lk_resolver *resolver);
/** Look up the addresses of `host`. lk__resolver_on_query_result() is called
    once, on the loop's thread, and not before this returns. false: no memory or
    no thread; it is not called. */
bool lk__lookup_threads_query(lk_lookup_threads *t, const char *host,
                              lk_lookup_kind kind, void *name);
/** Whether more than half of the threads wait for a name server. */
bool lk__lookup_threads_are_busy(const lk_lookup_threads *t);
/** Free it without waiting for queries. `forked`: the process is a forked
    child. NULL is fine. */
void lk__lookup_threads_free(lk_lookup_threads *t, bool forked);

#endif
