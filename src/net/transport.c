/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

const lk_transport_type *lk_transport_of(const lk_client *c)
{
  return lk_client_tls(c) == NULL ? lk_transport_tcp() : lk_transport_tls();
}
