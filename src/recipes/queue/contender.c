/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

enum { MAX_MISSES = 3, REST_MS = 50, MAX_REST_DOUBLINGS = 4 };

/* ---- life -------------------------------------------------------------- */

static void draw_name(lk_contend *ct)
{
  unsigned char random[16];

  if (lk__contend_is_fixed(ct))
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  lk__name_prefix(ct->unique, ct->prefix, random);
  if (ct->data == NULL)
    memcpy(lk__contend_name(ct), ct->prefix, strlen(ct->prefix));
  else
    memcpy(ct->data + ct->data_len - LK_UUID_LEN, ct->prefix, LK_UUID_LEN);
}

/* Room for both is behind the node's name. */
static void join_data(lk_contend *ct, lk_bytes data)
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
  lk_contend *ct = arg;

  (void)c;
  lk__contend_ref(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contend_go(ct);
  lk__contend_unref(ct);
}

static lk_contend *of(lk_attempt *a)
{
  return a->parts[0];
}

static void begin_attempt(lk_attempt *a)
{
  lk__contend_begin(of(a));
}

static void stop_attempt(lk_attempt *a, bool tell)
{
  lk__contend_stop(of(a), tell);
}

static void disown_attempt(lk_attempt *a)
{
  of(a)->owner = NULL;
}

static void ref_attempt(lk_attempt *a)
{
  lk__contend_ref(of(a));
}

static void unref_attempt(lk_attempt *a)
{
  lk__contend_unref(of(a));
}

static const lk_attempt_kind one_node = {.begin = begin_attempt,
                                         .stop = stop_attempt,
                                         .disown = disown_attempt,
                                         .ref = ref_attempt,
                                         .unref = unref_attempt};

lk_contend *lk__contend_new(lk_keeper *k, const lk_contend_config *config,
                            const lk_owner *owner, void *arg)
{
  bool fixed = config->unique == LK_UNIQUE_NOT;
  const char *mark = fixed ? config->fixed->name : config->role->mark->text;
  bool in_data = config->unique == LK_UNIQUE_DATA;
  size_t dir_len = strlen(config->dir);
  size_t base_len =
      dir_len + 1 + lk__name_prefix_len(config->unique) + strlen(mark);
  size_t data_len = in_data ? config->data.len + 1 + LK_UUID_LEN : 0;
  lk_contend *ct = lk__take(&k->mem, sizeof *ct + dir_len + 1 + base_len +
                                         LK_SUFFIX_MAX + 1 + data_len);

  if (ct == NULL)
    return NULL;
  ct->self = ct;
  ct->attempt = (lk_attempt){
      .kind = &one_node, .whole = true, .parts = &ct->self, .count = 1};
  ct->lease = k;
  ct->refs = 1;
  ct->owner = owner;
  ct->owner_arg = arg;
  ct->config = config;
  ct->role = config->role;
  ct->unique = config->unique;
  ct->by_children = ct->role->counts;
  ct->state = LK_CONTEND_IDLE;
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

void lk__contend_ref(lk_contend *ct)
{
  ct->refs++;
}

void lk__contend_unref(lk_contend *ct)
{
  lk_keeper *k = ct->lease;

  if (--ct->refs > 0)
    return;
  if (ct->beside != NULL)
    lk__contend_unref(ct->beside);
  lk__search_free(ct);
  lk__give(&k->mem, ct->ahead.block);
  lk__give(&k->mem, ct);
  lk__lease_unref(k);
}

lk_bytes lk__contend_base(const lk_contend *ct)
{
  return lk_bytes_of(lk__contend_name(ct), ct->base_len - strlen(ct->dir) - 1);
}

lk_bytes lk__contend_data(const lk_contend *ct)
{
  return ct->data == NULL ? ct->config->data
                          : lk_bytes_of(ct->data, ct->data_len);
}

bool lk__contend_doubtful(const lk_contend *ct)
{
  return lk__name_is_shared(ct->unique) &&
         ct->seen_on != lk_client_connection(lk__contend_client(ct));
}

lk_client *lk__contend_client(const lk_contend *ct)
{
  return ct->lease->client;
}

bool lk__contend_holds(const lk_contend *ct)
{
  return ct->state == LK_CONTEND_HELD || ct->state == LK_CONTEND_UNSURE;
}

uint64_t lk__contend_token(const lk_contend *ct)
{
  return ct->lent != 0 ? ct->lent : ct->token;
}

/* ---- requests and their answers ---------------------------------------- */

int lk__contend_asked(lk_contend *ct, int err)
{
  if (err == 0) {
    ct->asked++;
    lk__contend_ref(ct);
  }
  return err;
}

bool lk__contend_answered(lk_contend *ct)
{
  return ++ct->answered > ct->outdated;
}

void lk__contend_outdate(lk_contend *ct)
{
  ct->outdated = ct->asked;
}

void lk__contend_drop_watches(lk_contend *ct)
{
  bool others = lk__contend_is_fixed(ct) && ct->own != LK_OWN_MADE;

  /* The one on own goes with own; the other would stay on the server. */
  if (ct->own_watch != NULL)
    lk_watch_cancel(lk__contend_client(ct), ct->own_watch, others);
  if (ct->pred_watch != NULL)
    lk_watch_cancel(lk__contend_client(ct), ct->pred_watch, true);
  ct->own_watch = NULL;
  ct->pred_watch = NULL;
  ct->watched_on = 0;
}

/* ---- pauses ------------------------------------------------------------ */

void lk__contend_rest(lk_contend *ct, int64_t ms)
{
  lk_client *c = lk__contend_client(ct);

  lk__lease_start_timer(ct->lease, &ct->rest, lk_client_clock(c) + ms);
}

int64_t lk__contend_rest_ms(lk_contend *ct)
{
  int64_t ms = (int64_t)REST_MS << ct->rests;
  uint16_t jitter;

  if (ct->rests < MAX_REST_DOUBLINGS)
    ct->rests++;
  lk_client_random(lk__contend_client(ct), &jitter, sizeof jitter);
  return ms + jitter % ms;
}

void lk__contend_trouble(lk_contend *ct, int err)
{
  ct->too_long = ct->too_long || err == LK_ERR_TOO_BIG;
  switch (lk__trouble_of(err)) {
  case LK_TROUBLE_BROKEN: lk__contend_step(ct, LK_EV_HALT); break;
  case LK_TROUBLE_BUSY:
    lk__contend_rest(ct, lk__contend_rest_ms(ct));
    lk__contend_step(ct, LK_EV_HALT);
    break;
  case LK_TROUBLE_FATAL: lk__contend_end(ct, err); break;
  }
}

bool lk__contend_too_big(lk_contend *ct, int err)
{
  if (err != LK_ERR_TOO_BIG || ct->state != LK_CONTEND_PAUSED)
    return false;
  lk__contend_trouble(ct, err);
  return true;
}

/* ---- what happens to it ------------------------------------------------ */

/* Own does not exist. Where it may have to go again at once a look comes
 * first; not where somebody else asks for it, or holds for us. */
static lk_contend_event first_step(const lk_contend *ct)
{
  bool choosy = ct->config->once || ct->config->max_queue > 0;
  bool looks = ct->occupied || (ct->config->peek && choosy);

  return looks && ct->own == LK_OWN_NONE && ct->beside == NULL ? LK_EV_PEEK
                                                               : LK_EV_NEW;
}

void lk__contend_begin(lk_contend *ct)
{
  if (lk__lease_is_online(ct->lease))
    lk__contend_step(ct, first_step(ct));
  else
    lk__contend_step(ct, LK_EV_HALT);
}

void lk__contend_go(lk_contend *ct)
{
  if (ct->state == LK_CONTEND_LEAVING) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->state != LK_CONTEND_PAUSED)
    return;
  lk__lease_stop_timer(ct->lease, &ct->rest);
  ct->checked = false;
  switch (ct->own) {
  case LK_OWN_NONE: lk__contend_step(ct, first_step(ct)); break;
  case LK_OWN_MAYBE: lk__contend_step(ct, LK_EV_MAYBE); break;
  case LK_OWN_MADE: lk__contend_step(ct, LK_EV_MADE); break;
  case LK_OWN_ASKED: /* only while it is under way */
    lk__contend_rest(ct, lk__contend_rest_ms(ct));
    break;
  }
}

static void doubt_held(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_SUSPENDED,
                  .deadline_ms = lk__contend_deadline(ct)};

  ct->proven = false;
  ct->read_due_ms = lk_client_now(lk__contend_client(ct));
  lk__contend_tell(ct, &news);
  lk__contend_review(ct);
}

void lk__contend_break(lk_contend *ct)
{
  if (lk__contend_holds(ct))
    doubt_held(ct);
  else
    lk__contend_step(ct, LK_EV_HALT);
}

/* Own is gone; what is under way was for it. */
static void forget_own(lk_contend *ct)
{
  lk__contend_outdate(ct);
  lk__contend_drop_watches(ct);
  ct->own = LK_OWN_NONE;
  ct->token = 0;
  ct->lent = 0;
  ct->unreadable = false;
  ct->checked = false;
  ct->revoked = false;
  ct->told_position = 0;
}

/* Another attempt at another node. */
static void renew(lk_contend *ct)
{
  ct->by_children = ct->role->counts;
  ct->node[ct->base_len] = '\0';
  draw_name(ct);
}

void lk__contend_expire(lk_contend *ct)
{
  bool made = ct->own == LK_OWN_MADE;
  lk_news news = {.type = LK_NEWS_PLACE_LOST, .err = LK_ERR_SESSION_EXPIRED};

  if (lk__contend_holds(ct)) {
    lk__contend_lost(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  forget_own(ct);
  if (ct->state == LK_CONTEND_LEAVING) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contend_end(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  renew(ct);
  lk__contend_step(ct, LK_EV_HALT);
  if (made)
    lk__contend_tell(ct, &news);
}

void lk__contend_close(lk_contend *ct, int err)
{
  const lk_owner *owner = ct->owner;
  bool leaving = ct->state == LK_CONTEND_LEAVING;

  if (lk__contend_holds(ct)) {
    lk__contend_lost(ct, err);
    return;
  }
  ct->owner = NULL;
  lk__contend_outdate(ct);
  lk__contend_step(ct, LK_EV_GONE);
  if (owner != NULL && leaving)
    owner->gone(ct->owner_arg, err);
  else if (owner != NULL)
    owner->ended(ct->owner_arg, err);
}

void lk__contend_absent(lk_contend *ct, int err)
{
  lk_news news = {.type = LK_NEWS_PLACE_LOST, .err = err};

  forget_own(ct);
  if (++ct->misses == MAX_MISSES) {
    lk__contend_end(ct, err);
    return;
  }
  renew(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contend_step(ct, LK_EV_ABSENT);
  else
    lk__contend_step(ct, LK_EV_HALT);
  lk__contend_tell(ct, &news);
}

void lk__contend_stop(lk_contend *ct, bool tell)
{
  if (!tell)
    ct->owner = NULL;
  /* The answer to a create under way is what tells the node's name. */
  if (ct->own != LK_OWN_ASKED)
    lk__contend_outdate(ct);
  lk__contend_drop_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->rest);
  lk__contend_step(ct, LK_EV_STOP);
}

void lk__contend_end(lk_contend *ct, int err)
{
  const lk_owner *owner = ct->owner;
  void *arg = ct->owner_arg;

  lk__contend_stop(ct, false);
  if (owner != NULL)
    owner->ended(arg, err);
}

void lk__contend_recount(lk_contend *ct)
{
  if (ct->state == LK_CONTEND_WAITING)
    lk__contend_step(ct, LK_EV_AGAIN);
  else
    ct->recount = true; /* a list that is still to come shows it, too */
}

void lk__contend_tell(lk_contend *ct, const lk_news *news)
{
  if (ct->owner != NULL)
    ct->owner->news(ct->owner_arg, news);
}

void lk__contend_tell_position(lk_contend *ct)
{
  lk_news news = {.type = LK_NEWS_WAITING,
                  .position = ct->ahead.count,
                  .node = ct->ahead.head};

  if (ct->told_position == ct->ahead.count)
    return;
  ct->told_position = ct->ahead.count;
  lk__contend_tell(ct, &news);
}
