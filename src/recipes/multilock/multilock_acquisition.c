/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/multilock/multilock_acquisition.h"

#include "recipes/common/memory.h"

enum { MAX_MISSES = 3 };

/* ---- life -------------------------------------------------------------- */

static lk_multilock_acquisition *of(lk_acquisition *a)
{
  return (lk_multilock_acquisition *)(void *)a;
}

void lk__multilock_ref(lk_multilock_acquisition *t)
{
  t->refs++;
}

void lk__multilock_unref(lk_multilock_acquisition *t)
{
  lk_session_lease *k = t->lease;

  if (--t->refs > 0)
    return;
  for (size_t i = 0; i < t->acquisition.count; i++)
    lk__contender_unref(t->parts[i]);
  lk__give(&k->mem, t);
  lk__lease_unref(k);
}

static void tell(lk_multilock_acquisition *t, const lk_notice *notice)
{
  if (t->callbacks != NULL)
    t->callbacks->notice(t->owner_arg, notice);
}

static bool is_ready(const lk_multilock_acquisition *t);

static void orphan_gone(void *arg, int err)
{
  lk_multilock_acquisition *t = arg;

  (void)err; /* the session lease says that it stays */
  if (--t->orphans == 0 && !t->over && is_ready(t))
    lk__multilock_begin_transaction(t);
  lk__multilock_unref(t);
}

static void orphan_news(void *arg, const lk_notice *notice)
{
  (void)arg;
  (void)notice;
}

static const lk_acquisition_callbacks of_orphan = {.notice = orphan_news,
                                                   .gone = orphan_gone};

/* It is in doubt whether its node exists, and no delete is on its way that a
 * later create would follow. */
static void drop_orphan(lk_multilock_acquisition *t, lk_contender *ct)
{
  bool leaves = ct->callbacks == NULL; /* it has ended by itself */

  ct->callbacks = &of_orphan;
  ct->callbacks_arg = t;
  t->orphans++;
  lk__multilock_ref(t);
  if (!leaves)
    lk__contender_stop(ct, true);
}

/* Give back the nodes of mate `from` and those after it. */
void lk__multilock_drop_from(lk_multilock_acquisition *t, size_t from)
{
  while (t->acquisition.count > from) {
    lk_contender *ct = t->parts[--t->acquisition.count];

    if (ct->own.state == LK_OWN_REQUESTED || ct->own.state == LK_OWN_IN_DOUBT)
      drop_orphan(t, ct);
    else if (ct->callbacks != NULL)
      lk__contender_stop(ct, false);
    lk__contender_unref(ct);
  }
}

/* Nothing more is wanted; the parts are kept for who still looks at them. */
static void close(lk_multilock_acquisition *t)
{
  t->over = true;
  if (t->lease->detached)
    return;
  lk__lease_stop_timer(t->lease, &t->rest);
  if (t->listens)
    lk__lease_detach_listener(t->lease, &t->listener);
  t->listens = false;
}

static void stop_parts(lk_multilock_acquisition *t)
{
  for (size_t i = 0; i < t->acquisition.count; i++) {
    if (t->parts[i]->callbacks != NULL)
      lk__contender_stop(t->parts[i], false);
  }
}

/* How it ends by itself: `lost` if it was held. */
void lk__multilock_end(lk_multilock_acquisition *t, int err)
{
  const lk_acquisition_callbacks *callbacks = t->callbacks;
  void (*told)(void *arg, int err) = NULL;

  if (t->over)
    return;
  if (callbacks != NULL)
    told = t->acquisition.whole ? callbacks->lost : callbacks->ended;
  t->callbacks = NULL;
  close(t);
  stop_parts(t);
  if (told != NULL)
    told(t->owner_arg, err);
  lk__lease_listener_done(t->lease);
  lk__multilock_unref(t);
}

/* ---- what the mates say ------------------------------------------------ */

static void start_over(lk_multilock_acquisition *t, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  bool expired = err == LK_ERR_SESSION_EXPIRED;

  if (t->lease->over != 0 ||
      (expired ? t->config->fail_on_expiry : ++t->misses == MAX_MISSES)) {
    lk__multilock_end(t, err);
    return;
  }
  lk__multilock_ref(t);
  if (t->asked) {
    t->again = true; /* its answer names nodes that are to be deleted */
  } else {
    lk__multilock_drop_from(t, 0);
    lk__multilock_begin_transaction(t);
  }
  tell(t, &notice);
  lk__multilock_unref(t);
}

/* It was asked to let go of a part, perhaps before it had the whole. */
static void tell_revoked(lk_multilock_acquisition *t)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};
  bool some = false;

  for (size_t i = 0; i < t->acquisition.count; i++)
    some = some || t->parts[i]->holding.revoked;
  if (!some || !t->acquisition.whole || t->over || t->revoked)
    return;
  t->revoked = true;
  tell(t, &notice);
}

/* All are there: but does the lease hold as well? */
static void try_grant(lk_multilock_acquisition *t)
{
  if (t->again || t->acquisition.count < t->config->count)
    return;
  if (lk__acquisition_try_grant(&t->acquisition) && t->callbacks != NULL)
    t->callbacks->granted(t->owner_arg);
  tell_revoked(t);
}

static void on_granted(void *arg)
{
  lk_multilock_part *m = arg;
  lk_multilock_acquisition *t = m->team;

  lk__multilock_ref(t);
  if (t->acquisition.count == t->config->count)
    try_grant(t);
  else if (is_ready(t))
    lk__multilock_begin_transaction(t);
  lk__multilock_unref(t);
}

static void on_ended(void *arg, int err)
{
  lk_multilock_part *m = arg;

  if (err == LK_ERR_SESSION_EXPIRED)
    start_over(m->team, err);
  else
    lk__multilock_end(m->team, err);
}

static void on_lost(void *arg, int err)
{
  lk_multilock_part *m = arg;

  if (m->team->acquisition.whole)
    lk__multilock_end(m->team, err);
  else
    start_over(m->team, err);
}

static void on_gone(void *arg, int err)
{
  lk_multilock_part *m = arg;
  lk_multilock_acquisition *t = m->team;
  const lk_acquisition_callbacks *callbacks = t->callbacks;

  if (err != 0)
    t->left_err = err;
  if (--t->leaving == 0) {
    t->callbacks = NULL;
    if (callbacks != NULL)
      callbacks->gone(t->owner_arg, t->left_err);
  }
  lk__multilock_unref(t);
}

/* One news of the whole for those of its parts. */
static void tell_once(lk_multilock_acquisition *t, const lk_notice *notice,
                      bool *told)
{
  lk_notice whole = {.type = notice->type,
                     .deadline_ms = lk__acquisition_deadline(&t->acquisition)};

  if (!t->acquisition.whole || *told)
    return;
  *told = true;
  tell(t, &whole);
}

static void on_waiting(lk_multilock_acquisition *t, const lk_multilock_part *m,
                       const lk_notice *notice)
{
  if (m->index + 1 < t->acquisition.count)
    lk__multilock_drop_from(t, m->index + 1);
  tell(t, notice);
}

static void on_proven(lk_multilock_acquisition *t, const lk_notice *notice)
{
  bool told = !t->unsure || lk__acquisition_is_unsure(&t->acquisition);

  if (!t->acquisition.whole) {
    try_grant(t);
    return;
  }
  t->unsure = t->unsure && told;
  tell_once(t, notice, &told);
}

static void on_news(void *arg, const lk_notice *notice)
{
  lk_multilock_part *m = arg;
  lk_multilock_acquisition *t = m->team;

  lk__multilock_ref(t);
  switch (notice->type) {
  case LK_NOTICE_WAITING: on_waiting(t, m, notice); break;
  case LK_NOTICE_SUSPENDED: tell_once(t, notice, &t->suspended); break;
  case LK_NOTICE_UNSURE: tell_once(t, notice, &t->unsure); break;
  case LK_NOTICE_LEASE_PROVEN: on_proven(t, notice); break;
  case LK_NOTICE_REVOKED: tell_revoked(t); break;
  case LK_NOTICE_PLACE_LOST:
  case LK_NOTICE_MIXED_QUEUE:
  case LK_NOTICE_UNWATCHED:
  case LK_NOTICE_COUNTER_NEAR_END: tell(t, notice); break;
  }
  lk__multilock_unref(t);
}

static const lk_acquisition_callbacks mate = {.granted = on_granted,
                                              .ended = on_ended,
                                              .lost = on_lost,
                                              .notice = on_news,
                                              .gone = on_gone};

lk_contender *lk__multilock_new_contender(lk_multilock_acquisition *t,
                                          size_t index)
{
  lk_multilock_part *m = &t->mates[index];

  m->team = t;
  m->index = index;
  return lk__contender_new(t->lease, &t->config->members[index], &mate, m);
}

/* ---- what the owner wants ---------------------------------------------- */

/* Nobody of it waits: what it lacks may be asked for. */
static bool is_ready(const lk_multilock_acquisition *t)
{
  for (size_t i = 0; i < t->acquisition.count; i++) {
    if (!lk__contender_holds(t->parts[i]))
      return false;
  }
  return t->acquisition.count < t->config->count;
}

static void on_rest(lk_client *c, void *arg)
{
  lk_multilock_acquisition *t = arg;

  if (lk_client_state(c) == LK_STATE_EXPIRED)
    lk__multilock_end(t,
                      LK_ERR_SESSION_EXPIRED); /* and no new session follows */
  else if (is_ready(t))
    lk__multilock_begin_transaction(t);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_multilock_acquisition *t = arg;

  (void)err;
  lk__multilock_ref(t);
  switch (state) {
  case LK_STATE_CONNECTED:
    t->suspended = false;
    if (is_ready(t))
      lk__multilock_begin_transaction(t);
    break;
  case LK_STATE_EXPIRED:
    lk__lease_start_timer(t->lease, &t->rest, lk_client_now(c));
    break;
  case LK_STATE_AUTH_FAILED:
  case LK_STATE_CLOSED: lk__multilock_end(t, t->lease->over); break;
  case LK_STATE_CONNECTING:
  case LK_STATE_READ_ONLY:
  case LK_STATE_SUSPENDED: break;
  }
  lk__multilock_unref(t);
}

static void on_closing(lk_client *c, void *arg)
{
  lk_multilock_acquisition *t = arg;

  (void)c;
  lk__multilock_end(t, t->lease->over);
}

static void begin(lk_acquisition *a)
{
  lk_multilock_acquisition *t = of(a);

  t->listens = true;
  lk__lease_attach_listener(t->lease, &t->listener);
  lk__multilock_begin_transaction(t);
}

static void stop(lk_acquisition *a, bool wait)
{
  lk_multilock_acquisition *t = of(a);
  size_t count = t->acquisition.count;

  lk__multilock_ref(t);
  if (!wait)
    t->callbacks = NULL;
  close(t);
  lk__lease_listener_done(t->lease);
  if (wait)
    t->leaving = count;
  t->refs += t->leaving;
  for (size_t i = 0; i < count; i++) {
    if (t->parts[i]->callbacks != NULL)
      lk__contender_stop(t->parts[i], wait);
  }
  lk__multilock_unref(t);
  lk__multilock_unref(t);
}

static void disown(lk_acquisition *a)
{
  of(a)->callbacks = NULL;
}

static void ref_attempt(lk_acquisition *a)
{
  lk__multilock_ref(of(a));
}

static void unref_attempt(lk_acquisition *a)
{
  lk__multilock_unref(of(a));
}

static const lk_acquisition_kind team = {.begin = begin,
                                         .stop = stop,
                                         .disown = disown,
                                         .ref = ref_attempt,
                                         .unref = unref_attempt};

lk_multilock_acquisition *
lk__multilock_acquisition_new(lk_session_lease *k, lk_multilock_plan *config,
                              const lk_acquisition_callbacks *callbacks,
                              void *arg)
{
  lk_multilock_acquisition *t =
      lk__take(&k->mem, sizeof *t + config->count * (sizeof *t->mates +
                                                     sizeof(lk_contender *)));

  if (t == NULL)
    return NULL;
  t->parts = (lk_contender **)(void *)(t->mates + config->count);
  t->acquisition = (lk_acquisition){.kind = &team, .parts = t->parts};
  t->lease = k;
  lk__lease_ref(k);
  t->refs = 1;
  t->callbacks = callbacks;
  t->owner_arg = arg;
  t->config = config;
  t->listener =
      (lk_listener){.state = on_state, .closing = on_closing, .arg = t};
  t->rest = (lk_timer){.fire = on_rest, .arg = t};
  return t;
}
