/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_ADDRESS_LIST_H
#define LK_NET_ADDRESS_LIST_H

#include "base/mem.h"
#include "net/address.h"
#include "net/fork_check.h"

/** A host and its addresses, in the order in which a client tries them. */
typedef struct lk_address_list {
  char *host;
  lk_address *list;
  size_t count;         /**< 0: not resolved yet */
  lk_address last_used; /**< the address of the last connection attempt; family
                             0: there was none */
} lk_address_list;

/** Set the host, and drop the addresses if it is another host than before.
    false: no memory. */
bool lk__address_list_set_host(lk_address_list *a, const lk_mem *mem,
                               const char *host);
/**
 * Copy the addresses in random order, so that clients spread over the servers.
 * The address that was used last comes to the end, because the connection to
 * its server has just been lost. `random_source` gives the random bytes. false:
 * no memory.
 */
bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random_source);
/** The address for a connection attempt to the host. `attempt` counts from 0
    and may exceed the number of addresses. The list must not be empty. */
const lk_address *lk__address_list_use(lk_address_list *a, uint32_t attempt);
/** One of the addresses at random; `count` must not be 0. */
const lk_address *lk__address_pick(const lk_address *list, size_t count,
                                   lk_fork_check *random_source);
void lk__address_list_free(lk_address_list *a, const lk_mem *mem);

#endif
