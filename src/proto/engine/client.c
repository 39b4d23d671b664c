/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/sized_struct.h"
#include "proto/engine/connection.h"
#include "proto/engine/evidence.h"
#include "proto/engine/hosts.h"
#include "proto/engine/invariants.h"
#include "proto/engine/requests.h"
#include "proto/engine/sasl.h"
#include "proto/engine/session.h"
#include "proto/engine/tls_config.h"
#include "proto/engine/watches.h"

static void client_end(lk_client *c);

/* ---- creation ------------------------------------------------------------ */

enum {
  DEFAULT_TIMEOUT_MS = 30000,
  DEFAULT_SEND_LIMIT = 0xfffff,             /* the server's jute.maxbuffer */
  DEFAULT_RECEIVE_LIMIT = 16 * 1024 * 1024, /* bytes */
  DEFAULT_OUTSTANDING_LIMIT = 65536         /* requests */
};

/* In a lk_client_config a limit of 0 selects the default. */
static size_t limit_or_default(size_t limit, size_t default_limit)
{
  return limit == 0 ? default_limit : limit;
}

static void client_init(lk_client *c, const lk_client_config *config,
                        const lk_hooks *hooks, const lk_mem *mem)
{
  c->mem = *mem;
  c->refs = 1;
  c->hooks = *hooks;
  c->options.log = config->log;
  c->options.log_arg = config->log_arg;
  c->options.log_level =
      config->log_level == 0 ? LK_LOG_INFO : config->log_level;
  c->options.timeout_ms = config->session_timeout_ms == 0
                              ? DEFAULT_TIMEOUT_MS
                              : config->session_timeout_ms;
  c->session.timeout_ms = c->options.timeout_ms;
  c->options.give_up_ms = config->give_up_ms;
  c->options.one_session = config->one_session;
  c->options.read_only = config->read_only;
  c->options.send_limit =
      limit_or_default(config->send_limit, DEFAULT_SEND_LIMIT);
  c->input.frames.limit =
      limit_or_default(config->receive_limit, DEFAULT_RECEIVE_LIMIT);
  c->options.outstanding_limit =
      limit_or_default(config->outstanding_limit, DEFAULT_OUTSTANDING_LIMIT);
  c->now = hooks->now(hooks->arg);
  c->close.end_ms = LK_NEVER;
  c->output.limit = UINT64_MAX;
  c->probe.due_ms = LK_NEVER;
  c->set_watches.retry_ms = LK_NEVER;
  lk__silence_init(&c->silence);
  c->session.proven_ms = c->now;
  c->connection.oldest_handshake_ms = LK_NEVER;
  c->session.abandoned_end_ms = INT64_MIN;
  /* Until an attempt ends with another error than LK_ERR_REFUSED. */
  c->connection.refused_round = true;
  c->connection.refused_since_ms = LK_NEVER;
  if (config->resume != NULL)
    c->session.identity = *config->resume;
  lk__evidence_init(&c->evidence, &c->mem);
  c->output.bytes.mem = &c->mem;
  c->input.frames.partial.mem = &c->mem;
  c->input.arena.mem = &c->mem;
  lk__ring_init(&c->pings.sent_ms, &c->mem, sizeof(int64_t));
  lk__requests_init(&c->requests, &c->mem);
  for (int list = 0; list < LK_LISTENER_LISTS; list++)
    lk__safe_list_init(&c->listeners[list]);
}

/* false: the options are invalid. There is no client yet that could log this,
 * so the log function of `from` is called. Its place in `from` is known only if
 * `from` is the longer struct of a newer header. */
static bool copy_config(lk_client_config *out, const lk_client_config *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_client_config);

  if (from == NULL)
    return false;
  lk_size_fault fault = lk__sized_struct_copy(&what, out, from);
  char text[LK_SIZE_TEXT_ROOM];

  if (fault == LK_SIZE_NEWER && from->log != NULL)
    from->log(from->log_arg, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
              lk__sized_struct_text(&what, fault, text));
  return fault == LK_SIZE_OK;
}

/* The value of last_xid with which a client resumes a session. An earlier
 * client used the session, too, and a server may still send the reply to one of
 * its requests. A random number makes it unlikely that this reply has the xid
 * of a new request. */
static int32_t random_last_xid(const lk_hooks *hooks)
{
  uint32_t r;

  hooks->random(hooks->arg, &r, sizeof r);
  return (int32_t)(r % INT32_MAX);
}

/* false: they are invalid. There is no client yet that could log this. */
static bool copy_hooks(lk_hooks *out, const lk_hooks *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_hooks);

  return from != NULL &&
         lk__sized_struct_copy(&what, out, from) == LK_SIZE_OK &&
         out->now != NULL && out->random != NULL && out->wake != NULL;
}

static bool config_is_valid(const lk_client_config *config)
{
  return config->session_timeout_ms >= 0 && config->give_up_ms >= -1 &&
         config->send_limit <= INT32_MAX &&
         config->receive_limit <= INT32_MAX &&
         (unsigned)config->log_level <= LK_LOG_DEBUG;
}

static int init_hosts(lk_client *c, const lk_client_config *config)
{
  const char *hosts = config->hosts == NULL ? "127.0.0.1" : config->hosts;
  const char *why; /* not used: programs get it from lk_hosts_check() */

  return lk__hosts_init(&c->hosts, &c->mem, hosts, config->tls != NULL, &why);
}

static int init_tls(lk_client *c, const lk_client_config *config)
{
  const char *wrong = NULL;
  char text[LK_SIZE_TEXT_ROOM];
  int err = 0;

  if (c->hosts.tls)
    err = lk__tls_copy(&c->tls, &c->mem, config->tls, &wrong, text);
  if (wrong != NULL)
    lk_client_log(c, LK_LOG_ERROR, err, wrong);
  return err;
}

int lk_client_new(lk_client **out, const lk_client_config *config,
                  const lk_hooks *hooks)
{
  lk_client_config own;
  lk_hooks own_hooks;

  *out = NULL;
  if (!copy_config(&own, config) || !config_is_valid(&own) ||
      !copy_hooks(&own_hooks, hooks))
    return LK_ERR_BAD_ARGUMENT;
  const lk_mem *mem = own.mem == NULL ? &lk__mem_libc : own.mem;
  lk_client *c = lk__mem_new(mem, sizeof *c);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  client_init(c, &own, &own_hooks, mem);
  int err = init_hosts(c, &own);

  if (err != 0)
    goto fail_hosts;
  err = init_tls(c, &own);
  if (err != 0)
    goto fail_tls;
  if (own.sasl != NULL)
    err = lk__sasl_new(c, own.sasl);
  if (err != 0)
    goto fail_sasl;
  if (!lk__watches_init(&c->watches, &c->mem)) {
    err = LK_ERR_NO_MEMORY;
    goto fail_watches;
  }
  c->hosts.in_order = own.in_order;
  lk__hosts_shuffle(&c->hosts, c->hooks.random, c->hooks.arg);
  if (own.resume != NULL)
    c->session.last_xid = random_last_xid(&c->hooks);
  c->connection.retry_ms = c->now; /* the driver's first tick connects */
  *out = c;
  return 0;

fail_watches:
  lk__sasl_free(c);
fail_sasl:
  lk__tls_free(mem, c->tls);
fail_tls:
  lk__hosts_free(&c->hosts);
fail_hosts:
  lk__mem_free(mem, c);
  return err;
}

/* ---- calls that nest ----------------------------------------------------- */

/*
 * Calls of the library may nest: a callback calls the client that invoked it.
 * Waking the driver waits until the outermost call ends. Freeing the client
 * waits until the outermost input ends: another call is only a step of a
 * function of the program or of a recipe, which uses the client further.
 */

void lk__client_enter(lk_client *c)
{
  if (c->nesting.depth++ > 0)
    return;
  c->now = c->hooks.now(c->hooks.arg);
  if (c->output.sent_unstamped)
    c->output.sent_ms = c->now;
  c->output.sent_unstamped = false;
}

void lk__client_leave(lk_client *c)
{
  c->now_stale = true;
  lk__client_end_call(c);
  if (c->nesting.depth == 0 && c->nesting.free_wanted)
    client_end(c);
}

void lk__client_begin_call(lk_client *c)
{
  c->nesting.depth++;
}

/* End the outermost call. Only this function wakes the driver. The hook may
 * give inputs, which may set wake_wanted again. The depth stays 1 until the
 * hook has returned, so that such an input counts as nested. */
static void end_outermost(lk_client *c)
{
  lk__invariants_check(c, LK_MOMENT_REST);
  while (c->nesting.wake_wanted && !c->nesting.free_wanted) {
    c->nesting.wake_wanted = false;
    c->nesting.waking = true;
    c->hooks.wake(c, c->hooks.arg);
    c->nesting.waking = false;
  }
  c->nesting.depth = 0;
}

void lk__client_end_call(lk_client *c)
{
  if (c->nesting.depth > 1)
    c->nesting.depth--;
  else
    end_outermost(c);
}

void lk__client_wake(lk_client *c)
{
  lk__client_begin_call(c);
  c->nesting.wake_wanted = true;
  lk__client_end_call(c);
}

/* ---- listeners ----------------------------------------------------------- */

_Static_assert(sizeof((lk_listener *)0)->in_list /
                       sizeof((lk_listener *)0)->in_list[0] ==
                   LK_LISTENER_LISTS,
               "a listener has links for each list");

/* A listener without a function for replies is in one list only. */
static int attach_listener(lk_client *c, lk_listener *l,
                           void (*add)(lk_safe_list *s, lk_link *l))
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_listener);
  lk_size_fault fault = lk__sized_struct_check(&what, l);
  char text[LK_SIZE_TEXT_ROOM];

  if (fault != LK_SIZE_OK) {
    lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
                  lk__sized_struct_text(&what, fault, text));
    return LK_ERR_BAD_ARGUMENT;
  }
  memset(l->in_list, 0, sizeof l->in_list);
  if (c->session.state == LK_STATE_CLOSED)
    return LK_ERR_CLOSED;
  add(&c->listeners[LK_LISTENERS_ALL], &l->in_list[LK_LISTENERS_ALL]);
  if (l->reply != NULL)
    add(&c->listeners[LK_LISTENERS_OF_REPLIES],
        &l->in_list[LK_LISTENERS_OF_REPLIES]);
  return 0;
}

int lk_client_attach(lk_client *c, lk_listener *l)
{
  return attach_listener(c, l, lk__safe_list_add);
}

void lk__client_attach_first(lk_client *c, lk_listener *l)
{
  (void)attach_listener(c, l, lk__safe_list_add_first);
}

void lk_client_detach(lk_client *c, lk_listener *l)
{
  for (int list = 0; list < LK_LISTENER_LISTS; list++)
    if (l->in_list[list].next != NULL)
      lk__safe_list_remove(&c->listeners[list], &l->in_list[list]);
}

/* The owner of a link in `list`. */
static lk_listener *listener_of(lk_link *l, int list)
{
  return LK_OWNER(l - list, lk_listener, in_list);
}

static void detach_all_listeners(lk_client *c)
{
  lk_link *all = &c->listeners[LK_LISTENERS_ALL].members;

  while (!lk__list_empty(all))
    lk_client_detach(c, listener_of(all->next, LK_LISTENERS_ALL));
}

/* The next listener of a notification; NULL: all were notified. */
static lk_listener *next_listener(lk_client *c, lk_safe_iterator *it, int list)
{
  lk_link *l = lk__safe_iterator_next(it);

  if (l == NULL)
    return NULL;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  return listener_of(l, list);
}

static bool is_without_session(lk_state state)
{
  return state == LK_STATE_EXPIRED || state == LK_STATE_AUTH_FAILED ||
         state == LK_STATE_CLOSED;
}

static void stop_all_timers(lk_client *c)
{
  while (c->timers.root != NULL)
    lk__heap_remove(&c->timers, c->timers.root);
}

void lk__client_enter_state(lk_client *c, lk_state state, int err)
{
  lk_safe_iterator it;

  c->session.state = state;
  if (is_without_session(state))
    lk__evidence_clear(&c->evidence);
  if (state == LK_STATE_CLOSED)
    stop_all_timers(c);
  lk__safe_iterator_begin(&it, &c->listeners[LK_LISTENERS_ALL]);
  for (lk_listener *l; (l = next_listener(c, &it, LK_LISTENERS_ALL)) != NULL;) {
    if (l->state != NULL)
      l->state(c, state, err, l->arg);
  }
}

bool lk__client_attempts_are_reported(const lk_client *c)
{
  const lk_link *all = &c->listeners[LK_LISTENERS_ALL].members;

  for (lk_link *l = all->next; l != all; l = l->next)
    if (listener_of(l, LK_LISTENERS_ALL)->attempt != NULL)
      return true;
  return false;
}

void lk__client_notify_attempt(lk_client *c)
{
  lk_safe_iterator it;

  lk__safe_iterator_begin(&it, &c->listeners[LK_LISTENERS_ALL]);
  for (lk_listener *l; (l = next_listener(c, &it, LK_LISTENERS_ALL)) != NULL;) {
    if (l->attempt != NULL)
      l->attempt(c, c->last_error.err, c->last_error.text, l->arg);
  }
}

void lk__client_notify_reply(lk_client *c, const lk_reply *reply)
{
  lk_safe_iterator it;

  if (!c->close.begun)
    lk__evidence_add(&c->evidence, reply, c->session.timeout_ms);
  if (lk__list_empty(&c->listeners[LK_LISTENERS_OF_REPLIES].members))
    return; /* a client without locks usually has none */
  lk__safe_iterator_begin(&it, &c->listeners[LK_LISTENERS_OF_REPLIES]);
  for (lk_listener *l;
       (l = next_listener(c, &it, LK_LISTENERS_OF_REPLIES)) != NULL;)
    l->reply(c, reply, l->arg);
}

void lk__client_notify_closing(lk_client *c)
{
  lk_safe_iterator it;

  /* c->close.begun is set, so lk__client_notify_reply() adds no more evidence.
   */
  lk__evidence_clear(&c->evidence);
  lk__safe_iterator_begin(&it, &c->listeners[LK_LISTENERS_ALL]);
  for (lk_listener *l; (l = next_listener(c, &it, LK_LISTENERS_ALL)) != NULL;) {
    if (l->closing != NULL)
      l->closing(c, l->arg);
  }
}

/* ---- timers -------------------------------------------------------------- */

enum {
  MAX_FIRES = 10000 /* callbacks in a row; timers that start themselves again
                       must not occupy the loop for ever */
};

void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms)
{
  if (c->session.state == LK_STATE_CLOSED)
    return;
  lk__heap_remove(&c->timers, &t->node);
  lk__heap_add(&c->timers, &t->node, at_ms);
  lk__client_wake(c);
}

void lk_timer_stop(lk_client *c, lk_timer *t)
{
  lk__heap_remove(&c->timers, &t->node);
}

void lk__timers_run(lk_client *c)
{
  for (int fires = 0; fires < MAX_FIRES; fires++) {
    lk_heap_node *first = c->timers.root;

    if (first == NULL || first->at > c->now || c->nesting.free_wanted)
      return;
    lk_timer *t = LK_OWNER(first, lk_timer, node);

    lk__heap_remove(&c->timers, first);
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    t->fire(c, t->arg);
  }
}

int64_t lk__timers_deadline(const lk_client *c)
{
  return c->timers.root == NULL ? LK_NEVER : c->timers.root->at;
}

/* ---- another list of servers --------------------------------------------- */

int lk_client_set_hosts(lk_client *c, const char *hosts)
{
  lk_hosts fresh;
  const char *why; /* not used: programs get it from lk_hosts_check() */
  int err = lk__client_refusal(c);

  if (err == 0)
    err = lk__hosts_init(&fresh, &c->mem, hosts == NULL ? "" : hosts,
                         c->hosts.tls, &why);
  if (err != 0)
    return err;
  /* A list without a chroot keeps that of the client. */
  bool other_chroot =
      fresh.chroot_len > 0 && strcmp(fresh.chroot, c->hosts.chroot) != 0;

  if (fresh.tls != c->hosts.tls || other_chroot) {
    lk__hosts_free(&fresh);
    return LK_ERR_BAD_ARGUMENT;
  }
  lk__client_enter(c);
  lk__engine_connection_set_hosts(c, &fresh);
  lk__client_leave(c);
  return 0;
}

int lk_client_leave_server(lk_client *c)
{
  int err = lk__client_refusal(c);

  if (err != 0)
    return err;
  lk__client_enter(c);
  err = lk__engine_connection_leave_server(c);
  lk__client_leave(c);
  return err;
}

/* ---- the log ------------------------------------------------------------- */

static bool is_logged(const lk_client *c, lk_log_level level)
{
  return c->options.log != NULL && level <= c->options.log_level;
}

void lk_client_log(const lk_client *c, lk_log_level level, int err,
                   const char *text)
{
  if (is_logged(c, level))
    c->options.log(c->options.log_arg, level, err, text);
}

void lk__client_logf(const lk_client *c, lk_log_level level, int err,
                     const char *format, ...)
{
  char text[320];
  va_list args;

  if (!is_logged(c, level))
    return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  c->options.log(c->options.log_arg, level, err, text);
}

/* ---- the lease, which recipes keep --------------------------------------- */

const lk_evidence_record *lk__client_evidence(const lk_client *c)
{
  return &c->evidence;
}

void lk__client_set_evidence_gap(lk_client *c, int32_t gap_ms)
{
  lk__evidence_set_gap(&c->evidence, gap_ms);
}

lk_session_lease *lk__client_lease(const lk_client *c)
{
  return c->lease.object;
}

void lk__client_set_lease(lk_client *c, lk_session_lease *lease,
                          void (*free_lease)(lk_session_lease *lease))
{
  c->lease = (lk_engine_lease){lease, free_lease, false};
}

void lk__client_note_holder(lk_client *c, bool has_holder)
{
  c->lease.has_holder = has_holder;
}

void lk__client_need_reply(lk_client *c, int64_t needed_ms)
{
  lk__silence_suspect(c, needed_ms);
}

/* ---- queries ------------------------------------------------------------- */

bool lk__client_is_forked(const lk_client *c)
{
  return c->hooks.forked != NULL && c->hooks.forked(c->hooks.arg);
}

int lk__client_end_err(const lk_client *c)
{
  if (c->session.final_err != 0)
    return c->session.final_err;
  return c->close.begun || c->nesting.free_wanted ? LK_ERR_CLOSED : 0;
}

int lk__client_copy_options(const lk_client *c, const lk_sized_struct *what,
                            void *out, const void *from)
{
  lk_size_fault fault = lk__sized_struct_copy(what, out, from);
  char text[LK_SIZE_TEXT_ROOM];

  if (fault == LK_SIZE_OK)
    return 0;
  lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT,
                lk__sized_struct_text(what, fault, text));
  return LK_ERR_BAD_ARGUMENT;
}

int lk__client_refusal(const lk_client *c)
{
  if (lk__client_is_forked(c))
    return LK_ERR_FORKED;
  int err = lk__client_end_err(c);

  return err == LK_ERR_SESSION_EXPIRED ? LK_ERR_CLOSED : err;
}

lk_state lk_client_state(const lk_client *c)
{
  return c->session.state;
}

int32_t lk_client_timeout_ms(const lk_client *c)
{
  return c->session.timeout_ms;
}

lk_session lk_client_session(const lk_client *c)
{
  return c->session.identity;
}

/* The number of the live connection; 0: there is none. */
uint64_t lk_client_connection(const lk_client *c)
{
  return c->connection.number;
}

int64_t lk_client_zxid(const lk_client *c)
{
  return c->session.last_zxid;
}

int64_t lk_client_abandoned_session_end(const lk_client *c)
{
  return c->session.abandoned_end_ms;
}

const char *lk_client_peer(const lk_client *c)
{
  return c->connection.peer;
}

const char *lk_client_local(const lk_client *c)
{
  return c->connection.local;
}

const char *lk_client_server(const lk_client *c)
{
  return c->connection.server;
}

const lk_tls_config *lk_client_tls(const lk_client *c)
{
  return c->tls;
}

const char *lk_client_chroot(const lk_client *c)
{
  return c->hosts.chroot;
}

int lk_client_last_error(const lk_client *c, const char **text)
{
  *text = c->last_error.text;
  return c->last_error.err;
}

lk_tls_cause lk_client_tls_cause(const lk_client *c)
{
  return c->last_error.err == LK_ERR_TLS ? c->last_error.tls_cause
                                         : LK_TLS_OTHER;
}

/* The time of the present input, at which the clock was read once. */
int64_t lk_client_input_ms(const lk_client *c)
{
  return c->now;
}

int64_t lk_client_clock(const lk_client *c)
{
  return c->hooks.now(c->hooks.arg);
}

void lk_client_random(lk_client *c, void *out, size_t len)
{
  c->hooks.random(c->hooks.arg, out, len);
}

const lk_mem *lk_client_mem(const lk_client *c)
{
  return &c->mem;
}

const lk_reply *lk_client_reply(const lk_client *c)
{
  return c->input.reply;
}

const char *lk_state_text(lk_state state)
{
  switch (state) {
  case LK_STATE_CONNECTING: return "connecting";
  case LK_STATE_CONNECTED: return "connected";
  case LK_STATE_READ_ONLY: return "read-only";
  case LK_STATE_SUSPENDED: return "suspended";
  case LK_STATE_EXPIRED: return "expired";
  case LK_STATE_AUTH_FAILED: return "auth failed";
  case LK_STATE_CLOSED: return "closed";
  }
  return "unknown state";
}

/* ---- the end ------------------------------------------------------------- */

/* The hooks of an ended client, in place of those of its driver. */

static int64_t last_reading(void *arg)
{
  const lk_client *c = arg;

  return c->now;
}

static void no_random(void *arg, void *out, size_t len)
{
  (void)arg;
  memset(out, 0, len);
}

static void no_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)arg;
}

/* Give back everything but the struct and the session lease. */
static void client_free_parts(lk_client *c)
{
  detach_all_listeners(c);
  lk__auth_free_all(c);
  lk__sasl_free(c);
  lk__watches_free(&c->watches);
  lk__arena_free(&c->input.arena);
  lk__buf_free(&c->input.frames.partial);
  lk__buf_free(&c->output.bytes);
  lk__ring_free(&c->pings.sent_ms);
  lk__requests_free(&c->requests, &c->mem);
  lk__hosts_free(&c->hosts);
  lk__tls_free(&c->mem, c->tls);
  c->tls = NULL;
  lk__evidence_free(&c->evidence);
}

/* lk_client_free() takes effect: no callback and no hook follows. */
static void client_end(lk_client *c)
{
  lk_hooks hooks = c->hooks;

  /* Callbacks may call the client: as nested calls these do not free it
   * again. */
  c->nesting.depth++;
  if (c->session.state != LK_STATE_CLOSED)
    lk__session_closed(c, lk__close_outcome(c, LK_ERR_IN_DOUBT));
  client_free_parts(c);
  c->hooks = (lk_hooks){
      .now = last_reading, .random = no_random, .wake = no_wake, .arg = c};
  c->options.log = NULL;
  c->nesting = (lk_engine_nesting){.freed = true};
  lk__client_unref(c);
  if (hooks.freed != NULL)
    hooks.freed(c, hooks.arg);
}

void lk_client_free(lk_client *c)
{
  if (c == NULL || c->nesting.freed)
    return;
  c->nesting.free_wanted = true;
  if (c->nesting.depth == 0)
    client_end(c);
}

void lk__client_ref(lk_client *c)
{
  c->refs++;
}

void lk__client_unref(lk_client *c)
{
  lk_mem mem = c->mem;

  if (--c->refs > 0)
    return;
  if (c->lease.object != NULL)
    c->lease.free(c->lease.object);
  lk__mem_free(&mem, c);
}
