/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/driver.h>
#include <latchkey/version.h>

const char *lk_version(void)
{
  return LK_VERSION;
}

unsigned lk_features(void)
{
  unsigned features = 0;

#ifdef LK_WITH_GSASL
  features |= LK_FEATURE_DIGEST_MD5;
#endif
  return features | (lk_transport_tls() == NULL ? 0 : LK_FEATURE_TLS);
}
