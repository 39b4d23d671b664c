/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/leader/candidate.h"
#include "recipes/lock/lock.h"

/* The names of an election's nodes: a layout for mutexes, in which `role`, if
 * it is not NULL, takes the place of the role of a mutex. */
typedef struct election_rules {
  lk_layout layout;
  const lk_role *role;
} election_rules;

static const election_rules elections[] = {
    [LK_ELECTION_LATCH] = {LK_LAYOUT_CURATOR, &lk__role_latch},
    [LK_ELECTION_SELECTOR] = {LK_LAYOUT_CURATOR, NULL},
    [LK_ELECTION_KAZOO] = {LK_LAYOUT_KAZOO, NULL}};

static const election_rules *rules_of_election(lk_election_layout layout)
{
  size_t index = (size_t)layout;

  return index < sizeof elections / sizeof elections[0] ? &elections[index]
                                                        : NULL;
}

/* The options of the lock; those that an election decides are refused.
 * Announcements would change the data, which are the candidate's identity. */
static int election_lock_config(lk_client *client, lk_lock_config *out,
                                const lk_lock_config *config,
                                const election_rules *rules)
{
  int err = lk__lock_config_copy(client, out, config);

  if (err != 0)
    return err;
  if (rules == NULL || out->layout != LK_LAYOUT_CURATOR || out->announce ||
      out->local_queue || out->prefix != NULL)
    return LK_ERR_BAD_ARGUMENT;
  out->layout = rules->layout;
  return 0;
}

int lk_election_new(lk_candidate **out, lk_client *client, const char *path,
                    lk_election_layout layout, const lk_lock_config *lock,
                    const lk_candidate_config *config)
{
  const election_rules *rules = rules_of_election(layout);
  lk_lock_config lock_config;
  lk_lock *l;

  *out = NULL;
  int err = election_lock_config(client, &lock_config, lock, rules);

  if (err == 0)
    err = lk__lock_make(&l, client, path, &lock_config, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  if (rules->role != NULL)
    l->options.contender.role = rules->role;
  err = lk_candidate_new(out, l, config);
  if (err != 0) {
    lk_lock_free(l);
    return err;
  }
  lk__candidate_own_lock(*out);
  return 0;
}
