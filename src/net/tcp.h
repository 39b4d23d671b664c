/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_NET_TCP_H
#define LK_NET_TCP_H

#include "net/address.h"
#include "net/transport.h"

/** The object of lk_transport_tcp(). */
typedef struct lk_tcp {
  lk_transport base;
  lk_address to; /**< the server */
} lk_tcp;

#endif
