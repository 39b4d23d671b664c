/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/leader/candidate.h"
#include "recipes/leader/election.h"
#include "recipes/lock/lock.h"

/* The names of an election's nodes. */
typedef struct election_rules {
  lk_layout layout; /* with the directories and the unique part of names */
  const lk_role *role;
} election_rules;

static const election_rules elections[] = {
    [LK_ELECTION_LATCH] = {LK_LAYOUT_CURATOR, &lk__role_latch},
    [LK_ELECTION_SELECTOR] = {LK_LAYOUT_CURATOR, &lk__role_mutex},
    [LK_ELECTION_KAZOO] = {LK_LAYOUT_KAZOO, &lk__role_kazoo_write}};

bool lk__election_layout_is_valid(lk_election_layout layout)
{
  return (size_t)layout < sizeof elections / sizeof elections[0];
}

bool lk__election_has(lk_election_layout layout, lk_bytes name, int64_t *number)
{
  const lk_role *role = elections[layout].role;
  lk_name n;

  if (!lk__name_parse(role->format, name, &n) || n.kind != role->kind)
    return false;
  *number = n.number;
  return true;
}

/* The options of the lock; those that an election decides are refused.
 * Announcements would change the data, which are the candidate's identity. */
static int election_lock_config(lk_client *client, lk_lock_config *out,
                                const lk_lock_config *config, lk_layout layout)
{
  int err = lk__lock_config_copy(client, out, config);

  if (err != 0)
    return err;
  if (out->layout != LK_LAYOUT_CURATOR || out->announce || out->local_queue ||
      out->prefix != NULL)
    return LK_ERR_BAD_ARGUMENT;
  out->layout = layout;
  return 0;
}

int lk_election_new(lk_candidate **out, lk_client *client, const char *path,
                    lk_election_layout layout, const lk_lock_config *lock,
                    const lk_candidate_config *config)
{
  lk_lock_config lock_config;
  lk_lock *l;

  *out = NULL;
  if (!lk__election_layout_is_valid(layout))
    return LK_ERR_BAD_ARGUMENT;
  const election_rules *rules = &elections[layout];
  int err = election_lock_config(client, &lock_config, lock, rules->layout);

  if (err == 0)
    err = lk__lock_make(&l, client, path, &lock_config, LK_MULTILOCK_MUTEX);
  if (err != 0)
    return err;
  l->options.contender.role = rules->role;
  err = lk_candidate_new(out, l, config);
  if (err != 0) {
    lk_lock_free(l);
    return err;
  }
  lk__candidate_own_lock(*out);
  return 0;
}
