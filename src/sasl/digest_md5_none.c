/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* A build without libgsasl compiles this file instead of digest_md5.c. */

#include <latchkey/sasl.h>

const lk_sasl_mechanism *lk_sasl_digest_md5(void)
{
  return NULL;
}
