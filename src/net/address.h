/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_ADDRESS_H
#define LK_NET_ADDRESS_H

/**
 * @file
 * An address of a server, and the addresses of a host with those that were
 * tried.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/fork_check.h"

/** An IPv4 or IPv6 address with a port; `any.sa_family` says which. */
typedef union lk_address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} lk_address;

/** Room for lk__address_text(). */
#define LK_ADDRESS_TEXT_SIZE 96

/** Read an address such as "127.0.0.1", "::1" or "fe80::1%eth0"; the port is
    set to 0. false: `literal` is no address. */
bool lk__address_parse(lk_address *out, const char *literal);
/** Copy an address with its port; false: `from` is neither IPv4 nor IPv6. */
bool lk__address_copy(lk_address *out, const struct sockaddr *from);
void lk__address_set_port(lk_address *a, uint16_t port);
/** Whether address and port are the same. */
bool lk__address_equal(const lk_address *a, const lk_address *b);
/** Write the address with its port: "127.0.0.1:2181" or "[::1]:2181". */
void lk__address_text(const lk_address *a, char *out, size_t size);

static inline socklen_t lk__address_len(const lk_address *a)
{
  return a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

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
