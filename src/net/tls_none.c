/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/transport.h"

/* A build without OpenSSL. */

const lk_transport_type *lk_transport_tls(void)
{
  return NULL;
}

int lk_tls_check(const lk_tls_config *config, char *text, size_t size)
{
  (void)config;
  if (size > 0)
    text[0] = '\0';
  return LK_ERR_UNIMPLEMENTED;
}
