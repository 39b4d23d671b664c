/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sized.h"
#include "proto/engine/invariants.h"
#include "proto/engine/tls_config.h"

enum {
  DEFAULT_TIMEOUT_MS = 30000,
  DEFAULT_SEND_LIMIT = 0xfffff, /* the server's jute.maxbuffer */
  DEFAULT_RECEIVE_LIMIT = 16 * 1024 * 1024,
  DEFAULT_OUTSTANDING = 65536,
  KEEP_OUT = 1024 * 1024, /* of the output's memory, once all is sent */
  CLOSE_MS = 1500
};

/* ---- life -------------------------------------------------------------- */

static size_t or_default(size_t value, size_t usual)
{
  return value == 0 ? usual : value;
}

static void init(lk_client *c, const lk_client_config *config,
                 const lk_hooks *hooks, const lk_mem *mem)
{
  c->mem = *mem;
  c->hooks = *hooks;
  c->log = config->log;
  c->log_arg = config->log_arg;
  c->wanted_timeout_ms = config->session_timeout_ms == 0
                             ? DEFAULT_TIMEOUT_MS
                             : config->session_timeout_ms;
  c->timeout_ms = c->wanted_timeout_ms;
  c->give_up_ms = config->give_up_ms;
  c->one_session = config->one_session;
  c->read_only = config->read_only;
  c->send_limit = or_default(config->send_limit, DEFAULT_SEND_LIMIT);
  c->frames.limit = or_default(config->receive_limit, DEFAULT_RECEIVE_LIMIT);
  c->outstanding_limit =
      or_default(config->outstanding_limit, DEFAULT_OUTSTANDING);
  c->now = hooks->now(hooks->arg);
  c->close_end_ms = LK_NEVER;
  c->fence = UINT64_MAX;
  c->probe_ms = LK_NEVER;
  c->rearm_ms = LK_NEVER;
  c->proven_ms = c->now;
  c->lives_until_ms = INT64_MIN;
  c->refused_round = true;
  if (config->resume != NULL)
    c->session = *config->resume;
  lk__evidence_init(&c->evidence);
  c->out.mem = &c->mem;
  c->held.mem = &c->mem;
  c->scratch.mem = &c->mem;
  c->frames.partial.mem = &c->mem;
  c->arena.mem = &c->mem;
  lk__ring_init(&c->pings, &c->mem, sizeof(int64_t));
  lk__ring_init(&c->sent, &c->mem, sizeof(lk_request));
  lk__ring_init(&c->waiting, &c->mem, sizeof(lk_request));
  lk__ring_init(&c->late, &c->mem, sizeof(lk_request));
  lk__ring_init(&c->ending[0], &c->mem, sizeof(lk_request));
  lk__ring_init(&c->ending[1], &c->mem, sizeof(lk_request));
}

/* There is no client yet to log with. A config that is too long has the logger
 * where it always was. */
static bool copy_config(lk_client_config *out, const lk_client_config *from)
{
  static const lk_sized what = LK_SIZED(lk_client_config);
  const char *wrong = from == NULL ? "" : lk__sized_copy(&what, out, from);

  if (wrong == what.beyond && from->log != NULL)
    from->log(from->log_arg, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return wrong == NULL;
}

/* The client that had the session before numbered its requests, too, and a
 * server may hand out the answer to an older one of the same number. */
static int32_t random_xid(const lk_hooks *hooks)
{
  uint32_t r;

  hooks->random(hooks->arg, &r, sizeof r);
  return (int32_t)(r % INT32_MAX);
}

static bool acceptable(const lk_client_config *config, const lk_hooks *hooks)
{
  return hooks != NULL && hooks->now != NULL && hooks->random != NULL &&
         hooks->wake != NULL && config->session_timeout_ms >= 0 &&
         config->give_up_ms >= -1 && config->send_limit <= INT32_MAX &&
         config->receive_limit <= INT32_MAX;
}

static int init_hosts(lk_client *c, const lk_client_config *config)
{
  const char *hosts = config->hosts == NULL ? "127.0.0.1" : config->hosts;
  const char *why;

  return lk__hosts_init(&c->hosts, &c->mem, hosts, config->tls != NULL, &why);
}

static int init_tls(lk_client *c, const lk_client_config *config)
{
  const char *wrong = NULL;
  int err = 0;

  if (c->hosts.tls)
    err = lk__tls_copy(&c->tls, &c->mem, config->tls, &wrong);
  if (wrong != NULL)
    lk_client_log(c, LK_LOG_ERROR, err, wrong);
  return err;
}

int lk_client_new(lk_client **out, const lk_client_config *config,
                  const lk_hooks *hooks)
{
  lk_client_config own;

  *out = NULL;
  if (!copy_config(&own, config) || !acceptable(&own, hooks))
    return LK_ERR_BAD_ARGUMENT;
  const lk_mem *mem = own.mem == NULL ? &lk__mem_libc : own.mem;
  lk_client *c = lk__mem_new(mem, sizeof *c);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  init(c, &own, hooks, mem);
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
  lk__hosts_shuffle(&c->hosts, hooks->random, hooks->arg);
  if (own.resume != NULL)
    c->xid = random_xid(hooks);
  c->retry_ms = c->now; /* dialled by the driver's first tick */
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

static void free_auths(lk_client *c)
{
  while (c->auths != NULL) {
    lk_auth *a = c->auths;

    c->auths = a->next;
    lk__auth_free(c, a);
  }
}

static void destroy(lk_client *c)
{
  lk_hooks hooks = c->hooks;
  lk_mem mem = c->mem;

  c->depth++; /* what callbacks do from here on frees nothing twice */
  if (c->state != LK_STATE_CLOSED)
    lk__session_closed(c, lk__request_close_verdict(c, LK_ERR_IN_DOUBT));
  while (c->listeners != NULL)
    lk_client_detach(c, c->listeners);
  while (c->timers.root != NULL)
    lk__heap_remove(&c->timers, c->timers.root);
  free_auths(c);
  lk__sasl_free(c);
  lk__deadlines_free(c);
  lk__watches_free(&c->watches);
  lk__arena_free(&c->arena);
  lk__buf_free(&c->frames.partial);
  lk__buf_free(&c->scratch);
  lk__buf_free(&c->held);
  lk__buf_free(&c->out);
  lk__ring_free(&c->pings);
  lk__ring_free(&c->sent);
  lk__ring_free(&c->waiting);
  lk__ring_free(&c->late);
  lk__ring_free(&c->ending[0]);
  lk__ring_free(&c->ending[1]);
  lk__hosts_free(&c->hosts);
  lk__tls_free(&c->mem, c->tls);
  if (c->lease != NULL)
    c->free_lease(c->lease);
  lk__mem_free(&mem, c);
  if (hooks.freed != NULL)
    hooks.freed(c, hooks.arg);
}

void lk_client_free(lk_client *c)
{
  if (c == NULL)
    return;
  c->free_wanted = true;
  if (c->depth == 0)
    destroy(c);
}

/* The session ends on this connection rather than that the client moves, unless
 * the server is about to close it. */
static void close_live(lk_client *c)
{
  if (c->unknown_op != 0)
    return; /* closeSession leaves on the next connection */
  c->fence = UINT64_MAX;
  if (c->waiting.count == 0)
    (void)lk__request_close(c); /* no memory: the deadline ends it */
}

bool lk__client_can_close(const lk_client *c)
{
  return c->phase != LK_PHASE_LIVE && c->session.id == 0 &&
         c->waiting.count == c->waiting_ended;
}

int lk_client_close(lk_client *c, lk_close_cb done, void *arg)
{
  if (lk__client_refusal(c) == LK_ERR_FORKED)
    return LK_ERR_FORKED;
  if (c->closing || c->free_wanted || c->final_err != 0)
    return LK_ERR_CLOSED;
  lk__client_enter(c);
  c->close_done = done;
  c->close_arg = arg;
  c->close_end_ms = c->now + CLOSE_MS;
  lk__probe_stop(c);
  if (c->phase == LK_PHASE_LIVE)
    close_live(c);
  else if (lk__client_can_close(c))
    c->close_end_ms = c->now; /* complete the close in the next turn */
  c->closing = true;
  lk__client_wake(c);
  lk__client_notify_closing(c);
  lk__client_leave(c);
  return 0;
}

int lk__client_refusal(const lk_client *c)
{
  if (c->hooks.forked != NULL && c->hooks.forked(c->hooks.arg))
    return LK_ERR_FORKED;
  if (c->final_err != 0)
    return c->final_err;
  return c->closing || c->free_wanted ? LK_ERR_CLOSED : 0;
}

int lk_client_set_hosts(lk_client *c, const char *hosts)
{
  lk_hosts fresh;
  const char *why;

  int err = lk__client_refusal(c);

  if (err == 0)
    err = lk__hosts_init(&fresh, &c->mem, hosts == NULL ? "" : hosts,
                         c->hosts.tls, &why);
  if (err != 0)
    return err;
  if (fresh.tls != c->hosts.tls ||
      (fresh.chroot_len > 0 && strcmp(fresh.chroot, c->hosts.chroot) != 0)) {
    lk__hosts_free(&fresh);
    return LK_ERR_BAD_ARGUMENT;
  }
  lk__client_enter(c);
  lk__session_set_hosts(c, &fresh);
  lk__client_leave(c);
  return 0;
}

/* ---- inputs ------------------------------------------------------------ */

void lk__client_enter(lk_client *c)
{
  if (c->depth++ > 0)
    return;
  c->now = c->hooks.now(c->hooks.arg);
  if (c->has_left)
    c->left_ms = c->now;
  c->has_left = false;
}

void lk__client_leave(lk_client *c)
{
  c->now_stale = true;
  lk__client_release(c);
}

void lk__client_hold(lk_client *c)
{
  c->depth++;
}

/* The only place where the driver is woken. Its hook may call inputs that wake
 * it again. */
static void end_outermost(lk_client *c)
{
  lk__invariants_check(c, LK_MOMENT_REST);
  while (c->wake_wanted && !c->free_wanted) {
    c->wake_wanted = false;
    c->waking = true;
    c->hooks.wake(c, c->hooks.arg);
    c->waking = false;
  }
  c->depth = 0;
  if (c->free_wanted)
    destroy(c);
}

void lk__client_release(lk_client *c)
{
  if (c->depth > 1)
    c->depth--;
  else
    end_outermost(c);
}

void lk__client_wake(lk_client *c)
{
  lk__client_hold(c);
  c->wake_wanted = true;
  lk__client_release(c);
}

void lk_client_want(lk_client *c, lk_want *out)
{
  const lk_host *h = lk__hosts_current(&c->hosts);
  bool wanted = c->phase != LK_PHASE_PAUSE && c->phase != LK_PHASE_ENDED;

  *out = (lk_want){.attempt = wanted ? c->attempt : 0,
                   .host = h->name,
                   .port = h->port,
                   .address = c->hosts.address};
}

static bool is_present(const lk_client *c, uint64_t attempt)
{
  return c->attempt == attempt && !c->free_wanted &&
         c->phase != LK_PHASE_PAUSE && c->phase != LK_PHASE_ENDED;
}

/* An input that cannot be taken: the connection is given up at the deadline,
 * which is now once the outermost call has ended. */
static void lose_input(lk_client *c, uint64_t attempt)
{
  if (!is_present(c, attempt))
    return;
  c->input_lost = true;
  lk__client_wake(c);
}

/* Begin an input for `attempt`, after what is due; false: it is outdated. Or it
 * comes from inside a callback, where none can be taken. */
static bool begin(lk_client *c, uint64_t attempt)
{
  bool outermost = c->depth == 0;

  lk__client_enter(c);
  if (outermost)
    lk__timing_run(c);
  else
    lose_input(c, attempt);
  return outermost && is_present(c, attempt);
}

/* The same for an input that the hook `wake` may call as well. It runs in the
 * middle of a call that must not complete any request: so what is due is left
 * to the next input, and nothing is taken that ends a live connection. */
static bool begin_anywhere(lk_client *c, uint64_t attempt)
{
  if (!c->waking)
    return begin(c, attempt);
  lk__client_enter(c);
  c->now = c->hooks.now(c->hooks.arg);
  return is_present(c, attempt) && c->phase == LK_PHASE_CONNECTING;
}

void lk_client_resolved(lk_client *c, uint64_t attempt, uint32_t count)
{
  if (begin_anywhere(c, attempt) && c->phase == LK_PHASE_CONNECTING &&
      count > 0) {
    c->hosts.addresses = count;
    lk__timing_resolved(c);
  }
  lk__client_leave(c);
}

static void warn_of_tls(const lk_client *c)
{
  if (c->tls != NULL && (c->tls->any_certificate || c->tls->any_name))
    lk__client_logf(c, LK_LOG_WARNING, LK_ERR_TLS,
                    "%s: TLS: the server's %s is not verified", c->server,
                    c->tls->any_certificate ? "certificate" : "name");
}

void lk_client_connected(lk_client *c, uint64_t attempt)
{
  if (begin_anywhere(c, attempt) && c->phase == LK_PHASE_CONNECTING) {
    warn_of_tls(c);
    lk__session_send_handshake(c);
  }
  lk__client_leave(c);
}

static void end_attempt(lk_client *c, uint64_t attempt, int err,
                        lk_tls_cause cause, const char *why)
{
  if (begin_anywhere(c, attempt)) {
    c->tls_cause = cause;
    if (err == 0)
      err = c->phase == LK_PHASE_HANDSHAKE ? LK_ERR_REFUSED
                                           : LK_ERR_CONNECTION_LOSS;
    if (why == NULL && err == LK_ERR_CONNECTION_LOSS)
      why = c->phase == LK_PHASE_SASL
                ? "the server closed the connection during the SASL exchange"
                : "the server closed the connection";
    lk__session_break(c, err, why);
  } else if (c->waking) {
    lose_input(c, attempt);
  }
  lk__client_leave(c);
}

void lk_client_failed(lk_client *c, uint64_t attempt, int err, const char *why)
{
  end_attempt(c, attempt, err, LK_TLS_OTHER, why);
}

void lk_client_failed_tls(lk_client *c, uint64_t attempt, lk_tls_cause cause,
                          const char *why)
{
  end_attempt(c, attempt, LK_ERR_TLS, cause, why);
}

static void take_frame(lk_client *c, lk_bytes frame)
{
  if (c->phase == LK_PHASE_LIVE)
    lk__reply_take(c, frame);
  else if (c->phase == LK_PHASE_HANDSHAKE)
    lk__session_take_handshake(c, frame);
  else
    lk__sasl_take(c, frame);
}

/* Whether the connection that brought the bytes at hand still stands. */
static bool serving(const lk_client *c, uint64_t attempt)
{
  return c->attempt == attempt && !c->free_wanted &&
         (c->phase == LK_PHASE_LIVE || c->phase == LK_PHASE_HANDSHAKE ||
          c->phase == LK_PHASE_SASL);
}

static void receive(lk_client *c, uint64_t attempt, lk_bytes bytes)
{
  /* a frame that was put together is given back by lk__frame_next() */
  while ((bytes.len > 0 || c->frames.handed) && serving(c, attempt)) {
    lk_bytes frame;

    switch (lk__frame_next(&c->frames, &bytes, &frame)) {
    case LK_FRAME_NONE: return;
    case LK_FRAME_WHOLE: take_frame(c, frame); break;
    case LK_FRAME_BAD:
      lk__session_break(c, LK_ERR_PROTOCOL, "a frame of less than no bytes");
      break;
    case LK_FRAME_TOO_BIG:
      lk__request_forbid_retry(c, true);
      lk__session_break(c, LK_ERR_PROTOCOL, "a frame longer than the limit");
      break;
    case LK_FRAME_NO_MEMORY:
      lk__session_break(c, LK_ERR_NO_MEMORY, NULL);
      break;
    }
  }
}

void *lk_client_receive_buffer(lk_client *c, uint64_t attempt, size_t least,
                               size_t *size)
{
  return serving(c, attempt) ? lk__frame_room(&c->frames, least, size) : NULL;
}

void lk_client_received(lk_client *c, uint64_t attempt, const void *bytes,
                        size_t len)
{
  if (begin(c, attempt)) {
    c->heard_ms = c->now;
    receive(c, attempt, lk_bytes_of(bytes, len));
  }
  lk__client_leave(c);
}

lk_bytes lk_client_pending(lk_client *c)
{
  size_t len = lk__buf_len(&c->out);

  if (c->fence - c->out_sent < len)
    len = (size_t)(c->fence - c->out_sent);
  return lk_bytes_of(len == 0 ? NULL : lk__buf_bytes(&c->out), len);
}

void lk_client_sent(lk_client *c, uint64_t attempt, size_t len)
{
  if (attempt != c->attempt || len > lk__buf_len(&c->out))
    return;
  lk__buf_consume(&c->out, len);
  c->out_sent += len;
  c->has_left = c->has_left || len > 0;
  c->now_stale = true;
  if (lk__buf_len(&c->out) > 0)
    return;
  c->written_ms = c->now;
  lk__buf_trim(&c->out, KEEP_OUT);
}

int64_t lk_client_deadline(const lk_client *c)
{
  return lk__timing_deadline(c);
}

void lk_client_tick(lk_client *c)
{
  bool outermost = c->depth == 0;

  lk__client_enter(c);
  if (outermost)
    lk__timing_run(c);
  lk__client_leave(c);
}
