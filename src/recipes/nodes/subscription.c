/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/subscribe.h>

#include "base/mem.h"
#include "proto/engine/lease_slot.h"
#include "recipes/call.h"
#include "recipes/error_advice.h"
#include "recipes/retry.h"

/**
 * @file
 * A subscription reads a node with a one-shot watch, and reads it again
 * whenever the watch fires. Each read sets the next watch in the same request,
 * so no change is missed. A read of a missing node sets no watch. So an exists
 * request follows, which does. At most one request is under way. A state of the
 * node is reported only if it differs from the last reported one.
 */

enum { FIRST_PAUSE_MS = 100, MAX_PAUSE_MS = 25600 };

/* The interval between checks is at most a day. */
enum {
  NO_CHECKS = -1,
  DEFAULT_CHECK_MS = 60000,
  MIN_CHECK_MS = 100,
  MAX_CHECK_MS = 24 * 3600 * 1000
};

/* Identifies a state of the node. Two states are equal if all members are. */
typedef struct lk_node_state {
  int err;         /* LK_ERR_NO_NODE or another error; 0: the node exists */
  int64_t czxid;   /* differs for a node that was deleted and created again */
  int64_t zxid;    /* of the last change of the children or data */
  int32_t version; /* several changes can have one zxid */
} lk_node_state;

struct lk_subscription {
  lk_client *client;
  bool over; /* ended or freed: no request is sent any more */
  lk_subscribe_children_cb on_children; /* NULL: a subscription to the data */
  lk_subscribe_data_cb on_data;         /* NULL: one to the children */
  void *arg;
  size_t refs;          /* of the caller, the request and running callbacks */
  bool request_sent;    /* a request is under way */
  bool fired_meanwhile; /* the watch fired during that request */
  bool reported;        /* a state was reported */
  lk_node_state last_reported; /* valid if `reported` */
  lk_watch *watch;             /* NULL: no watch is set or requested */
  lk_listener listener;
  lk_timer timer; /* ends a pause, or starts a check */
  bool pausing;   /* no request before `timer` fires, even after a reconnect */
  int64_t check_ms; /* time between checks; -1: no checks */
  lk_backoff backoff;
  char path[];
};

/* ---- references ---------------------------------------------------------- */

static void subscription_ref(lk_subscription *s)
{
  s->refs++;
}

/* Give back a reference. The last one frees the subscription. */
static void subscription_unref(lk_subscription *s)
{
  lk_client *c = s->client;

  if (--s->refs > 0)
    return;
  lk__mem_free(lk_client_mem(c), s);
  lk__client_unref(c);
}

/* ---- reports ------------------------------------------------------------- */

/* The state that a reply with `err` and `stat` shows. */
static lk_node_state subscription_state_of_reply(const lk_subscription *s,
                                                 int err, const lk_stat *stat)
{
  if (err != 0)
    return (lk_node_state){.err = err};
  if (s->on_children != NULL)
    return (lk_node_state){
        .czxid = stat->czxid, .zxid = stat->pzxid, .version = stat->cversion};
  return (lk_node_state){
      .czxid = stat->czxid, .zxid = stat->mzxid, .version = stat->version};
}

/* Whether `state` is the state that was last reported. */
static bool subscription_was_reported(const lk_subscription *s,
                                      const lk_node_state *state)
{
  return s->reported && s->last_reported.err == state->err &&
         s->last_reported.czxid == state->czxid &&
         s->last_reported.zxid == state->zxid &&
         s->last_reported.version == state->version;
}

/* Keep the state of a reply as the last reported one; the function that calls
   this then reports it. false: the same state was reported before. */
static bool subscription_record_state(lk_subscription *s, int err,
                                      const lk_stat *stat)
{
  lk_node_state state = subscription_state_of_reply(s, err, stat);

  if (subscription_was_reported(s, &state))
    return false;
  s->reported = true;
  s->last_reported = state;
  return true;
}

/* Invoke the callback with `err`, unless `err` was the last report. */
static void subscription_report_error(lk_subscription *s, int err)
{
  const lk_bytes *no_content = NULL;
  const lk_stat *no_stat = NULL;

  if (!subscription_record_state(s, err, no_stat))
    return;
  if (s->on_children != NULL)
    s->on_children(s, err, no_content, 0, no_stat, s->arg);
  else
    s->on_data(s, err, no_content, no_stat, s->arg);
}

/* ---- pauses and checks --------------------------------------------------- */

/* Start the timer, which fires `in_ms` from now. */
static void subscription_start_timer(lk_subscription *s, int64_t in_ms)
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
  s->pausing = true;
  subscription_start_timer(s, lk__backoff_draw(&s->backoff, s->client));
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
  lk__backoff_reset(&s->backoff);
  if (s->check_ms > 0)
    subscription_start_timer(
        s, s->check_ms - subscription_random_below(s, s->check_ms / 4));
}

/* ---- the watch ----------------------------------------------------------- */

static void subscription_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg);

static lk_call subscription_watch_options(lk_subscription *s)
{
  return (lk_call){.size = sizeof(lk_call),
                   .until_disconnect = true,
                   .on_event = subscription_on_event,
                   .watch_arg = s,
                   .watch = &s->watch};
}

/* Remove the watch, if there is one, from the server, too. */
static void subscription_remove_watch(lk_subscription *s)
{
  if (s->watch != NULL)
    (void)lk_watch_remove(s->client, s->watch, NULL, NULL);
  s->watch = NULL;
}

/* Cancel the watch, if there is one, in the client only. */
static void subscription_cancel_watch(lk_subscription *s)
{
  lk_watch_cancel(s->client, s->watch);
  s->watch = NULL;
}

/* ---- requests ------------------------------------------------------------ */

/* Note that a request was sent, unless it was refused with `err`. Returns
 * `err`. */
static int subscription_note_request(lk_subscription *s, int err)
{
  if (err != 0)
    return err;
  s->request_sent = true;
  subscription_ref(s);
  return 0;
}

/* false: the subscription has ended. */
static bool subscription_replied(lk_subscription *s)
{
  s->request_sent = false;
  return !s->over;
}

/* After a lost connection or session, the next connection starts a new read. A
 * reply that is too big for the client breaks its connection each time, so the
 * pause after that error has the full length at once. After an error with the
 * advice to give up, the error is reported and the read is still retried. */
static void subscription_request_failed(lk_subscription *s, int err)
{
  lk_advice advice = lk__error_advice(s->client, err);

  if (advice == LK_ADVICE_AWAIT_CONNECTION ||
      lk__client_end_err(s->client) != 0)
    return;
  if (err == LK_ERR_REPLY_TOO_BIG)
    s->backoff.next_ms = MAX_PAUSE_MS;
  subscription_pause(s);
  if (advice == LK_ADVICE_GIVE_UP)
    subscription_report_error(s, err);
}

/* ---- the wait for a missing node ----------------------------------------- */

static void subscription_read(lk_subscription *s);

/* If the node was created before the exists, the exists has set a watch on the
 * node's data. The read replaces that watch. */
static void subscription_exists_replied(lk_subscription *s, int err)
{
  if (err == 0) {
    subscription_read(s);
  } else if (err == LK_ERR_NO_NODE) {
    subscription_schedule_check(s);
    /* The node may have been reported as missing after the read. An unchanged
     * state is not reported again. */
    subscription_report_error(s, err);
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
  subscription_unref(s);
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

/* ---- reads --------------------------------------------------------------- */

static void subscription_node_absent(lk_subscription *s)
{
  subscription_report_error(s, LK_ERR_NO_NODE);
  if (!s->over)
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
  return subscription_record_state(s, 0, stat);
}

static void subscription_on_names(lk_client *c, int err, const lk_bytes *names,
                                  size_t count, const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_read_replied(s, err, stat))
    s->on_children(s, 0, names, count, stat, s->arg);
  subscription_unref(s);
}

static void subscription_on_data(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_read_replied(s, err, stat))
    s->on_data(s, 0, data, stat, s->arg);
  subscription_unref(s);
}

/* Send a read of the node, with a watch. Returns 0, or why the request was
   refused. */
static int subscription_request_node(lk_subscription *s)
{
  lk_call call = subscription_watch_options(s);

  return subscription_note_request(
      s,
      s->on_children != NULL
          ? lk_get_children(s->client, s->path, &call, subscription_on_names, s)
          : lk_get(s->client, s->path, &call, subscription_on_data, s));
}

/* Cancel the present watch and send a read with a new one. A refused request
   is retried after a pause. */
static void subscription_read(lk_subscription *s)
{
  subscription_stop_timer(s);
  subscription_remove_watch(s);
  int err = subscription_request_node(s);

  if (err != 0)
    subscription_request_failed(s, err);
}

/* ---- checks -------------------------------------------------------------- */

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
  lk_node_state state = subscription_state_of_reply(s, err, stat);
  bool fired_meanwhile = s->fired_meanwhile;

  s->fired_meanwhile = false;
  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (fired_meanwhile || (shows_state && !subscription_was_reported(s, &state)))
    subscription_read(s);
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
  subscription_unref(s);
}

/* Send an exists, which shows whether the watch is lost. */
static void subscription_check(lk_subscription *s)
{
  const lk_call *no_watch = NULL;
  int err = subscription_note_request(
      s, lk_exists(s->client, s->path, no_watch, subscription_on_check, s));

  if (err != 0)
    subscription_request_failed(s, err);
}

/* ---- events -------------------------------------------------------------- */

static void subscription_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg)
{
  lk_subscription *s = arg;
  bool connection_is_lost =
      event->type == LK_EVENT_ENDED && lk_client_connection(c) == 0;

  (void)w;
  s->watch = NULL;
  if (connection_is_lost)
    return; /* it reads again on the next connection */
  subscription_ref(s);
  /* A request under way is a check: only a check is sent while a watch is set.
   * Its reply starts the read. */
  if (s->request_sent)
    s->fired_meanwhile = true;
  else if (event->type == LK_EVENT_DELETED)
    subscription_await_creation(s);
  else
    subscription_read(s);
  subscription_unref(s);
}

/* The caller has cancelled or forgotten the watch. */
static void subscription_leave_client(lk_subscription *s)
{
  lk_timer_stop(s->client, &s->timer);
  lk_client_detach(s->client, &s->listener);
  s->over = true;
}

static void subscription_finish(lk_subscription *s, int err)
{
  subscription_cancel_watch(s);
  subscription_leave_client(s);
  subscription_report_error(s, err);
}

/* A check is due, or a pause before a read has ended. */
static void subscription_on_timer(lk_client *c, void *arg)
{
  lk_subscription *s = arg;

  subscription_ref(s);
  s->pausing = false;
  if (lk_client_connection(c) != 0 && s->watch != NULL)
    subscription_check(s);
  else if (lk_client_connection(c) != 0)
    subscription_read(s);
  subscription_unref(s);
}

static void subscription_on_state(lk_client *c, lk_state state, int err,
                                  void *arg)
{
  lk_subscription *s = arg;

  (void)err;
  subscription_ref(s);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED:
  case LK_STATE_EXPIRED:
  case LK_STATE_AUTH_FAILED: break;
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
    if (!s->pausing)
      subscription_read(s);
    break;
  case LK_STATE_CLOSED: subscription_finish(s, lk__client_end_err(c)); break;
  }
  subscription_unref(s);
}

/* ---- creation ------------------------------------------------------------ */

static bool subscription_config_is_valid(const lk_subscription_config *config)
{
  int64_t ms = config->check_ms;
  bool is_default = ms == 0;

  return is_default || ms == NO_CHECKS ||
         (ms >= MIN_CHECK_MS && ms <= MAX_CHECK_MS);
}

static lk_subscription *subscription_make(lk_client *client, const char *path,
                                          void *arg)
{
  size_t len = strlen(path);
  lk_subscription *s = lk__mem_new(lk_client_mem(client), sizeof *s + len + 1);

  if (s == NULL)
    return NULL;
  s->client = client;
  lk__client_ref(client);
  s->backoff = (lk_backoff){.first_ms = FIRST_PAUSE_MS, .max_ms = MAX_PAUSE_MS};
  s->arg = arg;
  s->refs = 1;
  s->listener = (lk_listener){
      .size = sizeof(lk_listener), .state = subscription_on_state, .arg = s};
  s->timer = (lk_timer){.fire = subscription_on_timer, .arg = s};
  memcpy(s->path, path, len); /* the memory is zeroed, so a NUL follows */
  return s;
}

/* Send the first read if there is a connection; otherwise the next connection
 * starts it. Returns 0, or why the subscription cannot start. */
static int subscription_begin(lk_subscription *s)
{
  switch (lk_client_state(s->client)) {
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY: return subscription_request_node(s);
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED:
  case LK_STATE_EXPIRED:
  case LK_STATE_AUTH_FAILED: return 0;
  case LK_STATE_CLOSED: break;
  }
  return lk__client_refusal(s->client);
}

/* Only the callbacks and `arg` of `template` are used. */
static int subscription_open(lk_subscription **out, lk_client *client,
                             const char *path,
                             const lk_subscription_config *config,
                             const lk_subscription *template)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_subscription_config);
  lk_subscription_config copy;

  *out = NULL;
  if (lk__client_copy_options(client, &sized, &copy, config) != 0 ||
      !subscription_config_is_valid(&copy) ||
      (template->on_children == NULL && template->on_data == NULL))
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  lk_subscription *s = subscription_make(client, path, template->arg);

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->on_children = template->on_children;
  s->on_data = template->on_data;
  s->check_ms = copy.check_ms == 0 ? DEFAULT_CHECK_MS : copy.check_ms;
  int err = subscription_begin(s);

  if (err != 0) {
    subscription_unref(s);
    return err;
  }
  lk_client_attach(client, &s->listener);
  *out = s;
  return 0;
}

int lk_subscribe_children(lk_subscription **out, lk_client *client,
                          const char *path,
                          const lk_subscription_config *config,
                          lk_subscribe_children_cb callback, void *arg)
{
  const lk_subscription template = {.on_children = callback, .arg = arg};

  return subscription_open(out, client, path, config, &template);
}

int lk_subscribe_data(lk_subscription **out, lk_client *client,
                      const char *path, const lk_subscription_config *config,
                      lk_subscribe_data_cb callback, void *arg)
{
  const lk_subscription template = {.on_data = callback, .arg = arg};

  return subscription_open(out, client, path, config, &template);
}

/* ---- queries ------------------------------------------------------------- */

const char *lk_subscription_path(const lk_subscription *s)
{
  return s->path;
}

/* ---- end ----------------------------------------------------------------- */

void lk_subscription_free(lk_subscription *s)
{
  if (s == NULL)
    return;
  if (!s->over) {
    subscription_remove_watch(s);
    subscription_leave_client(s);
  }
  subscription_unref(s);
}
