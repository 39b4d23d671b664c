/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/error_advice.h"
#include "recipes/nodes/subscription_requests.h"

/*
 * Reads a node with a one-shot watch, and reads it again whenever the watch
 * fires. Each read sets the next watch in the same request, so no change is
 * missed. A read of a missing node sets no watch. So an exists request follows,
 * which does. At most one request is under way.
 */

/* A pause lasts at least PAUSE_MS, which is doubled up to MAX_PAUSE_DOUBLINGS
 * times: 25.6 s. Up to as much again is added at random. */
enum { PAUSE_MS = 100, MAX_PAUSE_DOUBLINGS = 8 };

/* ---- timer ------------------------------------------------------------- */

void lk__subscription_start_timer(lk_subscription *s, int64_t in_ms)
{
  lk_timer_start(s->client, &s->timer, lk_client_clock(s->client) + in_ms);
}

static int64_t subscription_random_below(const lk_subscription *s,
                                         int64_t below)
{
  uint32_t n;

  lk_client_random(s->client, &n, sizeof n);
  return n % below;
}

static void subscription_pause(lk_subscription *s)
{
  int64_t ms = (int64_t)PAUSE_MS << s->pause_doublings;

  if (s->pause_doublings < MAX_PAUSE_DOUBLINGS)
    s->pause_doublings++;
  s->pausing = true;
  lk__subscription_start_timer(s, ms + subscription_random_below(s, ms));
}

/* A request is sent now, and its reply starts the timer again. If the
 * connection breaks before the reply, the next one starts a read. */
static void subscription_stop_timer(lk_subscription *s)
{
  s->pausing = false;
  lk_timer_stop(s->client, &s->timer);
}

/* A watch is set, and no request is needed until it fires or a check is due.
 * The time until the check is shortened by up to a quarter at random, so that
 * the checks of many clients spread out. */
static void subscription_schedule_check(lk_subscription *s)
{
  s->pause_doublings = 0;
  if (s->check_ms > 0)
    lk__subscription_start_timer(
        s, s->check_ms - subscription_random_below(s, s->check_ms / 4));
}

/* ---- requests ---------------------------------------------------------- */

static void subscription_on_names(lk_client *c, int err, const lk_bytes *names,
                                  size_t count, const lk_stat *stat, void *arg);
static void subscription_on_data(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg);
static void subscription_on_exists(lk_client *c, int err, const lk_stat *stat,
                                   void *arg);
static void subscription_on_check(lk_client *c, int err, const lk_stat *stat,
                                  void *arg);
static void subscription_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg);

/* After a lost connection or session, the next connection starts a new read. A
 * reply that is too big for the client breaks its connection each time, so the
 * pause after that error has the full length at once. After an error with the
 * advice to give up, the error is reported and the read is still retried. */
static void subscription_request_failed(lk_subscription *s, int err)
{
  lk_advice advice = lk__error_advice(s->client, err);

  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (err == LK_ERR_REPLY_TOO_BIG)
    s->pause_doublings = MAX_PAUSE_DOUBLINGS;
  subscription_pause(s);
  if (advice == LK_ADVICE_GIVE_UP)
    lk__subscription_report_error(s, err);
}

/* Note that a request was sent, unless it was refused with `err`. Returns
 * `err`. */
static int subscription_note_request(lk_subscription *s, int err)
{
  if (err != 0)
    return err;
  s->request_sent = true;
  lk__subscription_ref(s);
  return 0;
}

static lk_call subscription_watch_options(lk_subscription *s)
{
  return (lk_call){.size = sizeof(lk_call),
                   .until_disconnect = true,
                   .on_event = subscription_on_event,
                   .watch_arg = s,
                   .watch = &s->watch};
}

static void subscription_remove_watch(lk_subscription *s, bool on_server)
{
  if (s->watch != NULL)
    lk_watch_cancel(s->client, s->watch, on_server);
  s->watch = NULL;
}

void lk__subscription_cancel_watch(lk_subscription *s)
{
  const bool on_server = true;

  subscription_remove_watch(s, on_server);
}

void lk__subscription_forget_watch(lk_subscription *s)
{
  const bool on_server = false;

  subscription_remove_watch(s, on_server);
}

int lk__subscription_request_node(lk_subscription *s)
{
  lk_call call = subscription_watch_options(s);

  return subscription_note_request(
      s,
      s->on_children != NULL
          ? lk_get_children(s->client, s->path, &call, subscription_on_names, s)
          : lk_get(s->client, s->path, &call, subscription_on_data, s));
}

void lk__subscription_read(lk_subscription *s)
{
  subscription_stop_timer(s);
  lk__subscription_cancel_watch(s);
  int err = lk__subscription_request_node(s);

  if (err != 0)
    subscription_request_failed(s, err);
}

/* Watch for the creation of the missing node. */
static void subscription_await_creation(lk_subscription *s)
{
  lk_call call = subscription_watch_options(s);

  subscription_stop_timer(s);
  int err = subscription_note_request(
      s, lk_exists(s->client, s->path, &call, subscription_on_exists, s));

  if (err != 0)
    subscription_request_failed(s, err);
}

void lk__subscription_check(lk_subscription *s)
{
  const lk_call *no_watch = NULL;
  int err = subscription_note_request(
      s, lk_exists(s->client, s->path, no_watch, subscription_on_check, s));

  if (err != 0)
    subscription_request_failed(s, err);
}

/* ---- replies ----------------------------------------------------------- */

/* false: the subscription has ended. */
static bool subscription_replied(lk_subscription *s)
{
  s->request_sent = false;
  return s->client != NULL;
}

static void subscription_node_absent(lk_subscription *s)
{
  lk__subscription_report_error(s, LK_ERR_NO_NODE);
  if (s->client != NULL)
    subscription_await_creation(s);
}

static void subscription_read_failed(lk_subscription *s, int err)
{
  s->watch = NULL; /* a read that fails sets no watch */
  if (err == LK_ERR_NO_NODE)
    subscription_node_absent(s);
  else
    subscription_request_failed(s, err);
}

/* Returns whether the state of the node is to be reported. */
static bool subscription_read_replied(lk_subscription *s, int err,
                                      const lk_stat *stat)
{
  if (!subscription_replied(s))
    return false;
  if (err != 0) {
    subscription_read_failed(s, err);
    return false;
  }
  subscription_schedule_check(s);
  return lk__subscription_record_state(s, 0, stat);
}

static void subscription_on_names(lk_client *c, int err, const lk_bytes *names,
                                  size_t count, const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_read_replied(s, err, stat))
    s->on_children(s, 0, names, count, stat, s->arg);
  lk__subscription_unref(s);
}

static void subscription_on_data(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_read_replied(s, err, stat))
    s->on_data(s, 0, data, stat, s->arg);
  lk__subscription_unref(s);
}

/* If the node was created before the exists, the exists has set a watch on the
 * node's data. The read replaces that watch. */
static void subscription_exists_replied(lk_subscription *s, int err)
{
  if (err == 0) {
    lk__subscription_read(s);
  } else if (err == LK_ERR_NO_NODE) {
    subscription_schedule_check(s);
    /* The node may have been reported as missing after the read. An unchanged
     * state is not reported again. */
    lk__subscription_report_error(s, err);
  } else {
    s->watch = NULL; /* after another error no watch is set */
    subscription_request_failed(s, err);
  }
}

static void subscription_on_exists(lk_client *c, int err, const lk_stat *stat,
                                   void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)stat;
  if (subscription_replied(s))
    subscription_exists_replied(s, err);
  lk__subscription_unref(s);
}

/* The node is read again if the watch has fired during the check. If it has not
 * fired and the state differs from the reported one, the server has lost the
 * watch: then the node is read as well. */
static void subscription_check_replied(lk_subscription *s, int err,
                                       const lk_stat *stat)
{
  lk_advice advice = lk__error_advice(s->client, err);
  /* LK_ADVICE_GIVE_UP is the advice for success, for LK_ERR_NO_NODE, and for
   * all other errors that a subscription reports. If the caller does not know
   * this error yet, the read that follows reports it. */
  bool shows_state = advice == LK_ADVICE_GIVE_UP;
  lk_node_state state = lk__subscription_state_of_reply(s, err, stat);
  bool fired_meanwhile = s->fired_meanwhile;

  s->fired_meanwhile = false;
  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (fired_meanwhile ||
      (shows_state && !lk__subscription_was_reported(s, &state)))
    lk__subscription_read(s);
  else
    subscription_schedule_check(s);
}

static void subscription_on_check(lk_client *c, int err, const lk_stat *stat,
                                  void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_replied(s))
    subscription_check_replied(s, err, stat);
  lk__subscription_unref(s);
}

/* ---- watch ------------------------------------------------------------- */

static void subscription_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)w;
  s->watch = NULL;
  if (event->type == LK_EVENT_ENDED)
    return;
  lk__subscription_ref(s);
  /* A request under way is a check: only a check is sent while a watch is set.
   * Its reply starts the read. */
  if (s->request_sent)
    s->fired_meanwhile = true;
  else if (event->type == LK_EVENT_DELETED)
    subscription_await_creation(s);
  else
    lk__subscription_read(s);
  lk__subscription_unref(s);
}
