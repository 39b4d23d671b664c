/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_NAME_QUERY_H
#define LK_NET_NAME_QUERY_H

#include "base/list.h"
#include "base/mem.h"
#include "net/address.h"

/** A name that is being resolved. */
typedef struct lk_name_query {
  lk_link link;      /**< in lk_resolver.running or lk_resolver.ended */
  lk_link lookups;   /**< each lk_lookup that waits for the result */
  const lk_mem *mem; /**< borrowed */
  lk_link *ended;    /**< lk_resolver.ended, which a complete query joins */
  lk_address *list;  /**< the addresses found so far, without duplicates */
  size_t count;      /**< of `list` */
  size_t capacity;   /**< addresses that fit into `list` */
  bool no_memory;    /**< an address was left out, for want of memory */
  char why[160];     /**< why no address was found, if `count` is 0 */
  char host[];       /**< NUL-terminated */
} lk_name_query;

/** NULL: no memory. `ended`: the list that the query joins when complete. */
lk_name_query *lk__name_query_new(const lk_mem *mem, lk_link *ended,
                                  const char *host);
/** Free the query. The lookups that wait for its result are never completed. */
void lk__name_query_free(lk_name_query *q);
/** Add an address to the result, or leave it out if there is no memory. */
void lk__name_query_add_address(lk_name_query *q,
                                const struct sockaddr *address);
/** Whether the name has an address without any lookup: it is below "localhost",
    and there is no hosts file that could say otherwise. A name server would be
    asked in vain, and musl waits 5 s for one that does not exist. */
bool lk__name_query_needs_no_lookup(const lk_name_query *q);
/** The result is complete. `why`: the reason of a failure; NULL: the query has
    not failed, but may have found no address. If no address was found for
    "localhost" or "*.localhost", the result is the loopback addresses. */
void lk__name_query_complete(lk_name_query *q, const char *why);

#endif
