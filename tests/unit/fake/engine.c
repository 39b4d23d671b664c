/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/engine.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int engine_new_error;
void (*engine_after_line)(void);

static void destroy(lk_client *c)
{
  lk_hooks hooks = c->hooks;

  hooks.freed(c, hooks.arg);
  free(c->out);
  free(c);
}

/* Write a line to the log, and call the functions of the test. They may free
   the client, so `c` is not used after it. */
static void finish_input(lk_client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void finish_input(lk_client *c, const char *format, ...)
{
  char line[256];
  size_t len = strlen(c->log);
  va_list args;

  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  ck_assert_uint_lt(len + strlen(line) + 1, sizeof c->log);
  snprintf(c->log + len, sizeof c->log - len, "%s\n", line);
  c->depth++;
  if (c->on_line != NULL)
    c->on_line(c, line);
  if (engine_after_line != NULL)
    engine_after_line();
  if (--c->depth == 0 && c->free_wanted)
    destroy(c);
}

bool engine_take_log(lk_client *c, const char *text)
{
  if (strcmp(c->log, text) != 0)
    return false;
  c->log[0] = '\0';
  return true;
}

void engine_want_connection(lk_client *c, uint64_t attempt, const char *host,
                            uint16_t port, uint32_t address)
{
  snprintf(c->host, sizeof c->host, "%s", host);
  c->want = (lk_want){.attempt = attempt,
                      .host = c->host,
                      .port = port,
                      .address_index = address};
  c->out_sent = 0;
  c->out_len = 0;
  c->hooks.wake(c, c->hooks.arg);
}

void engine_want_probe(lk_client *c, uint64_t probe, const char *host,
                       uint16_t port)
{
  snprintf(c->probe_host, sizeof c->probe_host, "%s", host);
  /* lk_client_want_probe() gives the number of the probe in `attempt`. */
  c->probe = (lk_want){.attempt = probe, .host = c->probe_host, .port = port};
  c->hooks.wake(c, c->hooks.arg);
}

void engine_write(lk_client *c, const void *bytes, size_t len)
{
  c->out = realloc(c->out, c->out_len + len);
  ck_assert_ptr_nonnull(c->out);
  memcpy(c->out + c->out_len, bytes, len);
  c->out_len += len;
  c->hooks.wake(c, c->hooks.arg);
}

void engine_want_tick(lk_client *c, int64_t at_ms)
{
  c->deadline_ms = at_ms;
  c->hooks.wake(c, c->hooks.arg);
}

/* ---- functions of latchkey/client.h that drivers call -------------------- */

int lk_client_new(lk_client **out, const lk_client_config *config,
                  const lk_hooks *hooks)
{
  lk_client *c;

  (void)config;
  *out = NULL;
  if (engine_new_error != 0)
    return engine_new_error;
  c = calloc(1, sizeof *c);
  ck_assert_ptr_nonnull(c);
  c->hooks = *hooks;
  c->deadline_ms = INT64_MAX;
  c->tcp_limit_ms = ENGINE_TCP_LIMIT_MS;
  *out = c;
  return 0;
}

void lk_client_free(lk_client *c)
{
  if (c == NULL)
    return;
  c->free_wanted = true;
  if (c->depth == 0)
    destroy(c);
}

const lk_tls_config *lk_client_tls(const lk_client *c)
{
  (void)c;
  return NULL;
}

const lk_want *lk_client_want(lk_client *c)
{
  c->want_calls++;
  c->want.tcp_ms = c->tcp_limit_ms;
  return &c->want;
}

const lk_want *lk_client_want_probe(lk_client *c)
{
  return &c->probe;
}

void lk_client_probed(lk_client *c, uint64_t probe, const void *answer,
                      size_t len)
{
  if (c->probe.attempt == probe)
    c->probe.attempt = 0;
  finish_input(c, "probed %lu %.*s", (unsigned long)probe, (int)len,
               (const char *)answer);
}

void lk_client_resolved(lk_client *c, uint64_t attempt, uint32_t count)
{
  finish_input(c, "resolved %lu %u", (unsigned long)attempt, (unsigned)count);
}

void lk_client_note_addresses(lk_client *c, uint64_t attempt, const char *local,
                              const char *peer)
{
  (void)attempt;
  snprintf(c->local, sizeof c->local, "%s", local == NULL ? "" : local);
  snprintf(c->peer, sizeof c->peer, "%s", peer == NULL ? "" : peer);
}

void lk_client_connected(lk_client *c, uint64_t attempt)
{
  finish_input(c, "connected %lu", (unsigned long)attempt);
}

void lk_client_failed(lk_client *c, uint64_t attempt, int err, const char *why)
{
  finish_input(c, "failed %lu %s: %s", (unsigned long)attempt,
               err == 0 ? "0" : lk_error_name(err), why == NULL ? "-" : why);
}

void lk_client_failed_tls(lk_client *c, uint64_t attempt, lk_tls_cause cause,
                          const char *why)
{
  finish_input(c, "failed %lu TLS %d: %s", (unsigned long)attempt, (int)cause,
               why);
}

void *lk_client_receive_buffer(lk_client *c, uint64_t attempt, size_t least,
                               size_t *size)
{
  ck_assert_uint_gt(least, 0);
  if (attempt != c->want.attempt || c->room == NULL || c->room_size < least)
    return NULL;
  *size = c->room_size;
  return c->room;
}

void lk_client_received(lk_client *c, uint64_t attempt, const void *bytes,
                        size_t len)
{
  ck_assert_uint_gt(len, 0);
  c->received += len;
  if (bytes == c->room) {
    c->received_in_room += len;
    c->room += len;
    c->room_size -= len;
  }
  c->last_byte = ((const unsigned char *)bytes)[len - 1];
  c->received_calls++;
  if (attempt == c->want.attempt)
    finish_input(c, "received %zu", len);
}

lk_bytes lk_client_pending(lk_client *c)
{
  if (c->out == NULL)
    return lk_bytes_of(NULL, 0);
  return lk_bytes_of(c->out + c->out_sent, c->out_len - c->out_sent);
}

void lk_client_sent(lk_client *c, uint64_t attempt, size_t len)
{
  ck_assert_uint_eq(attempt, c->want.attempt);
  ck_assert_uint_le(len, c->out_len - c->out_sent);
  c->out_sent += len;
}

int64_t lk_client_deadline(const lk_client *c)
{
  return c->deadline_ms;
}

void lk_client_tick(lk_client *c)
{
  c->tick_ms = c->hooks.now(c->hooks.arg);
  if (c->deadline_ms <= c->tick_ms)
    c->deadline_ms = INT64_MAX;
  finish_input(c, "tick");
}
