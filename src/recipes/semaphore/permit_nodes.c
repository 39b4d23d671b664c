/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/semaphore/semaphore_acquisition.h"

/**
 * @file
 * The permits of an attempt: a node for each, of which the last one counts.
 */

/* ---- giving back ------------------------------------------------------- */

void lk__permit_nodes_stop(lk_semaphore_acquisition *p, bool wait)
{
  for (size_t i = 0; i < p->acquisition.count; i++) {
    if (p->parts[i]->callbacks != NULL)
      lk__contender_stop(p->parts[i], wait);
  }
}

void lk__permit_nodes_drop(lk_semaphore_acquisition *p)
{
  lk__permit_nodes_stop(p, false);
  while (p->acquisition.count > 0)
    lk__contender_unref(p->parts[--p->acquisition.count]);
}

static void drop_last(lk_semaphore_acquisition *p)
{
  lk_contender *last = p->parts[--p->acquisition.count];

  lk__contender_stop(last, false);
  lk__contender_unref(last);
}

/* ---- what the permits say ---------------------------------------------- */

static void ask_last(lk_semaphore_acquisition *p);

static bool others_hold(const lk_semaphore_acquisition *p)
{
  for (size_t i = 0; i + 1 < p->config->take; i++) {
    if (i >= p->acquisition.count || !lk__contender_holds(p->parts[i]))
      return false;
  }
  return true;
}

/* Its list shows all the others: each was made before it. */
static bool has_seen_all(const lk_semaphore_acquisition *p,
                         const lk_contender *last)
{
  for (size_t i = 0; i + 1 < p->config->take; i++) {
    if (p->parts[i]->own.token > last->wait.listed_zxid)
      return false;
  }
  return true;
}

/* The one that counts. Where the others were not there yet when it did, because
 * the server was busy or a connection broke, it has counted too few, and is
 * asked for again when they are. */
static void last_granted(lk_semaphore_acquisition *p)
{
  const lk_contender *last = p->parts[p->acquisition.count - 1];
  bool others = others_hold(p);

  if (!p->first) {
    lk__permit_nodes_drop(p); /* the place is not known: it comes first */
  } else if (others && has_seen_all(p, last)) {
    lk__semaphore_try_grant(p);
  } else {
    drop_last(p);
    if (others)
      ask_last(p);
  }
}

static void permit_granted(void *arg)
{
  lk_semaphore_permit *one = arg;
  lk_semaphore_acquisition *p = one->of;
  size_t take = p->config->take;

  lk__semaphore_ref(p);
  if (one == &p->permits[take - 1])
    last_granted(p);
  else if (p->acquisition.count + 1 == take && others_hold(p))
    ask_last(p);
  else
    lk__semaphore_try_grant(p);
  lk__semaphore_unref(p);
}

static void permit_ended(void *arg, int err)
{
  lk_semaphore_permit *one = arg;

  lk__semaphore_failed(one->of, err);
}

static void permit_lost(void *arg, int err)
{
  lk_semaphore_permit *one = arg;

  if (one->of->acquisition.whole)
    lk__semaphore_end(one->of, err);
  else
    lk__semaphore_begin_again(one->of, err);
}

static void permit_gone(void *arg, int err)
{
  lk_semaphore_permit *one = arg;
  lk_semaphore_acquisition *p = one->of;
  const lk_acquisition_callbacks *callbacks = p->callbacks;

  if (err != 0)
    p->left_err = err;
  if (--p->leaving == 0) {
    p->callbacks = NULL;
    if (callbacks != NULL)
      callbacks->gone(p->owner_arg, p->left_err);
  }
  lk__semaphore_unref(p);
}

static void tell_whole(lk_semaphore_acquisition *p, lk_notice_type type)
{
  lk_notice notice = {.type = type,
                      .deadline_ms = lk__acquisition_deadline(&p->acquisition)};

  lk__semaphore_notify(p, &notice);
}

static void permit_proven(lk_semaphore_acquisition *p)
{
  if (!p->acquisition.whole) {
    lk__semaphore_try_grant(p);
  } else if (p->unsure && !lk__acquisition_is_unsure(&p->acquisition)) {
    p->unsure = false;
    tell_whole(p, LK_NOTICE_LEASE_PROVEN);
  }
}

static void permit_unsure(lk_semaphore_acquisition *p)
{
  if (!p->acquisition.whole || p->unsure)
    return;
  p->unsure = true;
  tell_whole(p, LK_NOTICE_UNSURE);
}

static void permit_news(void *arg, const lk_notice *notice)
{
  lk_semaphore_permit *one = arg;
  lk_semaphore_acquisition *p = one->of;

  lk__semaphore_ref(p);
  switch (notice->type) {
  case LK_NOTICE_WAITING: lk__semaphore_notify_first(p); break;
  case LK_NOTICE_SUSPENDED: /* each is told; one speaks for all */
    if (p->acquisition.whole && one == &p->permits[0])
      tell_whole(p, LK_NOTICE_SUSPENDED);
    break;
  case LK_NOTICE_UNSURE: permit_unsure(p); break;
  case LK_NOTICE_LEASE_PROVEN: permit_proven(p); break;
  case LK_NOTICE_REVOKED: lk__semaphore_notify_revoked(p); break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED: lk__semaphore_notify(p, notice); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_COUNTER_NEAR_END: break;
  }
  lk__semaphore_unref(p);
}

static const lk_acquisition_callbacks of_permit = {.granted = permit_granted,
                                                   .ended = permit_ended,
                                                   .lost = permit_lost,
                                                   .notice = permit_news,
                                                   .gone = permit_gone};

/* ---- asking ------------------------------------------------------------ */

/* One more; false: no memory. */
static bool add_permit(lk_semaphore_acquisition *p)
{
  size_t i = p->acquisition.count;
  const lk_contender_config *what =
      i + 1 == p->config->take ? &p->config->count : &p->config->permit;
  lk_contender *ct =
      lk__contender_new(p->lease, what, &of_permit, &p->permits[i]);

  if (ct == NULL) {
    lk__semaphore_end(p, LK_ERR_NO_MEMORY);
    return false;
  }
  lk__contender_ref(ct);
  p->parts[p->acquisition.count++] = ct;
  return true;
}

static void ask_last(lk_semaphore_acquisition *p)
{
  if (add_permit(p))
    lk__contender_begin(p->parts[p->acquisition.count - 1]);
}

/* All are begun in one turn, so their creates leave in one write, and the list
 * of the last shows them all. */
void lk__permit_nodes_create(lk_semaphore_acquisition *p)
{
  size_t take = p->config->take;

  while (p->acquisition.count < take) {
    if (!add_permit(p))
      return;
  }
  for (size_t i = 0; i < take && p->acquisition.count == take && !p->over; i++)
    lk__contender_begin(p->parts[i]);
}
