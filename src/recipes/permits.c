/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/permits.h"

#include "recipes/memory.h"

enum { MAX_MISSES = 3, MAX_FAILURES = 3 };

/* ---- life -------------------------------------------------------------- */

static lk_permits *of(lk_attempt *a)
{
  return (lk_permits *)(void *)a;
}

void lk__permits_ref(lk_permits *p)
{
  p->refs++;
}

void lk__permits_unref(lk_permits *p)
{
  lk_keeper *k = p->keeper;

  if (--p->refs > 0)
    return;
  for (size_t i = 0; i < p->attempt.count; i++)
    lk__contend_unref(p->parts[i]);
  lk__give(&k->mem, p);
  lk__keeper_unref(k);
}

static void tell(lk_permits *p, const lk_news *news)
{
  if (p->owner != NULL)
    p->owner->news(p->owner_arg, news);
}

/* ---- giving back ------------------------------------------------------- */

static void stop_parts(lk_permits *p, bool wait)
{
  for (size_t i = 0; i < p->attempt.count; i++) {
    if (p->parts[i]->owner != NULL)
      lk__contend_stop(p->parts[i], wait);
  }
}

static void drop_parts(lk_permits *p)
{
  stop_parts(p, false);
  while (p->attempt.count > 0)
    lk__contend_unref(p->parts[--p->attempt.count]);
}

static void drop_last(lk_permits *p)
{
  lk_contend *last = p->parts[--p->attempt.count];

  lk__contend_stop(last, false);
  lk__contend_unref(last);
}

static void drop_place(lk_permits *p)
{
  lk_contend *place = p->place;

  p->place = NULL;
  p->first = false;
  if (place == NULL)
    return;
  if (place->owner != NULL)
    lk__contend_stop(place, false);
  lk__contend_unref(place);
}

static void close(lk_permits *p)
{
  p->over = true;
  lk__limit_forget(p);
}

void lk__permits_end(lk_permits *p, int err)
{
  const lk_owner *owner = p->owner;
  void (*told)(void *arg, int err) = NULL;

  if (p->over)
    return;
  if (owner != NULL)
    told = p->attempt.whole ? owner->lost : owner->ended;
  p->owner = NULL;
  close(p);
  stop_parts(p, false); /* permits first: the place keeps others waiting */
  drop_place(p);
  if (told != NULL)
    told(p->owner_arg, err);
  lk__permits_unref(p);
}

/* ---- asking ------------------------------------------------------------ */

static void begin(lk_attempt *a);
static void ask_permits(lk_permits *p);
static void ask_last(lk_permits *p);

/* Something of it was deleted, or went with its session. */
static void start_over(lk_permits *p, int err)
{
  bool expired = err == LK_ERR_SESSION_EXPIRED;
  lk_news news = {.type = LK_NEWS_PLACE_LOST, .err = err};

  if (p->keeper->over != 0 ||
      (expired ? p->config->fail_on_expiry : ++p->misses == MAX_MISSES)) {
    lk__permits_end(p, err);
    return;
  }
  lk__permits_ref(p);
  drop_parts(p);
  drop_place(p);
  p->told_waiting = false;
  tell(p, &news);
  if (!p->over)
    begin(&p->attempt);
  lk__permits_unref(p);
}

/* It was asked to let go of a part, perhaps before it had the whole. */
static void tell_revoked(lk_permits *p)
{
  lk_news news = {.type = LK_NEWS_REVOKED};
  bool some = false;

  for (size_t i = 0; i < p->attempt.count; i++)
    some = some || p->parts[i]->revoked;
  if (!some || !p->attempt.whole || p->over || p->revoked)
    return;
  p->revoked = true;
  tell(p, &news);
}

/* The place is the first, and there are permits enough. */
static void try_grant(lk_permits *p)
{
  const lk_attempt *a = &p->attempt;

  if (!p->first || a->count < p->config->take ||
      (p->config->limit_path != NULL && !p->limit_known))
    return;
  p->attempt.whole = true;
  p->attempt.whole =
      lk__attempt_holds(a) && !lk__attempt_unsure(a) &&
      lk_client_clock(p->keeper->client) < lk__attempt_deadline(a);
  if (!p->attempt.whole)
    return;
  drop_place(p);
  lk__limit_forget(p);
  if (p->owner != NULL)
    p->owner->granted(p->owner_arg);
  tell_revoked(p);
}

/* Who waits looks again. What was counted by another number is not worth much:
 * only so much may be held by then as nobody has been told of. */
void lk__permits_limit(lk_permits *p, int32_t limit)
{
  bool same = limit == p->config->limit;
  bool news = !p->limit_known;

  p->config->limit = limit;
  p->limit_known = true;
  if (same && news) {
    try_grant(p);
  } else if (news && p->attempt.count > 0) {
    drop_parts(p);
    if (p->first)
      ask_permits(p);
  } else if (p->attempt.count == p->config->take) {
    lk__contend_recount(p->parts[p->attempt.count - 1]);
  }
}

/* ---- what the place says ----------------------------------------------- */

/* First, and not enough permits. */
static void tell_first(lk_permits *p)
{
  lk_news news = {.type = LK_NEWS_WAITING, .position = 1};

  if (!p->first || p->told_waiting)
    return;
  p->told_waiting = true;
  tell(p, &news);
}

/* They were counted before the place was first, and were not enough. */
static bool counted(const lk_permits *p)
{
  const lk_attempt *a = &p->attempt;

  return a->count == p->config->take &&
         a->parts[a->count - 1]->told_position > 0;
}

static void place_granted(void *arg)
{
  lk_permits *p = arg;

  lk__permits_ref(p);
  p->first = true;
  if (!p->queued)
    p->config->failures = 0; /* nobody else: asking for all at once is right */
  if (p->attempt.count == 0)
    ask_permits(p);
  if (!p->over)
    try_grant(p);
  if (!p->over && !p->attempt.whole && counted(p))
    tell_first(p);
  lk__permits_unref(p);
}

static void place_ended(void *arg, int err)
{
  lk_permits *p = arg;

  if (err == LK_ERR_BUSY && !p->first && p->attempt.count > 0)
    p->config->failures++;
  if (err == LK_ERR_SESSION_EXPIRED)
    start_over(p, err);
  else
    lk__permits_end(p, err);
}

static void place_lost(void *arg, int err)
{
  lk_permits *p = arg;

  if (!p->attempt.whole)
    start_over(p, err);
}

static void place_news(void *arg, const lk_news *news)
{
  lk_permits *p = arg;

  lk__permits_ref(p);
  switch (news->type) {
  case LK_NEWS_WAITING:
    p->queued = true;
    if (p->attempt.count > 0) {
      drop_parts(p); /* somebody is ahead: permits are theirs first */
      p->config->failures++;
    }
    tell(p, news);
    break;
  case LK_NEWS_PLACE_LOST:
    drop_parts(p);
    tell(p, news);
    break;
  case LK_NEWS_MIXED:
  case LK_NEWS_UNWATCHED:
  case LK_NEWS_NEAR_LIMIT: tell(p, news); break;
  case LK_NEWS_SUSPENDED:
  case LK_NEWS_UNSURE:
  case LK_NEWS_REVOKED:
  case LK_NEWS_PROVEN: break; /* nobody relies on the place */
  }
  lk__permits_unref(p);
}

static void nothing(void *arg, int err)
{
  (void)arg;
  (void)err;
}

static const lk_owner of_place = {.granted = place_granted,
                                  .ended = place_ended,
                                  .lost = place_lost,
                                  .news = place_news,
                                  .gone = nothing};

static void ask_place(lk_permits *p)
{
  p->place = lk__contend_new(p->keeper, &p->config->place, &of_place, p);
  if (p->place == NULL) {
    lk__permits_end(p, LK_ERR_NO_MEMORY);
    return;
  }
  lk__contend_ref(p->place);
  lk__contend_begin(p->place);
}

/* ---- what the permits say ---------------------------------------------- */

static bool others_hold(const lk_permits *p)
{
  for (size_t i = 0; i + 1 < p->config->take; i++) {
    if (i >= p->attempt.count || !lk__contend_holds(p->parts[i]))
      return false;
  }
  return true;
}

/* The one that counts. Where the others were not there yet, because the server
 * was busy or a connection broke, it has counted too few, and is asked for
 * again when they are. */
static void last_granted(lk_permits *p)
{
  if (!p->first)
    drop_parts(p); /* the place is not known: it comes first */
  else if (others_hold(p))
    try_grant(p);
  else
    drop_last(p);
}

static void permit_granted(void *arg)
{
  lk_permit *one = arg;
  lk_permits *p = one->of;
  size_t take = p->config->take;

  lk__permits_ref(p);
  if (one == &p->permits[take - 1])
    last_granted(p);
  else if (p->attempt.count + 1 == take && others_hold(p))
    ask_last(p);
  else
    try_grant(p);
  lk__permits_unref(p);
}

static void permit_ended(void *arg, int err)
{
  lk_permit *one = arg;

  place_ended(one->of, err);
}

static void permit_lost(void *arg, int err)
{
  lk_permit *one = arg;

  if (one->of->attempt.whole)
    lk__permits_end(one->of, err);
  else
    start_over(one->of, err);
}

static void permit_gone(void *arg, int err)
{
  lk_permit *one = arg;
  lk_permits *p = one->of;
  const lk_owner *owner = p->owner;

  if (err != 0)
    p->left_err = err;
  if (--p->leaving == 0) {
    p->owner = NULL;
    if (owner != NULL)
      owner->gone(p->owner_arg, p->left_err);
  }
  lk__permits_unref(p);
}

static void tell_whole(lk_permits *p, lk_news_type type)
{
  lk_news news = {.type = type,
                  .deadline_ms = lk__attempt_deadline(&p->attempt)};

  tell(p, &news);
}

static void permit_proven(lk_permits *p)
{
  if (!p->attempt.whole) {
    try_grant(p);
  } else if (p->unsure && !lk__attempt_unsure(&p->attempt)) {
    p->unsure = false;
    tell_whole(p, LK_NEWS_PROVEN);
  }
}

static void permit_unsure(lk_permits *p)
{
  if (!p->attempt.whole || p->unsure)
    return;
  p->unsure = true;
  tell_whole(p, LK_NEWS_UNSURE);
}

static void permit_news(void *arg, const lk_news *news)
{
  lk_permit *one = arg;
  lk_permits *p = one->of;

  lk__permits_ref(p);
  switch (news->type) {
  case LK_NEWS_WAITING: tell_first(p); break;
  case LK_NEWS_SUSPENDED: /* each is told; one speaks for all */
    if (p->attempt.whole && one == &p->permits[0])
      tell_whole(p, LK_NEWS_SUSPENDED);
    break;
  case LK_NEWS_UNSURE: permit_unsure(p); break;
  case LK_NEWS_PROVEN: permit_proven(p); break;
  case LK_NEWS_REVOKED: tell_revoked(p); break;
  case LK_NEWS_UNWATCHED: tell(p, news); break;
  case LK_NEWS_PLACE_LOST:
  case LK_NEWS_MIXED:
  case LK_NEWS_NEAR_LIMIT: break;
  }
  lk__permits_unref(p);
}

static const lk_owner of_permit = {.granted = permit_granted,
                                   .ended = permit_ended,
                                   .lost = permit_lost,
                                   .news = permit_news,
                                   .gone = permit_gone};

/* One more; false: no memory. */
static bool add_permit(lk_permits *p)
{
  size_t i = p->attempt.count;
  const lk_contend_config *what =
      i + 1 == p->config->take ? &p->config->count : &p->config->permit;
  lk_contend *ct = lk__contend_new(p->keeper, what, &of_permit, &p->permits[i]);

  if (ct == NULL) {
    lk__permits_end(p, LK_ERR_NO_MEMORY);
    return false;
  }
  lk__contend_ref(ct);
  p->parts[p->attempt.count++] = ct;
  return true;
}

static void ask_last(lk_permits *p)
{
  if (add_permit(p))
    lk__contend_begin(p->parts[p->attempt.count - 1]);
}

/* All are begun in one turn, so their creates leave in one write, and the list
 * of the last shows them all. */
static void ask_permits(lk_permits *p)
{
  size_t take = p->config->take;

  while (p->attempt.count < take) {
    if (!add_permit(p))
      return;
  }
  for (size_t i = 0; i < take && p->attempt.count == take && !p->over; i++)
    lk__contend_begin(p->parts[i]);
}

/* ---- what the owner wants ---------------------------------------------- */

static void begin(lk_attempt *a)
{
  lk_permits *p = of(a);

  lk__permits_ref(p);
  int err = lk__limit_ask(p);

  if (err != 0)
    lk__permits_end(p, err);
  else
    ask_place(p);
  if (!p->over && lk__keeper_online(p->keeper) &&
      p->config->failures < MAX_FAILURES)
    ask_permits(p);
  lk__permits_unref(p);
}

static void stop(lk_attempt *a, bool wait)
{
  lk_permits *p = of(a);

  lk__permits_ref(p);
  if (!wait)
    p->owner = NULL;
  close(p);
  p->leaving = wait ? p->attempt.count : 0;
  p->refs += p->leaving;
  stop_parts(p, wait);
  drop_place(p);
  lk__permits_unref(p);
  lk__permits_unref(p);
}

static void disown(lk_attempt *a)
{
  of(a)->owner = NULL;
}

static void ref_attempt(lk_attempt *a)
{
  lk__permits_ref(of(a));
}

static void unref_attempt(lk_attempt *a)
{
  lk__permits_unref(of(a));
}

static const lk_attempt_kind kind = {.begin = begin,
                                     .stop = stop,
                                     .disown = disown,
                                     .ref = ref_attempt,
                                     .unref = unref_attempt};

lk_permits *lk__permits_new(lk_keeper *k, lk_permits_config *config,
                            const lk_owner *owner, void *arg)
{
  size_t each = sizeof(lk_permit) + sizeof(lk_contend *);
  lk_permits *p = lk__take(&k->mem, sizeof *p + config->take * each);

  if (p == NULL)
    return NULL;
  p->parts = (lk_contend **)(void *)(p->permits + config->take);
  p->attempt = (lk_attempt){.kind = &kind, .parts = p->parts};
  p->keeper = k;
  lk__keeper_ref(k);
  p->refs = 1;
  p->owner = owner;
  p->owner_arg = arg;
  p->config = config;
  p->limit_rest = (lk_timer){.fire = lk__limit_fire, .arg = p};
  for (size_t i = 0; i < config->take; i++)
    p->permits[i].of = p;
  return p;
}
