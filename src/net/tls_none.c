/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/transport.h"

#include <string.h>

/* A build without OpenSSL. */

const lk_transport_type *lk_transport_tls(void)
{
  return NULL;
}

int lk_tls_inspect(const lk_transport *t, lk_tls_connection *out, size_t size)
{
  (void)t;
  memset(out, 0, size);
  return LK_ERR_UNIMPLEMENTED;
}

int lk_tls_check(const lk_tls_config *config, char *text, size_t size)
{
  (void)config;
  if (size > 0)
    text[0] = '\0';
  return LK_ERR_UNIMPLEMENTED;
}
