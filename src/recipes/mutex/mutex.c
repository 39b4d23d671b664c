/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/local/local_acquisition.h"

int lk_lock_new(lk_lock **out, lk_client *client, const char *path,
                const lk_lock_config *config)
{
  lk_lock_config options;
  int err = lk__lock_config_copy(client, &options, config);

  *out = NULL;
  if (err != 0)
    return err;
  lk_lock_config common_options = options;

  /* lk__lock_make() serves all recipes and refuses a local queue, which only a
   * mutex can have. The mutex attaches its local queue below. */
  common_options.local_queue = false;
  err = lk__lock_make(out, client, path, &common_options, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  if (!options.local_queue)
    return 0;
  if (lk__local_acquisition_attach(*out, &options))
    return 0;
  lk_lock_free(*out);
  *out = NULL;
  return LK_ERR_NO_MEMORY;
}
