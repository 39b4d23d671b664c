/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_ADDRESS_LIST_H
#define LK_NET_ADDRESS_LIST_H

#include "base/mem.h"
#include "net/address.h"
#include "net/fork_check.h"

/** An address of a host. */
typedef struct lk_listed_address {
  lk_address address;
  bool tried; /**< in this pass over the addresses */
} lk_listed_address;

/** A host and its addresses, and which of them a client has tried. */
typedef struct lk_address_list {
  char *host;
  lk_listed_address *list; /**< in random order */
  size_t count;            /**< 0: not resolved yet */
  lk_address last_used;    /**< the address of the last connection; family 0:
                                there was none */
} lk_address_list;

/** Set the host, and drop the addresses if it is another host than before.
    false: no memory. */
bool lk__address_list_set_host(lk_address_list *a, const lk_mem *mem,
                               const char *host);
/**
 * Replace the addresses, in random order, so that clients spread over the
 * servers. Those that were tried in this pass stay marked. `random_source`
 * gives the random bytes. false: no memory, and nothing has changed.
 */
bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random_source);
/** No address was tried. */
void lk__address_list_begin_pass(lk_address_list *a);
/** The address to be tried next, one of `family` if possible. The address of
    the last connection comes last, because that connection has just been lost.
    NULL: all were tried. */
lk_listed_address *lk__address_list_next(lk_address_list *a, int family);
/** The address was not tried to its end. */
void lk__address_list_note_untried(lk_address_list *a,
                                   const lk_address *address);
size_t lk__address_list_count_untried(const lk_address_list *a);
/** One of the addresses at random; `count` must not be 0. */
const lk_address *lk__address_pick(const lk_address *list, size_t count,
                                   lk_fork_check *random_source);
void lk__address_list_free(lk_address_list *a, const lk_mem *mem);

#endif
