/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_ADDRESS_H
#define LK_NET_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

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

#endif
