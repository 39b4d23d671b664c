/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_NAME_QUERY_H
#define LK_NET_NAME_QUERY_H

#include "base/list.h"
#include "base/mem.h"
#include "net/address.h"

/** A name that is being resolved. */
typedef struct lk_name_query {
  lk_link link;      /**< in a list of the resolver: running or ended */
  lk_link lookups;   /**< that wait for it */
  const lk_mem *mem; /**< borrowed */
  lk_link *ended;    /**< the list of the resolver that it joins at its end */
  lk_address *list;
  size_t count, cap;
  bool no_memory; /**< for an address */
  char why[160];
  char host[]; /**< NUL-terminated */
} lk_name_query;

/** NULL: no memory. `ended`: the list that it is put on when it is complete. */
lk_name_query *lk__name_query_new(const lk_mem *mem, lk_link *ended,
                                  const char *host);
/** The lookups that wait for it never complete. */
void lk__name_query_free(lk_name_query *q);
/** Add an address to the result; without memory for it, it is left out. */
void lk__name_query_add_address(lk_name_query *q,
                                const struct sockaddr *address);
/** The result is complete. `why`: why there is none, or NULL. */
void lk__name_query_complete(lk_name_query *q, const char *why);

#endif
