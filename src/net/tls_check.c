/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>

#include "base/mem.h"
#include "net/tls_cache.h"

int lk_tls_check(const lk_tls_config *config, char *text, size_t size)
{
  lk_tls_cache cache = {0};
  lk_transport t = {.fd = -1};
  lk_tls_config *copy;
  const char *wrong = NULL; /* what is wrong with `config`; NULL: not known */
  int err = lk__tls_copy(&copy, &lk__mem_libc, config, &wrong);

  if (size > 0)
    snprintf(text, size, "%s", wrong == NULL ? "" : wrong);
  if (err != 0)
    return err;
  if (!lk__tls_cache_load(&cache, &t, copy)) {
    err = t.err;
    if (size > 0)
      snprintf(text, size, "%s", t.why);
  }
  lk__tls_cache_clear(&cache);
  lk__tls_free(&lk__mem_libc, copy);
  return err;
}
