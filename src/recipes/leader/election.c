/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/leader/candidate.h"
#include "recipes/lock/lock.h"

int lk_election_new(lk_candidate **out, lk_client *client, const char *path,
                    lk_layout layout, const lk_lock_config *lock,
                    const lk_candidate_config *config)
{
  lk_lock_config options;
  lk_lock *l;

  *out = NULL;
  int err = lk__lock_config_copy(client, &options, lock);

  if (err != 0)
    return err;
  if (options.announce || options.local_queue)
    return LK_ERR_BAD_ARGUMENT;
  options.layout = layout;
  err = lk__lock_make(&l, client, path, &options, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  err = lk_candidate_new(out, l, config);
  if (err != 0) {
    lk_lock_free(l);
    return err;
  }
  lk__candidate_own_lock(*out);
  return 0;
}
