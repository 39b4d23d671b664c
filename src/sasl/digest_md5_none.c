/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* In place of digest_md5.c where there is no libgsasl. */

#include <latchkey/sasl.h>

const lk_sasl_mechanism *lk_sasl_digest_md5(void)
{
  return NULL;
}
