/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/semaphore/semaphore_acquisition.h"

#include "recipes/common/memory.h"
#include "recipes/queue/list.h"

enum { MAX_MISSES = 3, MAX_FAILURES = 3 };

/* ---- life -------------------------------------------------------------- */

static lk_semaphore_acquisition *of(lk_acquisition *a)
{
  return (lk_semaphore_acquisition *)(void *)a;
}

void lk__semaphore_ref(lk_semaphore_acquisition *p)
{
  p->refs++;
}

void lk__semaphore_unref(lk_semaphore_acquisition *p)
{
  lk_session_lease *k = p->lease;

  if (--p->refs > 0)
    return;
  for (size_t i = 0; i < p->acquisition.count; i++)
    lk__contender_unref(p->parts[i]);
  lk__give(&k->mem, p);
  lk__lease_unref(k);
}

void lk__semaphore_notify(lk_semaphore_acquisition *p, const lk_notice *notice)
{
  if (p->callbacks != NULL)
    p->callbacks->notice(p->owner_arg, notice);
}

/* ---- giving back ------------------------------------------------------- */

static void drop_place(lk_semaphore_acquisition *p)
{
  lk_contender *place = p->place;

  p->place = NULL;
  p->first = false;
  if (place == NULL)
    return;
  if (place->callbacks != NULL)
    lk__contender_stop(place, false);
  lk__contender_unref(place);
}

static void close(lk_semaphore_acquisition *p)
{
  p->over = true;
  lk__permit_limit_forget(p);
}

void lk__semaphore_end(lk_semaphore_acquisition *p, int err)
{
  const lk_acquisition_callbacks *callbacks = p->callbacks;
  void (*told)(void *arg, int err) = NULL;

  if (p->over)
    return;
  if (callbacks != NULL)
    told = p->acquisition.whole ? callbacks->lost : callbacks->ended;
  p->callbacks = NULL;
  close(p);
  lk__permit_nodes_stop(
      p, false); /* permits first: the place keeps others waiting */
  drop_place(p);
  if (told != NULL)
    told(p->owner_arg, err);
  lk__semaphore_unref(p);
}

/* ---- asking ------------------------------------------------------------ */

static void begin(lk_acquisition *a);

/* Something of it was deleted, or went with its session. */
void lk__semaphore_begin_again(lk_semaphore_acquisition *p, int err)
{
  bool expired = err == LK_ERR_SESSION_EXPIRED;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  if (p->lease->over != 0 ||
      (expired ? p->config->fail_on_expiry : ++p->misses == MAX_MISSES)) {
    lk__semaphore_end(p, err);
    return;
  }
  lk__semaphore_ref(p);
  lk__permit_nodes_drop(p);
  drop_place(p);
  p->told_waiting = false;
  lk__semaphore_notify(p, &notice);
  if (!p->over)
    begin(&p->acquisition);
  lk__semaphore_unref(p);
}

/* It was asked to let go of a part, perhaps before it had the whole. */
void lk__semaphore_notify_revoked(lk_semaphore_acquisition *p)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};
  bool some = false;

  for (size_t i = 0; i < p->acquisition.count; i++)
    some = some || p->parts[i]->holding.revoked;
  if (!some || !p->acquisition.whole || p->over || p->revoked)
    return;
  p->revoked = true;
  lk__semaphore_notify(p, &notice);
}

/* The place is the first, and there are permits enough. */
void lk__semaphore_try_grant(lk_semaphore_acquisition *p)
{
  const lk_acquisition *a = &p->acquisition;

  if (!p->first || a->count < p->config->take ||
      (p->config->limit_path != NULL && (!p->limit_known || p->limit_moved)))
    return;
  if (!lk__acquisition_try_grant(&p->acquisition))
    return;
  drop_place(p);
  lk__permit_limit_forget(p);
  if (p->callbacks != NULL)
    p->callbacks->granted(p->owner_arg);
  lk__semaphore_notify_revoked(p);
}

/* All are there, and were not too many. */
static bool has_counted(const lk_semaphore_acquisition *p)
{
  const lk_acquisition *a = &p->acquisition;

  return a->count == p->config->take &&
         lk__contender_holds(a->parts[a->count - 1]);
}

/* Who waits looks again. What was counted by another number is not worth much:
 * only so much may be held by then as nobody has been told of. */
void lk__semaphore_set_limit(lk_semaphore_acquisition *p, int32_t limit)
{
  bool same = limit == p->config->limit;
  bool moved = p->limit_moved;
  bool news = !p->limit_known || (moved && has_counted(p));

  p->config->limit = limit;
  p->limit_known = true;
  p->limit_moved = false;
  if (same && (news || moved)) {
    lk__semaphore_try_grant(p);
  } else if (news && p->acquisition.count > 0) {
    lk__permit_nodes_drop(p);
    if (p->first)
      lk__permit_nodes_create(p);
  } else if (p->acquisition.count == p->config->take) {
    lk__contender_limit_changed(p->parts[p->acquisition.count - 1]);
  }
}

/* ---- what the place says ----------------------------------------------- */

/* First, and not enough permits. */
void lk__semaphore_notify_first(lk_semaphore_acquisition *p)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING, .position = 1};

  if (!p->first || p->told_waiting)
    return;
  p->told_waiting = true;
  lk__semaphore_notify(p, &notice);
}

/* They were counted before the place was first, and were not enough. */
static bool counted(const lk_semaphore_acquisition *p)
{
  const lk_acquisition *a = &p->acquisition;

  return a->count == p->config->take &&
         a->parts[a->count - 1]->wait.reported_position > 0;
}

static void place_granted(void *arg)
{
  lk_semaphore_acquisition *p = arg;

  lk__semaphore_ref(p);
  p->first = true;
  if (!p->queued)
    *p->config->failures = 0; /* nobody else: asking for all at once is right */
  if (p->acquisition.count == 0)
    lk__permit_nodes_create(p);
  if (!p->over && counted(p))
    lk__semaphore_notify_first(p);
  lk__semaphore_unref(p);
}

void lk__semaphore_failed(lk_semaphore_acquisition *p, int err)
{
  if (err == LK_ERR_BUSY && !p->first && p->acquisition.count > 0)
    ++*p->config->failures;
  if (err == LK_ERR_SESSION_EXPIRED)
    lk__semaphore_begin_again(p, err);
  else
    lk__semaphore_end(p, err);
}

static void place_ended(void *arg, int err)
{
  lk__semaphore_failed(arg, err);
}

static void place_lost(void *arg, int err)
{
  lk_semaphore_acquisition *p = arg;

  if (!p->acquisition.whole)
    lk__semaphore_begin_again(p, err);
}

static void place_news(void *arg, const lk_notice *notice)
{
  lk_semaphore_acquisition *p = arg;

  lk__semaphore_ref(p);
  switch (notice->type) {
  case LK_NOTICE_WAITING:
    p->queued = true;
    if (p->acquisition.count > 0) {
      lk__permit_nodes_drop(p); /* the predecessor takes permits first */
      ++*p->config->failures;
    }
    lk__semaphore_notify(p, notice);
    break;
  case LK_NOTICE_PLACE_LOST:
    lk__permit_nodes_drop(p);
    lk__semaphore_notify(p, notice);
    break;
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED:
  case LK_NOTICE_COUNTER_NEAR_END: lk__semaphore_notify(p, notice); break;
  case LK_NOTICE_SUSPENDED:
  case LK_NOTICE_UNSURE:
  case LK_NOTICE_REVOKED:
  case LK_NOTICE_LEASE_PROVEN: break; /* nobody relies on the place */
  }
  lk__semaphore_unref(p);
}

static void nothing(void *arg, int err)
{
  (void)arg;
  (void)err;
}

static const lk_acquisition_callbacks of_place = {.granted = place_granted,
                                                  .ended = place_ended,
                                                  .lost = place_lost,
                                                  .notice = place_news,
                                                  .gone = nothing};

static void ask_place(lk_semaphore_acquisition *p)
{
  p->place = lk__contender_new(p->lease, &p->config->place, &of_place, p);
  if (p->place == NULL) {
    lk__semaphore_end(p, LK_ERR_NO_MEMORY);
    return;
  }
  lk__contender_ref(p->place);
  lk__contender_begin(p->place);
}

/* ---- what the owner wants ---------------------------------------------- */

static void begin(lk_acquisition *a)
{
  lk_semaphore_acquisition *p = of(a);

  lk__semaphore_ref(p);
  int err = lk__permit_limit_read(p);

  if (err != 0)
    lk__semaphore_end(p, err);
  else
    ask_place(p);
  if (!p->over && lk__lease_is_online(p->lease) &&
      *p->config->failures < MAX_FAILURES)
    lk__permit_nodes_create(p);
  lk__semaphore_unref(p);
}

static void stop(lk_acquisition *a, bool wait)
{
  lk_semaphore_acquisition *p = of(a);

  lk__semaphore_ref(p);
  if (!wait)
    p->callbacks = NULL;
  close(p);
  p->leaving = wait ? p->acquisition.count : 0;
  p->refs += p->leaving;
  lk__permit_nodes_stop(p, wait);
  drop_place(p);
  lk__semaphore_unref(p);
  lk__semaphore_unref(p);
}

static void disown(lk_acquisition *a)
{
  of(a)->callbacks = NULL;
}

static void ref_attempt(lk_acquisition *a)
{
  lk__semaphore_ref(of(a));
}

static void unref_attempt(lk_acquisition *a)
{
  lk__semaphore_unref(of(a));
}

static const lk_acquisition_kind kind = {.begin = begin,
                                         .stop = stop,
                                         .disown = disown,
                                         .ref = ref_attempt,
                                         .unref = unref_attempt};

lk_semaphore_acquisition *
lk__semaphore_acquisition_new(lk_session_lease *k, lk_semaphore_plan *config,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg)
{
  size_t each = sizeof(lk_semaphore_permit) + sizeof(lk_contender *);
  lk_semaphore_acquisition *p =
      lk__take(&k->mem, sizeof *p + config->take * each);

  if (p == NULL)
    return NULL;
  p->parts = (lk_contender **)(void *)(p->permits + config->take);
  p->acquisition = (lk_acquisition){.kind = &kind, .parts = p->parts};
  p->lease = k;
  lk__lease_ref(k);
  p->refs = 1;
  p->callbacks = callbacks;
  p->owner_arg = arg;
  p->config = config;
  p->limit_rest = (lk_timer){.fire = lk__permit_limit_on_timer, .arg = p};
  for (size_t i = 0; i < config->take; i++)
    p->permits[i].of = p;
  return p;
}
