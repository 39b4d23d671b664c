/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"

enum { MAX_MISSES = 3, REST_MS = 50, MAX_REST_DOUBLINGS = 4 };

/* ---- life -------------------------------------------------------------- */

static void own_node_draw_name(lk_contender *ct)
{
  unsigned char random[16];

  if (lk__contender_is_single_node(ct))
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  lk__name_prefix(ct->own.identity, ct->own.unique_part, random);
  if (ct->own.data == NULL)
    memcpy(lk__contender_own_name(ct), ct->own.unique_part,
           strlen(ct->own.unique_part));
  else
    memcpy(ct->own.data + ct->own.data_len - LK_UUID_LEN, ct->own.unique_part,
           LK_UUID_LEN);
}

/* Room for both is behind the node's name. */
static void own_node_set_data(lk_contender *ct, lk_bytes data)
{
  ct->own.data = ct->own.path + ct->own.base_len + LK_SUFFIX_MAX + 1;
  ct->own.data_len = data.len + (data.len > 0) + LK_UUID_LEN;
  if (data.len == 0)
    return;
  memcpy(ct->own.data, data.at, data.len);
  ct->own.data[data.len] = ' ';
}

static void on_pause_end(lk_client *c, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  lk__contender_ref(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_resume(ct);
  lk__contender_unref(ct);
}

static lk_contender *contender_of(lk_acquisition *a)
{
  return a->parts[0];
}

static void contender_begin(lk_acquisition *a)
{
  lk__contender_begin(contender_of(a));
}

static void contender_stop(lk_acquisition *a, bool tell)
{
  lk__contender_stop(contender_of(a), tell);
}

static void contender_remove_callbacks(lk_acquisition *a)
{
  contender_of(a)->callbacks = NULL;
}

static void contender_ref(lk_acquisition *a)
{
  lk__contender_ref(contender_of(a));
}

static void contender_unref(lk_acquisition *a)
{
  lk__contender_unref(contender_of(a));
}

static const lk_acquisition_kind acquisition_of_one_node = {
    .begin = contender_begin,
    .stop = contender_stop,
    .disown = contender_remove_callbacks,
    .ref = contender_ref,
    .unref = contender_unref};

lk_contender *lk__contender_new(lk_session_lease *k,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
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
  ct->acquisition = (lk_acquisition){.kind = &acquisition_of_one_node,
                                     .whole = true,
                                     .parts = &ct->self,
                                     .count = 1};
  ct->lease = k;
  ct->refs = 1;
  ct->callbacks = callbacks;
  ct->callbacks_arg = arg;
  ct->config = config;
  ct->role = config->role;
  ct->own.identity = config->unique;
  ct->wait.watches_directory = ct->role->counts;
  ct->state = LK_CONTENDER_IDLE;
  ct->own.base_len = base_len;
  ct->pause.timer.fire = on_pause_end;
  ct->pause.timer.arg = ct;
  ct->own.dir = (char *)(ct + 1);
  ct->own.path = ct->own.dir + dir_len + 1;
  memcpy(ct->own.dir, config->dir, dir_len + 1);
  memcpy(ct->own.path, config->dir, dir_len);
  ct->own.path[dir_len] = '/';
  memcpy(ct->own.path + base_len - strlen(mark), mark, strlen(mark) + 1);
  if (in_data)
    own_node_set_data(ct, config->data);
  own_node_draw_name(ct);
  lk__lease_add_contender(k, ct);
  return ct;
}

void lk__contender_ref(lk_contender *ct)
{
  ct->refs++;
}

void lk__contender_unref(lk_contender *ct)
{
  lk_session_lease *k = ct->lease;

  if (--ct->refs > 0)
    return;
  if (ct->downgrade.writer != NULL)
    lk__contender_unref(ct->downgrade.writer);
  lk__candidates_free(ct);
  lk__give(&k->mem, ct->predecessors.block);
  lk__give(&k->mem, ct);
  lk__lease_unref(k);
}

lk_bytes lk__contender_name_base(const lk_contender *ct)
{
  return lk_bytes_of(lk__contender_own_name(ct),
                     ct->own.base_len - strlen(ct->own.dir) - 1);
}

lk_bytes lk__contender_data(const lk_contender *ct)
{
  return ct->own.data == NULL ? ct->config->data
                              : lk_bytes_of(ct->own.data, ct->own.data_len);
}

bool lk__contender_own_unverified(const lk_contender *ct)
{
  return lk__name_is_shared(ct->own.identity) &&
         ct->own.verified_on != lk_client_connection(lk__contender_client(ct));
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
  return ct->downgrade.writer_token != 0 ? ct->downgrade.writer_token
                                         : ct->own.token;
}

/* ---- requests and their answers ---------------------------------------- */

int lk__contender_count_request(lk_contender *ct, int err)
{
  if (err == 0) {
    ct->requests.sent++;
    lk__contender_ref(ct);
  }
  return err;
}

bool lk__contender_take_reply(lk_contender *ct)
{
  return ++ct->requests.replied > ct->requests.ignored;
}

void lk__contender_ignore_replies(lk_contender *ct)
{
  ct->requests.ignored = ct->requests.sent;
}

void lk__contender_cancel_watches(lk_contender *ct)
{
  bool others =
      lk__contender_is_single_node(ct) && ct->own.state != LK_OWN_CREATED;

  /* The one on own goes with own; the other would stay on the server. */
  if (ct->own.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->own.watch, others);
  if (ct->wait.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->wait.watch, true);
  ct->own.watch = NULL;
  ct->wait.watch = NULL;
  ct->own.watched_on = 0;
}

/* ---- pauses ------------------------------------------------------------ */

void lk__contender_start_pause(lk_contender *ct, int64_t ms)
{
  lk_client *c = lk__contender_client(ct);

  lk__lease_start_timer(ct->lease, &ct->pause.timer, lk_client_clock(c) + ms);
}

int64_t lk__contender_pause_ms(lk_contender *ct)
{
  int64_t ms = (int64_t)REST_MS << ct->pause.count;
  uint16_t jitter;

  if (ct->pause.count < MAX_REST_DOUBLINGS)
    ct->pause.count++;
  lk_client_random(lk__contender_client(ct), &jitter, sizeof jitter);
  return ms + jitter % ms;
}

void lk__contender_request_failed(lk_contender *ct, int err)
{
  ct->cleanup.too_big = ct->cleanup.too_big || err == LK_ERR_TOO_BIG;
  switch (lk__error_advice(lk__contender_client(ct), err)) {
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
static lk_contender_event contender_first_event(const lk_contender *ct)
{
  bool choosy = ct->config->once || ct->config->max_queue > 0;
  bool looks = ct->wait.node_is_foreign || (ct->config->peek && choosy);

  return looks && ct->own.state == LK_OWN_NONE && ct->downgrade.writer == NULL
             ? LK_CONTENDER_ON_LIST_FIRST
             : LK_CONTENDER_ON_START;
}

void lk__contender_begin(lk_contender *ct)
{
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, contender_first_event(ct));
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
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  ct->round.checked = false;
  switch (ct->own.state) {
  case LK_OWN_NONE: lk__contender_step(ct, contender_first_event(ct)); break;
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

static void contender_suspend_held(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_SUSPENDED,
                      .deadline_ms = lk__contender_deadline(ct)};

  ct->holding.proven = false;
  ct->holding.watch_due_ms = lk_client_now(lk__contender_client(ct));
  lk__contender_notify(ct, &notice);
  lk__contender_review_lease(ct);
}

void lk__contender_suspend(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    contender_suspend_held(ct);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

/* Own is gone; what is under way was for it. */
static void own_node_forget(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  ct->own.state = LK_OWN_NONE;
  ct->own.token = 0;
  ct->downgrade.writer_token = 0;
  ct->own.unreadable = false;
  ct->round.checked = false;
  ct->holding.revoked = false;
  ct->wait.reported_position = 0;
}

/* Another attempt at another node. */
static void own_node_renew(lk_contender *ct)
{
  ct->wait.watches_directory = ct->role->counts;
  ct->own.path[ct->own.base_len] = '\0';
  own_node_draw_name(ct);
}

void lk__contender_session_expired(lk_contender *ct)
{
  bool made = ct->own.state == LK_OWN_CREATED;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST,
                      .err = LK_ERR_SESSION_EXPIRED};

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  own_node_forget(ct);
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  own_node_renew(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  if (made)
    lk__contender_notify(ct, &notice);
}

void lk__contender_client_closed(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  bool leaving = ct->state == LK_CONTENDER_CLEANING_UP;

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, err);
    return;
  }
  ct->callbacks = NULL;
  lk__contender_ignore_replies(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_OWN_GONE);
  if (callbacks != NULL && leaving)
    callbacks->gone(ct->callbacks_arg, err);
  else if (callbacks != NULL)
    callbacks->ended(ct->callbacks_arg, err);
}

void lk__contender_own_missing(lk_contender *ct, int err)
{
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST, .err = err};

  own_node_forget(ct);
  if (++ct->own.misses == MAX_MISSES) {
    lk__contender_fail(ct, err);
    return;
  }
  own_node_renew(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  lk__contender_notify(ct, &notice);
}

void lk__contender_stop(lk_contender *ct, bool tell)
{
  if (!tell)
    ct->callbacks = NULL;
  /* The answer to a create under way is what tells the node's name. */
  if (ct->own.state != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  lk__contender_step(ct, LK_CONTENDER_ON_STOP);
}

void lk__contender_fail(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;

  lk__contender_stop(ct, false);
  if (callbacks != NULL)
    callbacks->ended(arg, err);
}

void lk__contender_limit_changed(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else
    ct->wait.limit_changed =
        true; /* a list that is still to come shows it, too */
}

void lk__contender_notify(lk_contender *ct, const lk_notice *notice)
{
  if (ct->callbacks != NULL)
    ct->callbacks->notice(ct->callbacks_arg, notice);
}

void lk__contender_notify_position(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = ct->predecessors.count,
                      .node = ct->predecessors.head};

  if (ct->wait.reported_position == ct->predecessors.count)
    return;
  ct->wait.reported_position = ct->predecessors.count;
  lk__contender_notify(ct, &notice);
}
