/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_acquisition.h"

int lk_lock_new(lk_lock **out, lk_client *client, const char *path,
                const lk_lock_config *config)
{
  lk_lock_config own;
  int err = lk__lock_config_take(client, &own, config);

  *out = NULL;
  if (err != 0)
    return err;
  bool is_local = own.local_queue;

  own.local_queue = false;
  err = lk__lock_make(out, client, path, &own, LK_MULTILOCK_MUTEX);
  own.local_queue = is_local;
  if (err != 0 || !is_local || lk__local_acquisition_attach(*out, &own))
    return err;
  lk_lock_free(*out);
  *out = NULL;
  return LK_ERR_NO_MEMORY;
}
