/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/common/memory.h"
#include "recipes/common/sized.h"
#include "recipes/queue/contender.h"

#include <latchkey/subscribe.h>

/**
 * @file
 * A read with a watch, and another one whenever that fires: the read sets the
 * next watch in the same instant, so that nothing is missed between. Where
 * there is no node a read leaves no watch; then exists does. At most one
 * request is under way.
 */

enum {
  USUAL_CHECK_MS = 60000,
  MIN_CHECK_MS = 100,
  MAX_CHECK_MS = 86400000,
  REST_MS = 100,
  MAX_REST_DOUBLINGS = 8
};

/** What tells a state from another. */
typedef struct state_id {
  int err;
  int64_t czxid;   /**< a node made anew is another node */
  int64_t zxid;    /**< of the last change */
  int32_t version; /**< several changes can have one zxid */
} state_id;

struct lk_subscription {
  lk_mem mem;
  lk_client *client; /* NULL: it has ended */
  lk_subscribe_children_cb children;
  lk_subscribe_data_cb data; /* one of the two */
  void *arg;
  size_t refs; /* the user's, of a request, of callers */
  bool busy;   /* a request is under way */
  bool again;  /* and the watch fired meanwhile */
  bool told;
  state_id last;   /* what was told */
  lk_watch *watch; /* NULL: none */
  lk_listener listener;
  lk_timer timer; /* a rest, a check, or whether an expiry was final */
  bool rests_now; /* not to ask before it fires, on whatever connection */
  int32_t check_ms;
  unsigned rests;
  char path[];
};

static void ref(lk_subscription *s)
{
  s->refs++;
}

static void unref(lk_subscription *s)
{
  lk_mem mem = s->mem;

  if (--s->refs == 0)
    lk__give(&mem, s);
}

/* ---- telling ----------------------------------------------------------- */

static state_id id_of(const lk_subscription *s, int err, const lk_stat *stat)
{
  if (err != 0)
    return (state_id){.err = err};
  if (s->children != NULL)
    return (state_id){0, stat->czxid, stat->pzxid, stat->cversion};
  return (state_id){0, stat->czxid, stat->mzxid, stat->version};
}

static bool was_told(const lk_subscription *s, const state_id *id)
{
  return s->told && s->last.err == id->err && s->last.czxid == id->czxid &&
         s->last.zxid == id->zxid && s->last.version == id->version;
}

static bool is_news(lk_subscription *s, int err, const lk_stat *stat)
{
  state_id id = id_of(s, err, stat);

  if (was_told(s, &id))
    return false;
  s->told = true;
  s->last = id;
  return true;
}

static void tell_error(lk_subscription *s, int err)
{
  if (!is_news(s, err, NULL))
    return;
  if (s->children != NULL)
    s->children(s, err, NULL, 0, NULL, s->arg);
  else
    s->data(s, err, NULL, NULL, s->arg);
}

/* ---- time -------------------------------------------------------------- */

static void fire_in(lk_subscription *s, int64_t ms)
{
  lk_timer_start(s->client, &s->timer, lk_client_clock(s->client) + ms);
}

static int64_t chance(const lk_subscription *s, int64_t below)
{
  uint32_t n;

  lk_client_random(s->client, &n, sizeof n);
  return n % below;
}

static void rest(lk_subscription *s)
{
  int64_t ms = (int64_t)REST_MS << s->rests;

  if (s->rests < MAX_REST_DOUBLINGS)
    s->rests++;
  s->rests_now = true;
  fire_in(s, ms + chance(s, ms));
}

/* What is known is watched. */
static void settle(lk_subscription *s)
{
  s->rests = 0;
  if (s->check_ms > 0)
    fire_in(s, s->check_ms - chance(s, s->check_ms / 4));
}

/* ---- asking ------------------------------------------------------------ */

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg);
static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg);
static void on_look(lk_client *c, int err, const lk_stat *stat, void *arg);
static void on_check(lk_client *c, int err, const lk_stat *stat, void *arg);
static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg);

/* A connection brings a new round, and so does a new session; but an answer
 * that is too big breaks each. */
static void on_trouble(lk_subscription *s, int err)
{
  lk_advice advice = lk__error_advice(s->client, err);

  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (err == LK_ERR_TOO_BIG)
    s->rests = MAX_REST_DOUBLINGS;
  rest(s);
  if (advice == LK_ADVICE_GIVE_UP)
    tell_error(s, err);
}

static int asked(lk_subscription *s, int err)
{
  if (err != 0)
    return err;
  s->busy = true;
  ref(s);
  return 0;
}

static lk_call with_watch(lk_subscription *s)
{
  return (lk_call){.size = sizeof(lk_call),
                   .until_disconnect = true,
                   .on_event = on_event,
                   .watch_arg = s,
                   .watch = &s->watch};
}

static void drop_watch(lk_subscription *s, bool on_server)
{
  if (s->watch != NULL)
    lk_watch_cancel(s->client, s->watch, on_server);
  s->watch = NULL;
}

static int try_read(lk_subscription *s)
{
  lk_call call = with_watch(s);

  return asked(s, s->children != NULL
                      ? lk_get_children(s->client, s->path, &call, on_names, s)
                      : lk_get(s->client, s->path, &call, on_data, s));
}

static void read_again(lk_subscription *s)
{
  lk_timer_stop(s->client, &s->timer);
  drop_watch(s, true);
  int err = try_read(s);

  if (err != 0)
    on_trouble(s, err);
}

/* There is no node: learn of its creation. */
static void look(lk_subscription *s)
{
  lk_call call = with_watch(s);

  lk_timer_stop(s->client, &s->timer);
  int err = asked(s, lk_exists(s->client, s->path, &call, on_look, s));

  if (err != 0)
    on_trouble(s, err);
}

static void check(lk_subscription *s)
{
  int err = asked(s, lk_exists(s->client, s->path, NULL, on_check, s));

  if (err != 0)
    on_trouble(s, err);
}

/* ---- answers ----------------------------------------------------------- */

/* Whether anybody still wants to know. */
static bool answered(lk_subscription *s)
{
  s->busy = false;
  return s->client != NULL;
}

/* Neither the node nor its watch is there. */
static void on_absence(lk_subscription *s)
{
  tell_error(s, LK_ERR_NO_NODE);
  if (s->client != NULL)
    look(s);
}

static void on_failed_read(lk_subscription *s, int err)
{
  s->watch = NULL;
  if (err == LK_ERR_NO_NODE)
    on_absence(s);
  else
    on_trouble(s, err);
}

/* Whether it is to be told. */
static bool brought_news(lk_subscription *s, int err, const lk_stat *stat)
{
  if (!answered(s))
    return false;
  if (err != 0) {
    on_failed_read(s, err);
    return false;
  }
  settle(s);
  return is_news(s, 0, stat);
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (brought_news(s, err, stat))
    s->children(s, 0, names, count, stat, s->arg);
  unref(s);
}

static void on_data(lk_client *c, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (brought_news(s, err, stat))
    s->data(s, 0, data, stat, s->arg);
  unref(s);
}

/* A node that has come meanwhile has left a watch on its data. */
static void judge_look(lk_subscription *s, int err)
{
  if (err == 0) {
    read_again(s);
  } else if (err == LK_ERR_NO_NODE) {
    settle(s);
    tell_error(s, err);
  } else {
    s->watch = NULL;
    on_trouble(s, err);
  }
}

static void on_look(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)stat;
  if (answered(s))
    judge_look(s, err);
  unref(s);
}

/* The watch would have told of what differs, so there is none any more. */
static void judge_check(lk_subscription *s, int err, const lk_stat *stat)
{
  lk_advice advice = lk__error_advice(s->client, err);
  state_id id = id_of(s, err, stat);
  bool again = s->again;

  s->again = false;
  if (advice == LK_ADVICE_AWAIT_CONNECTION)
    return;
  if (again || (advice == LK_ADVICE_GIVE_UP && !was_told(s, &id)))
    read_again(s);
  else
    settle(s);
}

static void on_check(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  if (answered(s))
    judge_check(s, err, stat);
  unref(s);
}

/* ---- what happens ------------------------------------------------------ */

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)w;
  s->watch = NULL;
  if (event->type == LK_EVENT_ENDED)
    return;
  ref(s);
  if (s->busy)
    s->again = true;
  else if (event->type == LK_EVENT_DELETED)
    look(s);
  else
    read_again(s);
  unref(s);
}

static void leave_client(lk_subscription *s, bool on_server)
{
  drop_watch(s, on_server);
  lk_timer_stop(s->client, &s->timer);
  lk_client_detach(s->client, &s->listener);
  s->client = NULL;
}

static void end(lk_subscription *s, int err)
{
  leave_client(s, false);
  tell_error(s, err);
}

static void on_timer(lk_client *c, void *arg)
{
  lk_subscription *s = arg;

  ref(s);
  s->rests_now = false;
  if (lk_client_state(c) == LK_STATE_EXPIRED)
    end(s, LK_ERR_SESSION_EXPIRED); /* and no new one follows */
  else if (lk_client_connection(c) != 0 && s->watch != NULL)
    check(s);
  else if (lk_client_connection(c) != 0)
    read_again(s);
  unref(s);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)err;
  ref(s);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: break;
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
    if (!s->rests_now)
      read_again(s);
    break;
  case LK_STATE_EXPIRED: fire_in(s, 0); break;
  case LK_STATE_AUTH_FAILED: end(s, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: end(s, LK_ERR_CLOSED); break;
  }
  unref(s);
}

/* ---- life -------------------------------------------------------------- */

static bool acceptable(const lk_subscription_config *config)
{
  int32_t ms = config->check_ms;

  return ms == 0 || ms == -1 || (ms >= MIN_CHECK_MS && ms <= MAX_CHECK_MS);
}

static lk_subscription *make(lk_client *client, const char *path, void *arg)
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
  s->listener = (lk_listener){.state = on_state, .arg = s};
  s->timer = (lk_timer){.fire = on_timer, .arg = s};
  memcpy(s->path, path, len);
  return s;
}

/* 0, or why nothing will ever be told. */
static int begin(lk_subscription *s)
{
  switch (lk_client_state(s->client)) {
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY: return try_read(s);
  case LK_STATE_EXPIRED: fire_in(s, 0); return 0;
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: return 0;
  case LK_STATE_AUTH_FAILED: return LK_ERR_AUTH_FAILED;
  case LK_STATE_CLOSED: break;
  }
  return LK_ERR_CLOSED;
}

static int subscribe(lk_subscription **out, lk_client *client, const char *path,
                     const lk_subscription_config *config,
                     const lk_subscription *what)
{
  static const lk_sized sized = LK_SIZED(lk_subscription_config);
  lk_subscription_config own;

  *out = NULL;
  if (lk__sized_take(client, &sized, &own, config) != 0 || !acceptable(&own) ||
      (what->children == NULL && what->data == NULL))
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  lk_subscription *s = make(client, path, what->arg);

  if (s == NULL)
    return LK_ERR_NO_MEMORY;
  s->children = what->children;
  s->data = what->data;
  s->check_ms = own.check_ms == 0 ? USUAL_CHECK_MS : own.check_ms;
  int err = begin(s);

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
                          lk_subscribe_children_cb told, void *arg)
{
  const lk_subscription what = {.children = told, .arg = arg};

  return subscribe(out, client, path, config, &what);
}

int lk_subscribe_data(lk_subscription **out, lk_client *client,
                      const char *path, const lk_subscription_config *config,
                      lk_subscribe_data_cb told, void *arg)
{
  const lk_subscription what = {.data = told, .arg = arg};

  return subscribe(out, client, path, config, &what);
}

void lk_subscription_free(lk_subscription *s)
{
  if (s == NULL)
    return;
  if (s->client != NULL)
    leave_client(s, true);
  unref(s);
}

const char *lk_subscription_path(const lk_subscription *s)
{
  return s->path;
}
