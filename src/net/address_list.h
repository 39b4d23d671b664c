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
  size_t count;    /**< 0: not resolved yet */
  lk_address used; /**< in the last attempt; family 0: none */
} lk_address_list;

/** Set the host; if it changes, the addresses are dropped. false: no memory. */
bool lk__address_list_set_host(lk_address_list *a, const lk_mem *mem,
                               const char *host);
/**
 * Copy the addresses in random order, so that clients spread over them, but
 * with the one used last at the end: its server has just been lost. false: no
 * memory.
 */
bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random);
/** The address of attempt `i`, counted from 0. `count` > 0. */
const lk_address *lk__address_list_use(lk_address_list *a, uint32_t i);
/** One of `count` > 0 addresses at random. */
const lk_address *lk__address_pick(const lk_address *list, size_t count,
                                   lk_fork_check *random);
void lk__address_list_free(lk_address_list *a, const lk_mem *mem);

#endif
