/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/contender.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "recipes/error_advice.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/cleanup.h"
#include "recipes/queue/heartbeat.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/predecessors.h"
#include "recipes/queue/queue.h"
#include "recipes/queue/recovery.h"

/* Pauses before a retry. */
enum { FIRST_PAUSE_MS = 50, MAX_PAUSE_MS = 800 };

/* ---- the functions of an acquisition with one contender ------------------ */

static lk_contender *contender_of(lk_acquisition *a)
{
  return a->parts[0];
}

static void contender_begin(lk_acquisition *a)
{
  lk__contender_begin(contender_of(a));
}

static void contender_stop(lk_acquisition *a, lk_gone_report report)
{
  lk__contender_stop(contender_of(a), report);
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
    .remove_callbacks = contender_remove_callbacks,
    .ref = contender_ref,
    .unref = contender_unref};

/* ---- creation and references --------------------------------------------- */

static void on_pause_end(lk_client *c, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  lk__contender_ref(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_resume(ct);
  lk__contender_unref(ct);
}

lk_contender *lk__contender_new(lk_session_lease *lease,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
                                void *arg)
{
  const char *name =
      config->name == NULL ? config->role->kind->text : config->name;
  size_t size =
      lk__own_node_size(config->identity, config->dir, name, config->data);
  lk_contender *ct = lk__mem_new(&lease->mem, sizeof *ct + size);

  if (ct == NULL)
    return NULL;
  ct->self = ct;
  ct->acquisition = (lk_acquisition){.kind = &acquisition_of_one_node,
                                     .held_with_parts = true,
                                     .parts = &ct->self,
                                     .count = 1};
  ct->lease = lease;
  ct->refs = 1;
  ct->callbacks = callbacks;
  ct->callbacks_arg = arg;
  ct->config = config;
  ct->role = config->role;
  ct->machine = config->machine;
  ct->state = LK_CONTENDER_IDLE;
  ct->pause.timer.fire = on_pause_end;
  ct->pause.timer.arg = ct;
  ct->pause.backoff =
      (lk_backoff){.first_ms = FIRST_PAUSE_MS, .max_ms = MAX_PAUSE_MS};
  char *behind_struct = (char *)(ct + 1);

  lk__own_node_init(&ct->own, behind_struct, config->identity, config->dir,
                    name, config->data);
  lk__contender_prepare_create(ct);
  lk__client_ref(lease->client);
  lk__lease_add_user(lease, ct);
  return ct;
}

void lk__contender_ref(lk_contender *ct)
{
  ct->refs++;
}

void lk__contender_unref(lk_contender *ct)
{
  lk_session_lease *lease = ct->lease;

  if (--ct->refs > 0)
    return;
  if (ct->downgrade.writer != NULL)
    lk__contender_unref(ct->downgrade.writer);
  lk__possible_nodes_free(&ct->possible, &lease->mem);
  lk__predecessors_free(&ct->predecessors, &lease->mem);
  lk__mem_free(&lease->mem, ct);
  lk__client_unref(lease->client);
}

/* ---- the start: IDLE, PAUSED --------------------------------------------- */

/* Whether to list the queue or to create the own node first. No list is needed
 * if a joint acquisition has sent the create already, or if this contender
 * downgrades a writer of the same owner. */
static lk_contender_event contender_first_event(const lk_contender *ct)
{
  bool lists_first = ct->machine->reads_first(ct) &&
                     ct->own.state == LK_OWN_NONE &&
                     ct->downgrade.writer == NULL;

  return lists_first ? LK_CONTENDER_ON_LIST_FIRST : LK_CONTENDER_ON_START;
}

void lk__contender_begin(lk_contender *ct)
{
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, contender_first_event(ct));
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

static void contender_resume(lk_contender *ct)
{
  lk_timer_stop(ct->lease->client, &ct->pause.timer);
  ct->round.checked = false;
  switch (ct->own.state) {
  case LK_OWN_NONE: lk__contender_step(ct, contender_first_event(ct)); break;
  case LK_OWN_IN_DOUBT:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_IN_DOUBT);
    break;
  case LK_OWN_CREATED:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_EXISTS);
    break;
  case LK_OWN_REQUESTED: /* wait for the reply to the create */
    lk__contender_start_backoff(ct);
    break;
  }
}

const lk_contender_rules lk__rules_idle = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON_ANY_BEFORE_GRANT}};

/* LIST_NEEDED stays: the last read of a recovery may complete after the
 * connection loss has paused the contender. The next connection lists. */
const lk_contender_rules lk__rules_paused = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON(OWN_IN_DOUBT, RECOVERING), LK_ON(OWN_EXISTS, LISTING),
             LK_ON(LIST_NEEDED, STAY), LK_ON_ANY_IN_QUEUE},
    .resume = contender_resume};

/* ---- steps --------------------------------------------------------------- */

lk_contender_state lk__contender_next_state(const lk_contender_machine *m,
                                            lk_contender_state state,
                                            lk_contender_event ev)
{
  const lk_contender_rules *rules = m->states[state];

  return rules == NULL ? LK_CONTENDER_NO_STEP : rules->next[ev];
}

void lk__contender_restart(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (rules->restart != NULL) {
    rules->restart(ct);
    return;
  }
  if (ct->state == LK_CONTENDER_IDLE || ct->state == LK_CONTENDER_FINISHED)
    return;
  /* The reply to a create under way is needed: it has the name of the node. */
  if (ct->own.state != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  /* The pause ends in the next turn of the loop. */
  lk__contender_start_pause(ct, 0);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

#ifdef LK_DEBUG
static void contender_report_missing_step(lk_contender *ct,
                                          lk_contender_event ev)
{
  fprintf(stderr,
          "latchkey: a contender in state %d has no step for event %d\n",
          (int)ct->state, (int)ev);
  abort();
}
#else
static void contender_report_missing_step(lk_contender *ct,
                                          lk_contender_event ev)
{
  char text[80];

  snprintf(text, sizeof text,
           "a contender in state %d has no step for event %d: it recovers",
           (int)ct->state, (int)ev);
  lk_client_log(ct->lease->client, LK_LOG_ERROR, LK_ERR_STATE, text);
  lk__contender_restart(ct);
}
#endif

void lk__contender_step(lk_contender *ct, lk_contender_event ev)
{
  lk_contender_state from = ct->state;
  lk_contender_state next = lk__contender_next_state(ct->machine, from, ev);
  const lk_contender_observer *observer = ct->lease->observer;

  if (next == LK_CONTENDER_STAY)
    return;
  if (next == LK_CONTENDER_NO_STEP) {
    contender_report_missing_step(ct, ev);
    return;
  }
  lk__contender_ref(ct);
  ct->state = next;
  lk__heartbeat_set_need(ct->lease, ct, lk__contender_rules(ct)->need);
  if (observer != NULL)
    observer->on_step(observer->arg, ct, ev, from);
  const lk_contender_rules *rules = ct->machine->states[next];
  int err = rules->enter == NULL ? 0 : rules->enter(ct);

  if (err != 0)
    lk__contender_fail(ct, err);
  lk__contender_unref(ct);
}

/* ---- requests and replies ------------------------------------------------ */

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
  ct->requests.replied++;
  return ct->requests.replied > ct->requests.ignored;
}

void lk__contender_ignore_replies(lk_contender *ct)
{
  ct->requests.ignored = ct->requests.sent;
}

void lk__contender_continue_if_all_read(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (lk__contender_has_all_replies(ct) && rules->reads_done != NULL)
    rules->reads_done(ct);
}

void lk__contender_request_failed(lk_contender *ct, int err)
{
  if (err == LK_ERR_REPLY_TOO_BIG)
    ct->cleanup.too_big = true;
  switch (lk__error_advice(lk__contender_client(ct), err)) {
  case LK_ADVICE_AWAIT_CONNECTION:
    /* Without a timer: the next connection ends the pause. */
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_RETRY_LATER:
    lk__contender_start_backoff(ct);
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
    break;
  case LK_ADVICE_GIVE_UP: lk__contender_fail(ct, err); break;
  }
}

bool lk__contender_fail_if_too_big(lk_contender *ct, int err)
{
  if (err != LK_ERR_REPLY_TOO_BIG || ct->state != LK_CONTENDER_PAUSED)
    return false;
  lk__contender_request_failed(ct, err);
  return true;
}

/* ---- pauses -------------------------------------------------------------- */

void lk__contender_start_pause(lk_contender *ct, int64_t ms)
{
  lk_client *c = lk__contender_client(ct);

  lk_timer_start(ct->lease->client, &ct->pause.timer, lk_client_clock(c) + ms);
}

void lk__contender_start_backoff(lk_contender *ct)
{
  lk__contender_start_pause(
      ct, lk__backoff_draw(&ct->pause.backoff, lk__contender_client(ct)));
}

/* ---- the connection, the session and the client -------------------------- */

void lk__contender_resume(lk_contender *ct)
{
  const lk_contender_rules *rules = lk__contender_rules(ct);

  if (rules->resume != NULL)
    rules->resume(ct);
}

void lk__contender_suspend(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    lk__holder_suspend(ct);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

void lk__contender_session_expired(lk_contender *ct)
{
  bool had_place = ct->own.state == LK_OWN_CREATED;
  lk_notice notice = {.type = LK_NOTICE_PLACE_LOST,
                      .err = LK_ERR_SESSION_EXPIRED};

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  lk__contender_forget_own(ct);
  if (ct->state == LK_CONTENDER_CLEANING_UP) {
    lk__cleanup_continue(ct);
    return;
  }
  if (ct->config->fail_on_expiry) {
    lk__contender_fail(ct, LK_ERR_SESSION_EXPIRED);
    return;
  }
  lk__contender_prepare_create(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
  if (had_place)
    lk__contender_notify(ct, &notice);
}

void lk__contender_client_closed(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  bool was_stopped = ct->state == LK_CONTENDER_CLEANING_UP;

  if (lk__contender_holds(ct)) {
    lk__contender_lose(ct, err);
    return;
  }
  ct->callbacks = NULL;
  lk__contender_ignore_replies(ct);
  lk__contender_step(ct, LK_CONTENDER_ON_GONE_FOR_GOOD);
  if (callbacks != NULL && was_stopped)
    callbacks->gone(ct->callbacks_arg, err);
  else if (callbacks != NULL)
    callbacks->ended(ct->callbacks_arg, err);
}

/* ---- heartbeats ---------------------------------------------------------- */

void lk__contender_on_heartbeat(lk_contender *ct)
{
  if (lk__contender_holds(ct))
    lk__contender_supervise_own(ct);
  else
    lk__waiter_supervise_own(ct);
}

void lk__contender_take_heartbeat_check(lk_contender *ct, int err)
{
  if (err == LK_ERR_NO_AUTH)
    lk__contender_own_unreadable(ct);
  lk__contender_own_checked(ct, lk__contender_check_result(ct, err));
}

/* ---- notices to the owner ------------------------------------------------ */

void lk__contender_notify(lk_contender *ct, const lk_notice *notice)
{
  if (ct->callbacks != NULL)
    ct->callbacks->notice(ct->callbacks_arg, notice);
}

void lk__contender_notify_position(lk_contender *ct)
{
  lk_notice notice = {.type = LK_NOTICE_WAITING,
                      .position = ct->predecessors.count,
                      .node = ct->predecessors.head_path};

  if (ct->wait.reported_position == ct->predecessors.count)
    return;
  ct->wait.reported_position = ct->predecessors.count;
  lk__contender_notify(ct, &notice);
}

/* ---- watches ------------------------------------------------------------- */

void lk__contender_cancel_wait_watch(lk_contender *ct)
{
  if (ct->wait.watch != NULL)
    (void)lk_watch_remove(lk__contender_client(ct), ct->wait.watch, NULL, NULL);
  ct->wait.watch = NULL;
}

void lk__contender_cancel_watches(lk_contender *ct)
{
  bool is_foreign =
      lk__contender_is_single_node(ct) && ct->own.state != LK_OWN_CREATED;

  /* A watch on the own node need not be removed from the server: the node is
   * about to be deleted. A watch on another node would remain there. */
  if (is_foreign)
    (void)lk_watch_remove(lk__contender_client(ct), ct->own.watch, NULL, NULL);
  else
    lk_watch_cancel(lk__contender_client(ct), ct->own.watch);
  ct->own.watch = NULL;
  ct->own.watched_on = 0;
  lk__contender_cancel_wait_watch(ct);
}

/* ---- queries ------------------------------------------------------------- */

lk_client *lk__contender_client(const lk_contender *ct)
{
  return ct->lease->client;
}

uint64_t lk__contender_connection(const lk_contender *ct)
{
  return lk_client_connection(ct->lease->client);
}

lk_bytes lk__contender_data(const lk_contender *ct)
{
  return ct->own.data == NULL ? ct->config->data
                              : lk_bytes_of(ct->own.data, ct->own.data_len);
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

bool lk__node_is_of_other_contender(const lk_contender *ct, uint64_t token)
{
  lk_contender *other = NULL;

  while ((other = lk__lease_next_user(ct->lease, other)) != NULL) {
    if (other != ct && other->own.token == token &&
        strcmp(other->own.path, ct->own.path) == 0)
      return true;
  }
  return false;
}

bool lk__contender_is_next(const lk_contender *ct)
{
  return lk__contender_waits(ct) && ct->predecessors.count == 1 &&
         !ct->role->is_permit && !ct->config->needs_no_lease &&
         !lk__contender_is_single_node(ct);
}

bool lk__contender_is_stuck(const lk_contender *ct)
{
  switch (ct->state) {
  case LK_CONTENDER_LISTING_FIRST:
  case LK_CONTENDER_CREATING:
  case LK_CONTENDER_CREATING_PARENTS:
  case LK_CONTENDER_RECOVERING:
  case LK_CONTENDER_READING_POSSIBLE_NODES:
  case LK_CONTENDER_LISTING:
  case LK_CONTENDER_SETTING_WATCHES:
  case LK_CONTENDER_READING_PREDECESSORS:
  case LK_CONTENDER_READING_OWN:
  case LK_CONTENDER_CHECKING_OWN: return lk__contender_has_all_replies(ct);
  case LK_CONTENDER_WAITING:
    return lk__contender_has_all_replies(ct) && !ct->machine->has_watch(ct);
  case LK_CONTENDER_NO_STEP:
  case LK_CONTENDER_IDLE:
  case LK_CONTENDER_PAUSED:
  case LK_CONTENDER_HELD:
  case LK_CONTENDER_UNSURE:
  case LK_CONTENDER_CLEANING_UP:
  case LK_CONTENDER_FINISHED:
  case LK_CONTENDER_NSTATES: break;
  }
  return false;
}

/* ---- the end ------------------------------------------------------------- */

void lk__contender_stop(lk_contender *ct, lk_gone_report report)
{
  if (report == LK_NO_GONE_REPORT)
    ct->callbacks = NULL;
  /* The reply to a create under way is needed: it has the name of the node. */
  if (ct->own.state != LK_OWN_REQUESTED)
    lk__contender_ignore_replies(ct);
  lk__contender_cancel_watches(ct);
  lk_timer_stop(ct->lease->client, &ct->pause.timer);
  lk__contender_step(ct, LK_CONTENDER_ON_STOP);
}

void lk__contender_fail(lk_contender *ct, int err)
{
  const lk_acquisition_callbacks *callbacks = ct->callbacks;
  void *arg = ct->callbacks_arg;

  lk__contender_stop(ct, LK_NO_GONE_REPORT);
  if (callbacks != NULL)
    callbacks->ended(arg, err);
}

/* ---- the states of a contender in a queue -------------------------------- */

static bool queue_check_proves_own(const lk_contender *ct)
{
  return !lk__own_node_needs_verification(&ct->own,
                                          lk__contender_connection(ct));
}

static bool queue_has_watch(const lk_contender *ct)
{
  return ct->wait.watch != NULL;
}

/* If the list was larger than the client accepts, the cleanup lists only the
 * nodes of this session. */
static int queue_request_view(lk_contender *ct)
{
  if (ct->cleanup.too_big && ct->state == LK_CONTENDER_CLEANING_UP)
    return lk__contender_list_session(ct);
  return lk__contender_send_list(ct);
}

const lk_contender_machine lk__queue_machine = {
    .states = {[LK_CONTENDER_IDLE] = &lk__rules_idle,
               [LK_CONTENDER_PAUSED] = &lk__rules_paused,
               [LK_CONTENDER_LISTING_FIRST] = &lk__rules_listing_first,
               [LK_CONTENDER_CREATING] = &lk__rules_creating,
               [LK_CONTENDER_CREATING_PARENTS] = &lk__rules_creating_parents,
               [LK_CONTENDER_RECOVERING] = &lk__rules_recovering,
               [LK_CONTENDER_READING_POSSIBLE_NODES] =
                   &lk__rules_reading_possible_nodes,
               [LK_CONTENDER_LISTING] = &lk__rules_listing,
               [LK_CONTENDER_SETTING_WATCHES] = &lk__rules_setting_watches,
               [LK_CONTENDER_WAITING] = &lk__rules_waiting,
               [LK_CONTENDER_READING_PREDECESSORS] =
                   &lk__rules_reading_predecessors,
               [LK_CONTENDER_READING_OWN] = &lk__rules_reading_own,
               [LK_CONTENDER_CHECKING_OWN] = &lk__rules_checking_own,
               [LK_CONTENDER_HELD] = &lk__rules_held,
               [LK_CONTENDER_UNSURE] = &lk__rules_unsure,
               [LK_CONTENDER_CLEANING_UP] = &lk__rules_cleaning_up,
               [LK_CONTENDER_FINISHED] = &lk__rules_finished},
    .waits_with_own_node = true,
    .reads_first = lk__max_queue_needs_peek,
    .request_view = queue_request_view,
    .check_proves_own = queue_check_proves_own,
    .has_watch = queue_has_watch};
