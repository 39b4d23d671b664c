/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/nodes/subscription_requests.h"

/* The interval between checks is at most a day. */
enum {
  NO_CHECKS = -1,
  DEFAULT_CHECK_MS = 60000,
  MIN_CHECK_MS = 100,
  MAX_CHECK_MS = 24 * 3600 * 1000
};

/* ---- client and timer -------------------------------------------------- */

/* The caller has cancelled or forgotten the watch. */
static void subscription_leave_client(lk_subscription *s)
{
  lk_timer_stop(s->client, &s->timer);
  lk_client_detach(s->client, &s->listener);
  s->client = NULL;
}

static void subscription_finish(lk_subscription *s, int err)
{
  lk__subscription_forget_watch(s);
  subscription_leave_client(s);
  lk__subscription_report_error(s, err);
}

/* After an expiry, a new session starts at once or never. The timer fires in
 * the next turn of the loop, when the state shows which. */
static void subscription_await_new_session(lk_subscription *s)
{
  lk__subscription_start_timer(s, 0);
}

/* The timer was started for one of three reasons: a new session was awaited, a
 * check is due, or a pause before a read has ended. */
static void subscription_on_timer(lk_client *c, void *arg)
{
  lk_subscription *s = arg;

  lk__subscription_ref(s);
  s->pausing = false;
  if (lk_client_state(c) == LK_STATE_EXPIRED) /* no new session was started */
    subscription_finish(s, LK_ERR_SESSION_EXPIRED);
  else if (lk_client_connection(c) != 0 && s->watch != NULL)
    lk__subscription_check(s);
  else if (lk_client_connection(c) != 0)
    lk__subscription_read(s);
  lk__subscription_unref(s);
}

static void subscription_on_state(lk_client *c, lk_state state, int err,
                                  void *arg)
{
  lk_subscription *s = arg;

  (void)c;
  (void)err;
  lk__subscription_ref(s);
  switch (state) {
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: break;
  case LK_STATE_CONNECTED:
  case LK_STATE_READ_ONLY:
    if (!s->pausing)
      lk__subscription_read(s);
    break;
  case LK_STATE_EXPIRED: subscription_await_new_session(s); break;
  case LK_STATE_AUTH_FAILED: subscription_finish(s, LK_ERR_AUTH_FAILED); break;
  case LK_STATE_CLOSED: subscription_finish(s, LK_ERR_CLOSED); break;
  }
  lk__subscription_unref(s);
}

/* ---- life -------------------------------------------------------------- */

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
  const lk_mem *mem = lk_client_mem(client);
  size_t len = strlen(path);
  lk_subscription *s = lk__mem_new(mem, sizeof *s + len + 1);

  if (s == NULL)
    return NULL;
  s->mem = *mem;
  s->client = client;
  s->arg = arg;
  s->refs = 1;
  s->listener = (lk_listener){.state = subscription_on_state, .arg = s};
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
  case LK_STATE_READ_ONLY: return lk__subscription_request_node(s);
  case LK_STATE_EXPIRED: subscription_await_new_session(s); return 0;
  case LK_STATE_CONNECTING:
  case LK_STATE_SUSPENDED: return 0;
  case LK_STATE_AUTH_FAILED: return LK_ERR_AUTH_FAILED;
  case LK_STATE_CLOSED: break;
  }
  return LK_ERR_CLOSED;
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
  if (lk__config_copy(client, &sized, &copy, config) != 0 ||
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
    lk__mem_free(&s->mem, s);
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

void lk_subscription_free(lk_subscription *s)
{
  if (s == NULL)
    return;
  if (s->client != NULL) {
    lk__subscription_cancel_watch(s);
    subscription_leave_client(s);
  }
  lk__subscription_unref(s);
}

const char *lk_subscription_path(const lk_subscription *s)
{
  return s->path;
}
