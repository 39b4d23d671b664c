/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

/* ---- paths ------------------------------------------------------------- */

static const char *write_child_path(lk_contender *ct, char **at, lk_bytes name)
{
  size_t dir_len = strlen(ct->own.dir);
  char *path = *at;

  memcpy(path, ct->own.dir, dir_len);
  path[dir_len] = '/';
  memcpy(path + dir_len + 1, name.at, name.len);
  path[dir_len + 1 + name.len] = '\0';
  *at += dir_len + name.len + 2;
  return path;
}

/* Names are kept only where they will be probed: of a long queue, pred. */
bool lk__predecessors_set(lk_contender *ct, const lk_queue_position *p)
{
  lk_predecessors *a = &ct->predecessors;
  size_t kept = p->ahead > LK_KEPT_PREDECESSORS ? 1 : p->near_count;
  size_t room = strlen(ct->own.dir) + 2;
  size_t size = room + p->head.name.len;

  for (size_t i = 0; i < kept; i++)
    size += room + p->near[i].name.len;
  if (p->ahead > 0 && size > a->cap) {
    char *block = ct->lease->mem.resize(ct->lease->mem.arg, a->block, size);

    if (block == NULL)
      return false;
    a->block = block;
    a->cap = size;
  }
  char *at = a->block;

  a->count = p->ahead;
  a->kept = kept;
  a->writ_ahead = p->writ_ahead;
  a->in_range = p->in_range;
  a->connection = lk_client_connection(lk__contender_client(ct));
  for (size_t i = 0; i < kept; i++)
    a->path[i] = write_child_path(ct, &at, p->near[i].name);
  a->head = kept > 0 ? write_child_path(ct, &at, p->head.name) : NULL;
  return true;
}

void lk__predecessors_remove(lk_predecessors *a, size_t i)
{
  a->count--;
  a->kept--;
  for (; i < a->kept; i++)
    a->path[i] = a->path[i + 1];
  if (a->count <= LK_MAX_PREDECESSOR_READS && a->kept > 0)
    a->head = a->path[a->kept - 1];
}

void lk__predecessors_keep_direct(lk_predecessors *a)
{
  a->count = 1;
  a->kept = 1;
  a->head = a->path[0];
}

/* ---- a list came ------------------------------------------------------- */

static void contender_warn_counter(lk_contender *ct, int64_t suffix)
{
  lk_notice notice = {.type = LK_NOTICE_COUNTER_NEAR_END};

  if (suffix >= LK_SUFFIX_WARN)
    lk__contender_notify(ct, &notice);
}

static void contender_notify_mixed_queue(lk_contender *ct, lk_bytes name)
{
  size_t size = strlen(ct->own.dir) + 2 + name.len;
  lk_notice notice = {.type = LK_NOTICE_MIXED_QUEUE};
  char *path = lk__take(&ct->lease->mem, size);
  char *at = path;

  if (path == NULL)
    return; /* the next list shows it again */
  notice.node = write_child_path(ct, &at, name);
  lk__contender_notify(ct, &notice);
  lk__give(&ct->lease->mem, path);
}

/* Lists grow with the queue, and a Java client refuses those of 17,000. */
static void contender_warn_long_queue(lk_contender *ct, size_t ahead)
{
  lk_session_lease *k = ct->lease;

  if (ahead < LK_LONG_QUEUE || k->warned_length)
    return;
  k->warned_length = true;
  lk_client_log(k->client, LK_LOG_WARNING, LK_ERR_TOO_MANY,
                "ten thousand contenders and more in one queue: think of "
                "max_queue, or of fewer contenders");
}

/* Why one with `ahead` before it is turned away, or 0. */
static int contender_refusal(const lk_contender *ct, size_t ahead)
{
  if (ahead > 0 && ct->config->once)
    return LK_ERR_BUSY;
  if (ct->config->max_queue > 0 && ahead > ct->config->max_queue)
    return LK_ERR_QUEUE_FULL;
  return 0;
}

void lk__contender_take_first_list(lk_contender *ct, const lk_bytes *names,
                                   size_t count)
{
  int err =
      contender_refusal(ct, lk__names_count_excluding(ct->role, names, count));

  ct->pause.count = 0;
  if (err != 0)
    lk__contender_fail(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_START);
}

static void contender_take_position(lk_contender *ct,
                                    const lk_queue_position *p)
{
  int err = contender_refusal(ct, p->ahead);

  if (p->ahead == 0) {
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  } else if (err != 0) {
    lk__contender_fail(ct, err);
  } else {
    lk__contender_step(ct, LK_CONTENDER_ON_PREDECESSORS);
    lk__contender_notify_position(ct);
  }
}

/* A permit: which nodes there are does not matter, only how many. */
static void permit_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  const int32_t *limit = ct->config->limit;
  size_t most = limit == NULL ? SIZE_MAX : *limit < 0 ? 0 : (size_t)*limit;
  lk_contender_state state = ct->state;
  lk_queue_position p;

  lk__queue_position_of_permit(
      &p, ct->role, lk_text(lk__contender_own_name(ct)), names, count, most);
  ct->pause.count = 0;
  ct->wait.limit_changed = false;
  ct->wait.listed_zxid = ct->lease->evidence->seen_zxid;
  ct->predecessors.count = p.ahead;
  ct->predecessors.kept = 0;
  ct->predecessors.head = NULL;
  if (!p.found)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (p.stranger.at != NULL)
    contender_notify_mixed_queue(ct, p.stranger);
  if (p.found && ct->state == state)
    contender_take_position(ct, &p);
}

void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  if (ct->role->counts) {
    permit_take_list(ct, names, count);
    return;
  }
  int64_t *scratch = lk__lease_scratch(ct->lease, count);
  lk_contender_state state = ct->state;
  lk_queue_position p;

  if (scratch == NULL) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
    return;
  }
  lk__queue_position_find(&p, ct->role, lk_text(lk__contender_own_name(ct)),
                          names, count, scratch);
  ct->pause.count = 0;
  if (!p.found) {
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (p.unsafe) {
    lk__contender_fail(ct, LK_ERR_SEQ_UNSAFE);
  } else if (!lk__predecessors_set(ct, &p)) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
  } else {
    contender_warn_counter(ct, p.suffix);
    contender_warn_long_queue(ct, p.ahead);
    if (p.stranger.at != NULL)
      contender_notify_mixed_queue(ct, p.stranger);
    if (ct->state == state)
      contender_take_position(ct, &p);
  }
}
