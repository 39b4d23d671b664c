/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"

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
