/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

enum { MAX_MISSES = 3, REST_MS = 50, MAX_REST_DOUBLINGS = 4 };

/* ---- life -------------------------------------------------------------- */

static void draw_name(lk_contender *ct)
{
  unsigned char random[16];

  if (lk__contender_is_single_node(ct))
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  lk__name_prefix(ct->unique, ct->prefix, random);
  if (ct->data == NULL)
    memcpy(lk__contender_own_name(ct), ct->prefix, strlen(ct->prefix));
  else
    memcpy(ct->data + ct->data_len - LK_UUID_LEN, ct->prefix, LK_UUID_LEN);
}

/* Room for both is behind the node's name. */
static void join_data(lk_contender *ct, lk_bytes data)
{
  ct->data = ct->node + ct->base_len + LK_SUFFIX_MAX + 1;
  ct->data_len = data.len + (data.len > 0) + LK_UUID_LEN;
  if (data.len == 0)
    return;
  memcpy(ct->data, data.at, data.len);
  ct->data[data.len] = ' ';
}

static void on_rest(lk_client *c, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  lk__contender_ref(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_resume(ct);
  lk__contender_unref(ct);
}

static lk_contender *of(lk_acquisition *a)
{
  return a->parts[0];
}

static void begin_attempt(lk_acquisition *a)
{
  lk__contender_begin(of(a));
}

static void stop_attempt(lk_acquisition *a, bool tell)
{
  lk__contender_stop(of(a), tell);
}

static void disown_attempt(lk_acquisition *a)
{
  of(a)->owner = NULL;
}

static void ref_attempt(lk_acquisition *a)
{
  lk__contender_ref(of(a));
}

static void unref_attempt(lk_acquisition *a)
{
  lk__contender_unref(of(a));
}

static const lk_acquisition_kind one_node = {.begin = begin_attempt,
                                             .stop = stop_attempt,
                                             .disown = disown_attempt,
                                             .ref = ref_attempt,
                                             .unref = unref_attempt};

lk_contender *lk__contender_new(lk_keeper *k, const lk_contender_config *config,
                                const lk_acquisition_callbacks *owner,
                                void *arg)
{
  bool fixed = config->unique == LK_IDENTITY_NONE;
  const char *mark = fixed ? config->fixed->name : config->role->mark->text;
  bool in_data = config->unique == LK_IDENTITY_DATA;
  size_t dir_len = strlen(config->dir);
  size_t base_len =
      dir_len + 1 + lk__name_prefix_len(config->unique) + strlen(mark);
  size_t data_len = in_data ? config->data.len + 1 + LK_UUID_LEN : 0;
  lk_contender *ct = lk__take(&k->mem, sizeof *ct + dir_len + 1 + base_len +
                                           LK_SUFFIX_MAX + 1 + data_len);

  if (ct == NULL)
    return NULL;
  ct->self = ct;
  ct->attempt = (lk_acquisition){
      .kind = &one_node, .whole = true, .parts = &ct->self, .count = 1};
  ct->lease = k;
  ct->refs = 1;
  ct->owner = owner;
  ct->owner_arg = arg;
  ct->config = config;
  ct->role = config->role;
  ct->unique = config->unique;
  ct->by_children = ct->role->counts;
  ct->state = LK_CONTENDER_IDLE;
  ct->base_len = base_len;
  ct->rest.fire = on_rest;
  ct->rest.arg = ct;
  ct->dir = (char *)(ct + 1);
  ct->node = ct->dir + dir_len + 1;
  memcpy(ct->dir, config->dir, dir_len + 1);
  memcpy(ct->node, config->dir, dir_len);
  ct->node[dir_len] = '/';
  memcpy(ct->node + base_len - strlen(mark), mark, strlen(mark) + 1);
  if (in_data)
    join_data(ct, config->data);
  draw_name(ct);
  lk__lease_add_contender(k, ct);
  return ct;
}

void lk__contender_ref(lk_contender *ct)
{
  ct->refs++;
}

void lk__contender_unref(lk_contender *ct)
{
  lk_keeper *k = ct->lease;

  if (--ct->refs > 0)
    return;
  if (ct->beside != NULL)
    lk__contender_unref(ct->beside);
  lk__candidates_free(ct);
  lk__give(&k->mem, ct->ahead.block);
  lk__give(&k->mem, ct);
  lk__lease_unref(k);
}

lk_bytes lk__contender_name_base(const lk_contender *ct)
{
  return lk_bytes_of(lk__contender_own_name(ct),
                     ct->base_len - strlen(ct->dir) - 1);
}

lk_bytes lk__contender_data(const lk_contender *ct)
{
  return ct->data == NULL ? ct->config->data
                          : lk_bytes_of(ct->data, ct->data_len);
}

bool lk__contender_own_unverified(const lk_contender *ct)
{
  return lk__name_is_shared(ct->unique) &&
         ct->seen_on != lk_client_connection(lk__contender_client(ct));
}

lk_client *lk__contender_client(const lk_contender *ct)
{
  return ct->lease->client;
}

bool lk__contender_holds(const lk_contender *ct)
{
  return ct->state == LK_CONTENDER_HELD || ct->state == LK_CONTENDER_UNSURE;
}

uint64_t lk__contender_token(const lk_contender *ct)
{
  return ct->lent != 0 ? ct->lent : ct->token;
}

/* ---- requests and their answers ---------------------------------------- */

int lk__contender_count_request(lk_contender *ct, int err)
{
  if (err == 0) {
    ct->asked++;
    lk__contender_ref(ct);
  }
  return err;
}

bool lk__contender_take_reply(lk_contender *ct)
{
  return ++ct->answered > ct->outdated;
}

void lk__contender_ignore_replies(lk_contender *ct)
{
  ct->outdated = ct->asked;
}

void lk__contender_cancel_watches(lk_contender *ct)
{
  bool others = lk__contender_is_single_node(ct) && ct->own != LK_OWN_CREATED;

  /* The one on own goes with own; the other would stay on the server. */
  if (ct->own_watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->own_watch, others);
  if (ct->pred_watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->pred_watch, true);
  ct->own_watch = NULL;
  ct->pred_watch = NULL;
  ct->watched_on = 0;
}

/* ---- pauses ------------------------------------------------------------ */

void lk__contender_start_pause(lk_contender *ct, int64_t ms)
{
  lk_client *c = lk__contender_client(ct);

  lk__lease_start_timer(ct->lease, &ct->rest, lk_client_clock(c) + ms);
}

int64_t lk__contender_pause_ms(lk_contender *ct)
{
  int64_t ms = (int64_t)REST_MS << ct->rests;
  uint16_t jitter;

  if (ct->rests < MAX_REST_DOUBLINGS)
    ct->rests++;
  lk_client_random(lk__contender_client(ct), &jitter, sizeof jitter);
  return ms + jitter % ms;
}

void lk__contender_request_failed(lk_contender *ct, int err)
{
  ct->too_long = ct->too_long || err == LK_ERR_TOO_BIG;
  switch (lk__error_advice(err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_RETRY_LATER:
    lk__contender_start_pause(ct, lk__contender_pause_ms(ct));
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_GIVE_UP: lk__contender_fail(ct, err); break;
  }
}

bool lk__contender_fail_if_too_big(lk_contender *ct, int err)
{
  if (err != LK_ERR_TOO_BIG || ct->state != LK_CONTENDER_PAUSED)
    return false;
  lk__contender_request_failed(ct, err);
  return true;
}

/* ---- what happens to it ------------------------------------------------ */

/* Own does not exist. Where it may have to go again at once a look comes
 * first; not where somebody else asks for it, or holds for us. */
static lk_contender_event first_step(const lk_contender *ct)
{
  bool choosy = ct->config->once || ct->config->max_queue > 0;
  bool looks = ct->occupied || (ct->config->peek && choosy);

  return looks && ct->own == LK_OWN_NONE && ct->beside == NULL
             ? LK_CONTENDER_ON_LIST_FIRST
             : LK_CONTENDER_ON_START;
}

void lk__contender_begin(lk_contender *ct)
{
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, first_step(ct));
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

void lk__contender_resume(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->state != LK_CONTENDER_PAUSED)
    return;
  lk__lease_stop_timer(ct->lease, &ct->rest);
  ct->checked = false;
  switch (ct->own) {
  case LK_OWN_NONE: lk__contender_step(ct, first_step(ct)); break;
  case LK_OWN_IN_DOUBT:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_IN_DOUBT);
    break;
  case LK_OWN_CREATED:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_EXISTS);
    break;
  case LK_OWN_REQUESTED: /* only while it is under way */
    lk__contender_start_pause(ct, lk__contender_pause_ms(ct));
    break;
  }
}

static void doubt_held(lk_contender *ct)
{
  lk_notice news = {.type = LK_NOTICE_SUSPENDED,
                    .deadline_ms = lk__contender_deadline(ct)};

  ct->proven = false;
  ct->read_due_ms = lk_client_now(lk__contender_client(ct));
  lk__contender_notify(ct, &news);
  lk__contender_review_lease(ct);
}

void lk__contender_suspend(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    doubt_held(ct);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

/* Own is gone; what is under way was for it. */
static void forget_own(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  ct->own = LK_OWN_NONE;
  ct->token = 0;
  ct->lent = 0;
  ct->unreadable = false;
  ct->checked = false;
  ct->revoked = false;
  ct->told_position = 0;
}

/* Another attempt at another node. */
static void renew(lk_contender *ct)
{
  ct->by_children = ct->role->counts;
  ct->node[ct->base_len] = '\0';
  draw_name(ct);
}

void lk__contender_session_expired(lk_contender *ct)
{
  bool made = ct->own == LK_OWN_CREATED;
  lk_notice news = {.type = LK_NOTICE_PLACE_LOST,
                    .err = LK_ERR_SESSION_EXPIRED};

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  forget_own(ct);
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  renew(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  if (made)
    lk__contender_notify(ct, &news);
}

void lk__contender_client_closed(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *owner = ct->owner;
  bool leaving = ct->state == LK_CONTENDER_CLEANING_UP;

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, err);
    return;
  }
  ct->owner = NULL;
  lk__contender_ignore_replies(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_OWN_GONE);
  if (owner != NULL && leaving)
    owner->gone(ct->owner_arg, err);
  else if (owner != NULL)
    owner->ended(ct->owner_arg, err);
}

void lk__contender_own_missing(lk_contender *ct, int err)
{
  lk_notice news = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  forget_own(ct);
  if (++ct->misses == MAX_MISSES) {
    lk__contender_fail(ct, err);
    return;
  }
  renew(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  lk__contender_notify(ct, &news);
}

void lk__contender_stop(lk_contender *ct, bool tell)
{
  if (!tell)
    ct->owner = NULL;
  /* The answer to a create under way is what tells the node's name. */
  if (ct->own != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->rest);
  lk__contender_step(ct, LK_CONTENDER_ON_STOP);
}

void lk__contender_fail(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *owner = ct->owner;
  void *arg = ct->owner_arg;

  lk__contender_stop(ct, false);
  if (owner != NULL)
    owner->ended(arg, err);
}

void lk__contender_limit_changed(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else
    ct->recount = true; /* a list that is still to come shows it, too */
}

void lk__contender_notify(lk_contender *ct, const lk_notice *news)
{
  if (ct->owner != NULL)
    ct->owner->news(ct->owner_arg, news);
}

void lk__contender_notify_position(lk_contender *ct)
{
  lk_notice news = {.type = LK_NOTICE_WAITING,
                    .position = ct->ahead.count,
                    .node = ct->ahead.head};

  if (ct->told_position == ct->ahead.count)
    return;
  ct->told_position = ct->ahead.count;
  lk__contender_notify(ct, &news);
}
