/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/memory.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/requests.h"

enum { MAX_TIMES_MISSING = 3 };

/* ---- creation and destruction ------------------------------------------- */

/* Give the node of the next create a unique name. */
static void own_node_draw_name(lk_contender *ct)
{
  unsigned char random[16];

  if (ct->own.identity == LK_IDENTITY_NONE)
    return;
  lk_client_random(ct->lease->client, random, sizeof random);
  lk__own_node_renew(&ct->own, random);
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
  const char *name =
      config->name == NULL ? config->role->kind->text : config->name;
  size_t size =
      lk__own_node_size(config->identity, config->dir, name, config->data);
  lk_contender *ct = lk__take(&k->mem, sizeof *ct + size);

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
  ct->machine = config->machine == NULL ? &lk__queue_machine : config->machine;
  ct->wait.watches_directory = ct->role->counts;
  ct->state = LK_CONTENDER_IDLE;
  ct->pause.timer.fire = on_pause_end;
  ct->pause.timer.arg = ct;
  lk__own_node_init(&ct->own, (char *)(ct + 1), config->identity, config->dir,
                    name, config->data);
  own_node_draw_name(ct);
  ct->lease_user.kind = &lk__contender_lease_user;
  lk__lease_add_user(k, &ct->lease_user);
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
  lk__predecessors_free(&ct->predecessors, &k->mem);
  lk__give(&k->mem, ct);
  lk__lease_unref(k);
}

/* ---- queries ------------------------------------------------------------ */

lk_bytes lk__contender_data(const lk_contender *ct)
{
  return ct->own.data == NULL ? ct->config->data
                              : lk_bytes_of(ct->own.data, ct->own.data_len);
}

lk_client *lk__contender_client(const lk_contender *ct)
{
  return ct->lease->client;
}

uint64_t lk__contender_connection(const lk_contender *ct)
{
  return lk_client_connection(ct->lease->client);
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

/* ---- notices ------------------------------------------------------------ */

void lk__contender_notify(lk_contender *ct, const lk_notice *notice)
{
  if (ct->callbacks != NULL)
    ct->callbacks->notice(ct->callbacks_arg, notice);
}

void lk__contender_notify_position(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = ct->predecessors.count,
                      .node = ct->predecessors.first};

  if (ct->wait.reported_position == ct->predecessors.count)
    return;
  ct->wait.reported_position = ct->predecessors.count;
  lk__contender_notify(ct, &notice);
}

/* ---- start and stop ----------------------------------------------------- */

/* The own node does not exist. A group that creates it, and a writer that holds
 * for us, need no list before it. */
static lk_contender_event contender_first_event(const lk_contender *ct)
{
  return ct->machine->reads_first(ct) && ct->own.state == LK_OWN_NONE &&
                 ct->downgrade.writer == NULL
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

void lk__contender_cancel_watches(lk_contender *ct)
{
  bool others =
      lk__contender_is_single_node(ct) && ct->own.state != LK_OWN_CREATED;

  /* A watch on the own node ends with that node. A watch on another node would
   * remain at the server. */
  if (ct->own.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->own.watch, others);
  if (ct->wait.watch != NULL)
    lk_watch_cancel(lk__contender_client(ct), ct->wait.watch, true);
  ct->own.watch = NULL;
  ct->wait.watch = NULL;
  ct->own.watched_on = 0;
}

void lk__contender_stop(lk_contender *ct, bool notify)
{
  if (!notify)
    ct->callbacks = NULL;
  /* The reply to a create under way has the name of the node. */
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

/* ---- connection and session --------------------------------------------- */

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

void lk__contender_suspend(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    lk__holder_suspend(ct);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

/* The own node does not exist any more; requests under way were for it. */
static void contender_forget_own(lk_contender *ct)
{
  lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk__own_node_forget(&ct->own);
  ct->downgrade.writer_token = 0;
  ct->round.checked = false;
  ct->holding.revoked = false;
  ct->wait.reported_position = 0;
}

static void contender_renew(lk_contender *ct)
{
  ct->wait.watches_directory = ct->role->counts;
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
  contender_forget_own(ct);
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_go(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  contender_renew(ct);
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

  contender_forget_own(ct);
  if (++ct->own.times_missing == MAX_TIMES_MISSING) {
    lk__contender_fail(ct, err);
    return;
  }
  contender_renew(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_MISSING);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  lk__contender_notify(ct, &notice);
}
