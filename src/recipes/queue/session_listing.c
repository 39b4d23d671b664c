/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/request_count.h"
#include "recipes/queue/session_listing.h"

/**
 * @file
 * Recovering the own node in a queue whose list is larger than the client
 * accepts (`receive_limit`): getEphemerals lists the nodes of this session
 * alone. Servers before 3.6 do not support it.
 */

static const lk_bytes *const no_names = NULL;

/* The name of the node at `path` if its parent is the directory of the queue.
 * Otherwise `at` of the result is NULL. */
static lk_bytes child_name_in_dir(const lk_contender *ct, lk_bytes path)
{
  const lk_bytes none = {0};
  size_t dir_len = strlen(ct->own.dir);
  const char *at = path.at;

  if (path.len <= dir_len || memcmp(at, ct->own.dir, dir_len) != 0 ||
      at[dir_len] != '/')
    return none;
  const char *name = at + dir_len + 1;
  size_t name_len = path.len - dir_len - 1;
  bool is_deeper = memchr(name, '/', name_len) != NULL;

  return is_deeper ? none : lk_bytes_of(name, name_len);
}

/* Pass the names of the nodes in the directory on as a list of the queue. */
static void contender_take_ephemerals(lk_contender *ct, const lk_bytes *paths,
                                      size_t count)
{
  /* One more, so that the array is not empty. */
  lk_bytes *names = lk__mem_new(&ct->lease->mem, (count + 1) * sizeof *names);
  size_t found = 0;

  if (names == NULL) {
    lk__contender_rules(ct)->listed(ct, LK_ERR_NO_MEMORY, no_names, 0);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    names[found] = child_name_in_dir(ct, paths[i]);
    if (names[found].at != NULL)
      found++;
  }
  /* A copy, since the callback may free the lease. */
  lk_mem mem = ct->lease->mem;

  lk__contender_rules(ct)->listed(ct, 0, names, found);
  lk__mem_free(&mem, names);
}

/* If the server does not support getEphemerals, the error is the one of the
 * list that getEphemerals replaces. */
static int error_of_list(int err)
{
  return err == LK_ERR_UNIMPLEMENTED ? LK_ERR_REPLY_TOO_BIG : err;
}

static void on_ephemerals_listed(lk_client *c, int err, const lk_bytes *paths,
                                 size_t count, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  if (lk__contender_take_reply(ct) && ct->state == LK_CONTENDER_CLEANING_UP) {
    if (err == 0)
      contender_take_ephemerals(ct, paths, count);
    else
      lk__contender_rules(ct)->listed(ct, error_of_list(err), no_names, 0);
  }
  lk__contender_unref(ct);
}

int lk__contender_list_session(lk_contender *ct)
{
  /* The request is for paths with a prefix. While the number is not known, the
   * prefix must not end with the number of an earlier node. */
  if (ct->own.state == LK_OWN_IN_DOUBT)
    ct->own.path[ct->own.path_base_len] = '\0';
  int err = lk_ephemerals(lk__contender_client(ct), ct->own.path, LK_NO_OPTIONS,
                          on_ephemerals_listed, ct);

  return lk__contender_count_request(ct, error_of_list(err));
}
