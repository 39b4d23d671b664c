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

/* The name of a node in our directory; `at` NULL: it is elsewhere. */
static lk_bytes child_name_in_dir(const lk_contender *ct, lk_bytes path)
{
  size_t dir_len = strlen(ct->own.dir);
  const char *at = path.at;

  if (path.len <= dir_len || memcmp(at, ct->own.dir, dir_len) != 0 ||
      at[dir_len] != '/' ||
      memchr(at + dir_len + 1, '/', path.len - dir_len - 1) != NULL)
    return lk_bytes_of(NULL, 0);
  return lk_bytes_of(at + dir_len + 1, path.len - dir_len - 1);
}

static void contender_take_ephemerals(lk_contender *ct, const lk_bytes *paths,
                                      size_t count)
{
  lk_bytes *names = lk__mem_new(&ct->lease->mem, (count + 1) * sizeof *names);
  size_t found = 0;

  if (names == NULL) {
    lk__contender_rules(ct)->listed(ct, LK_ERR_NO_MEMORY, NULL, 0);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    names[found] = child_name_in_dir(ct, paths[i]);
    found += names[found].at != NULL;
  }
  lk_mem mem = ct->lease->mem;

  lk__contender_rules(ct)->listed(ct, 0, names, found);
  lk__mem_free(&mem, names);
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
      lk__contender_rules(ct)->listed(
          ct, err == LK_ERR_UNIMPLEMENTED ? LK_ERR_TOO_BIG : err, NULL, 0);
  }
  lk__contender_unref(ct);
}

int lk__contender_list_session(lk_contender *ct)
{
  if (ct->own.state == LK_OWN_IN_DOUBT)
    ct->own.path[ct->own.base_len] = '\0';
  int err = lk_ephemerals(lk__contender_client(ct), ct->own.path, NULL,
                          on_ephemerals_listed, ct);

  return lk__contender_count_request(
      ct, err == LK_ERR_UNIMPLEMENTED ? LK_ERR_TOO_BIG : err);
}
