/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/config_copy.h"
#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"

#include <latchkey/subscribe.h>

/**
 * @file
 * Reads a node with a one-shot watch, and again whenever the watch fires. Each
 * read sets the next watch atomically, so that no change is missed. A read of a
 * missing node sets no watch; exists does. At most one request is under way.
 */

enum {
  DEFAULT_CHECK_MS = 60000,
  MIN_CHECK_MS = 100,
  MAX_CHECK_MS = 86400000,
  PAUSE_MS = 100,
  MAX_PAUSE_DOUBLINGS = 8
};

/** Two states of the node are equal if all members are. */
typedef struct state_id {
  int err;
  int64_t czxid;   /**< differs for a node that was deleted and created again */
  int64_t zxid;    /**< of the last change */
  int32_t version; /**< several changes can have one zxid */
} state_id;

struct lk_subscription {
  lk_mem mem;
  lk_client *client; /* NULL: the subscription has ended */
  lk_subscribe_children_cb children;
  lk_subscribe_data_cb data; /* NULL if `children` is set */
  void *arg;
  size_t refs;       /* the user's, the request's, those of active calls */
  bool request_sent; /* a request is under way */
  bool again;        /* the watch fired during that request */
  bool reported;
  state_id last_reported; /* valid if `reported` */
  lk_watch *watch;        /* NULL: none */
  lk_listener listener;
  lk_timer timer; /* ends a pause, starts a check or examines an expiry */
  bool pausing;   /* no request before `timer` fires, even after a reconnect */
  int32_t check_ms;
  unsigned pauses; /* in a row */
  char path[];
};

static void subscription_ref(lk_subscription *s)
{
  s->refs++;
}

static void subscription_unref(lk_subscription *s)
{
  lk_mem mem = s->mem;

  if (--s->refs == 0)
    lk__give(&mem, s);
}

/* ---- reporting --------------------------------------------------------- */

static state_id subscription_state_id(const lk_subscription *s, int err,
                                      const lk_stat *stat)
{
  if (err != 0)
    return (state_id){.err = err};
  if (s->children != NULL)
    return (state_id){0, stat->czxid, stat->pzxid, stat->cversion};
  return (state_id){0, stat->czxid, stat->mzxid, stat->version};
}

static bool state_was_reported(const lk_subscription *s, const state_id *id)
{
  return s->reported && s->last_reported.err == id->err &&
         s->last_reported.czxid == id->czxid &&
         s->last_reported.zxid == id->zxid &&
         s->last_reported.version == id->version;
}

/* false: the caller knows this state already. */
static bool subscription_record_state(lk_subscription *s, int err,
                                      const lk_stat *stat)
{
  state_id id = subscription_state_id(s, err, stat);

  if (state_was_reported(s, &id))
    return false;
  s->reported = true;
  s->last_reported = id;
  return true;
}

static void subscription_report_error(lk_subscription *s, int err)
{
  if (!subscription_record_state(s, err, NULL))
    return;
  if (s->children != NULL)
    s->children(s, err, NULL, 0, NULL, s->arg);
  else
    s->data(s, err, NULL, NULL, s->arg);
}

/* ---- timer ------------------------------------------------------------- */

static void subscription_start_timer(lk_subscription *s, int64_t ms)
{
  lk_timer_start(s->client, &s->timer, lk_client_clock(s->client) + ms);
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
  int64_t ms = (int64_t)PAUSE_MS << s->pauses;

  if (s->pauses < MAX_PAUSE_DOUBLINGS)
    s->pauses++;
  s->pausing = true;
  subscription_start_timer(s, ms + subscription_random_below(s, ms));
}

/* The state is known and watched: only the next check is due. */
static void subscription_schedule_check(lk_subscription *s)
{
  s->pauses = 0;
  if (s->check_ms > 0)
    subscription_start_timer(
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
 * reply that is too big breaks each connection, so that pause is the longest.
 */
static void subscription_request_failed(lk_subscription *s, int err)
{
  lk_advice advice = lk__error_advice(s->client, err);

  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (err == LK_ERR_TOO_BIG)
    s->pauses = MAX_PAUSE_DOUBLINGS;
  subscription_pause(s);
  if (advice == LK_ADVICE_GIVE_UP)
    subscription_report_error(s, err);
}

static int subscription_requested(lk_subscription *s, int err)
{
  if (err != 0)
    return err;
  s->request_sent = true;
  subscription_ref(s);
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

static void subscription_drop_watch(lk_subscription *s, bool on_server)
{
  if (s->watch != NULL)
    lk_watch_cancel(s->client, s->watch, on_server);
  s->watch = NULL;
}

static int subscription_request_state(lk_subscription *s)
{
  lk_call call = subscription_watch_options(s);

  return subscription_requested(
      s,
      s->children != NULL
          ? lk_get_children(s->client, s->path, &call, subscription_on_names, s)
          : lk_get(s->client, s->path, &call, subscription_on_data, s));
}

static void subscription_read(lk_subscription *s)
{
  lk_timer_stop(s->client, &s->timer);
  subscription_drop_watch(s, true);
  int err = subscription_request_state(s);

  if (err != 0)
    subscription_request_failed(s, err);
}

/* Watch for the creation of the missing node. */
static void subscription_await_creation(lk_subscription *s)
{
  lk_call call = subscription_watch_options(s);

  lk_timer_stop(s->client, &s->timer);
  int err = subscription_requested(
      s, lk_exists(s->client, s->path, &call, subscription_on_exists, s));

  if (err != 0)
    subscription_request_failed(s, err);
}

static void subscription_check(lk_subscription *s)
{
  int err = subscription_requested(
      s, lk_exists(s->client, s->path, NULL, subscription_on_check, s));

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
  subscription_report_error(s, LK_ERR_NO_NODE);
  if (s->client != NULL)
    subscription_await_creation(s);
}

static void subscription_read_failed(lk_subscription *s, int err)
{
  s->watch = NULL;
  if (err == LK_ERR_NO_NODE)
    subscription_node_absent(s);
  else
    subscription_request_failed(s, err);
}

/* true: the state is to be reported. */
static bool subscription_state_read(lk_subscription *s, int err,
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
  if (subscription_state_read(s, err, stat))
    s->children(s, 0, names, count, stat, s->arg);
  subscription_unref(s);
}

static void subscription_on_data(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (subscription_state_read(s, err, stat))
    s->data(s, 0, data, stat, s->arg);
  subscription_unref(s);
}

/* If the node was created in between, exists has set a watch on its data, which
 * the read replaces. */
static void subscription_exists_replied(lk_subscription *s, int err)
{
  if (err == 0) {
    subscription_read(s);
  } else if (err == LK_ERR_NO_NODE) {
    subscription_schedule_check(s);
    subscription_report_error(s, err);
  } else {
    s->watch = NULL;
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

/* A different state means that the watch was lost, since it has not fired. */
static void subscription_check_replied(lk_subscription *s, int err,
                                       const lk_stat *stat)
{
  lk_advice advice = lk__error_advice(s->client, err);
  state_id id = subscription_state_id(s, err, stat);
  bool again = s->again;

  s->again = false;
  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (again || (advice == LK_ADVICE_GIVE_UP && !state_was_reported(s, &id)))
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

/* ---- watch, client and timer ------------------------------------------- */

static void subscription_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)w;
  s->watch = NULL;
  if (event->type == LK_EVENT_ENDED)
    return;
  subscription_ref(s);
  if (s->request_sent)
    s->again = true;
  else if (event->type == LK_EVENT_DELETED)
    subscription_await_creation(s);
  else
    subscription_read(s);
  subscription_unref(s);
}

static void subscription_leave_client(lk_subscription *s, bool on_server)
{
  subscription_drop_watch(s, on_server);
  lk_timer_stop(s->client, &s->timer);
  lk_client_detach(s->client, &s->listener);
  s->client = NULL;
}

static void subscription_finish(lk_subscription *s, int err)
{
  subscription_leave_client(s, false);
  subscription_report_error(s, err);
}

static void subscription_on_timer(lk_client *c, void *arg)
{
  lk_subscription *s = arg;

  subscription_ref(s);
  s->pausing = false;
  if (lk_client_state(c) == LK_STATE_EXPIRED)
    subscription_finish(s, LK_ERR_SESSION_EXPIRED); /* no new session follows */
  else if (lk_client_connection(c) != 0 && s->watch != NULL)
    subscription_check(s);
  else if (lk_client_connection(c) != 0)
    subscription_read(s);
  subscription_unref(s);
}

static void subscription_on_state(lk_client *c, lk_state state, int err,
                                  void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)err;
  subscription_ref(s);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: break;
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
    if (!s->pausing)
      subscription_read(s);
    break;
  case LK_STATE_EXPIRED: subscription_start_timer(s, 0); break;
  case LK_STATE_AUTH_FAILED: subscription_finish(s, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: subscription_finish(s, LK_ERR_CLOSED); break;
  }
  subscription_unref(s);
}

/* ---- life -------------------------------------------------------------- */

static bool subscription_config_valid(const lk_subscription_config *config)
{
  int32_t ms = config->check_ms;

  return ms == 0 || ms == -1 || (ms >= MIN_CHECK_MS && ms <= MAX_CHECK_MS);
}

static lk_subscription *subscription_make(lk_client *client, const char *path,
                                          void *arg)
{
  const lk_mem *mem = lk_client_mem(client);
  size_t len = strlen(path);
  lk_subscription *s = lk__take(mem, sizeof *s + len + 1);

  if (s == NULL)
    return NULL;
  s->mem = *mem;
  s->client = client;
  s->arg = arg;
  s->refs = 1;
  s->listener = (lk_listener){.state = subscription_on_state, .arg = s};
  s->timer = (lk_timer){.fire = subscription_on_timer, .arg = s};
  memcpy(s->path, path, len);
  return s;
}

/* 0, or why the subscription cannot start. */
static int subscription_begin(lk_subscription *s)
{
  switch (lk_client_state(s->client)) {
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY: return subscription_request_state(s);
  case LK_STATE_EXPIRED: subscription_start_timer(s, 0); return 0;
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: return 0;
  case LK_STATE_AUTH_FAILED: return LK_ERR_AUTH_FAILED;
  case LK_STATE_CLOSED: break;
  }
  return LK_ERR_CLOSED;
}

static int subscription_open(lk_subscription **out, lk_client *client,
                             const char *path,
                             const lk_subscription_config *config,
                             const lk_subscription *template)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_subscription_config);
  lk_subscription_config own;

  *out = NULL;
  if (lk__config_copy(client, &sized, &own, config) != 0 ||
      !subscription_config_valid(&own) ||
      (template->children == NULL && template->data == NULL))
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  lk_subscription *s = subscription_make(client, path, template->arg);

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->children = template->children;
  s->data = template->data;
  s->check_ms = own.check_ms == 0 ? DEFAULT_CHECK_MS : own.check_ms;
  int err = subscription_begin(s);

  if (err != 0) {
    lk__give(&s->mem, s);
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
  const lk_subscription template = {.children = callback, .arg = arg};

  return subscription_open(out, client, path, config, &template);
}

int lk_subscribe_data(lk_subscription **out, lk_client *client,
                      const char *path, const lk_subscription_config *config,
                      lk_subscribe_data_cb callback, void *arg)
{
  const lk_subscription template = {.data = callback, .arg = arg};

  return subscription_open(out, client, path, config, &template);
}

void lk_subscription_free(lk_subscription *s)
{
  if (s == NULL)
    return;
  if (s->client != NULL)
    subscription_leave_client(s, true);
  subscription_unref(s);
}

const char *lk_subscription_path(const lk_subscription *s)
{
  return s->path;
}
