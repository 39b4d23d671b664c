/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sized_struct.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/engine/tls_config.h"

enum {
  DEFAULT_TIMEOUT_MS = 30000,
  DEFAULT_SEND_LIMIT = 0xfffff,             /* the server's jute.maxbuffer */
  DEFAULT_RECEIVE_LIMIT = 16 * 1024 * 1024, /* bytes */
  DEFAULT_OUTSTANDING_LIMIT = 65536         /* requests */
};

/* ---- creation and end -------------------------------------------------- */

/* In a lk_client_config a limit of 0 selects the default. */
static size_t limit_or_default(size_t limit, size_t default_limit)
{
  return limit == 0 ? default_limit : limit;
}

static void destroy_client(lk_client *c)
{
  lk_hooks hooks = c->hooks;
  lk_mem mem = c->mem;

  /* Callbacks may call the client: as nested calls these do not free it
   * again. */
  c->nesting.depth++;
  if (c->session.state != LK_STATE_CLOSED)
    lk__session_closed(c, lk__close_outcome(c, LK_ERR_IN_DOUBT));
  while (c->listeners.lists[LK_LISTENERS_ALL].first != NULL)
    lk_client_detach(c, c->listeners.lists[LK_LISTENERS_ALL].first);
  while (c->timers.root != NULL)
    lk__heap_remove(&c->timers, c->timers.root);
  lk__auth_free_all(c);
  lk__sasl_free(c);
  lk__deadlines_free(&c->deadlines, &c->mem);
  lk__watches_free(&c->watches);
  lk__arena_free(&c->input.arena);
  lk__buf_free(&c->input.frames.partial);
  lk__buf_free(&c->output.bytes);
  lk__ring_free(&c->pings.sent_ms);
  lk__requests_free(&c->requests);
  lk__hosts_free(&c->hosts);
  lk__tls_free(&c->mem, c->tls);
  if (c->lease.object != NULL)
    c->lease.free(c->lease.object);
  lk__evidence_free(&c->evidence);
  lk__mem_free(&mem, c);
  if (hooks.freed != NULL)
    hooks.freed(c, hooks.arg);
}

static void client_init(lk_client *c, const lk_client_config *config,
                        const lk_hooks *hooks, const lk_mem *mem)
{
  c->mem = *mem;
  c->hooks = *hooks;
  c->options.log = config->log;
  c->options.log_arg = config->log_arg;
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
  c->nesting.destroy = destroy_client;
  lk__evidence_init(&c->evidence, &c->mem);
  c->output.bytes.mem = &c->mem;
  c->input.frames.partial.mem = &c->mem;
  c->input.arena.mem = &c->mem;
  lk__ring_init(&c->pings.sent_ms, &c->mem, sizeof(int64_t));
  lk__requests_init(&c->requests, &c->mem);
}

/* false: the options are invalid. There is no client yet that could log this,
 * so the log function of `from` is called. Its place in `from` is known only if
 * `from` is the longer struct of a newer header. */
static bool copy_config(lk_client_config *out, const lk_client_config *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_client_config);

  if (from == NULL)
    return false;
  const char *wrong = lk__sized_struct_copy(&what, out, from);

  if (wrong == what.beyond && from->log != NULL)
    from->log(from->log_arg, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return wrong == NULL;
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

static bool config_is_valid(const lk_client_config *config,
                            const lk_hooks *hooks)
{
  return hooks != NULL && hooks->now != NULL && hooks->random != NULL &&
         hooks->wake != NULL && config->session_timeout_ms >= 0 &&
         config->give_up_ms >= -1 && config->send_limit <= INT32_MAX &&
         config->receive_limit <= INT32_MAX;
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
  if (!copy_config(&own, config) || !config_is_valid(&own, hooks))
    return LK_ERR_BAD_ARGUMENT;
  const lk_mem *mem = own.mem == NULL ? &lk__mem_libc : own.mem;
  lk_client *c = lk__mem_new(mem, sizeof *c);

  if (c == NULL)
    return LK_ERR_NO_MEMORY;
  client_init(c, &own, hooks, mem);
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
    c->session.last_xid = random_last_xid(hooks);
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

void lk_client_free(lk_client *c)
{
  if (c == NULL)
    return;
  c->nesting.free_wanted = true;
  if (c->nesting.depth == 0)
    destroy_client(c);
}

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
  lk__session_set_hosts(c, &fresh);
  lk__client_leave(c);
  return 0;
}
