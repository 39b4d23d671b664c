/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/harness.h"
#include "support/harness_things.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A client that still wants something after so many turns never stops. */
enum { MAX_TURNS = 200 };

/* The length in front of a frame. */
enum { LEN_SIZE = 4 };

void harness_must(harness *h, bool holds, const char *what)
{
  if (holds)
    return;
  fprintf(stderr, "%.*s", (int)lk__buf_len(&h->log),
          (const char *)lk__buf_bytes(&h->log));
  fprintf(stderr, "the client broke its promise: %s\n", what);
  abort();
}

void harness_log_line(harness *h, const char *format, ...)
{
  char text[1000]; /* longer lines are truncated */
  va_list args;

  if (h->now != h->log_now)
    wire_say(&h->log, "at %" PRId64 "\n", h->now - h->log_start);
  h->log_now = h->now;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  wire_say(&h->log, "%s\n", text);
}

/* ---- hooks -------------------------------------------------------------- */

static int64_t on_now(void *arg)
{
  const harness *h = arg;

  return h->now;
}

static void on_random(void *arg, void *out, size_t len)
{
  harness *h = arg;
  unsigned char *bytes = out;

  for (size_t i = 0; i < len; i++) {
    if (h->seed != 0) {
      /* the linear congruential generator of MMIX */
      h->seed = h->seed * 6364136223846793005U + 1442695040888963407U;
      h->random = (unsigned char)(h->seed >> 56);
    }
    bytes[i] = h->random;
  }
}

static bool follow_want(harness *h);

static void on_wake(lk_client *c, void *arg)
{
  harness *h = arg;

  harness_must(h, h->client == NULL || h->client == c, "woken for another");
  harness_must(h, h->depth == 0, "woken in a callback");
  harness_must(h, !h->waking, "woken while it is being woken");
  h->waking = true;
  h->wakes++;
  if (h->eager && follow_want(h) && h->want.attempt != 0) {
    h->open = true;
    lk_client_connected(c, h->want.attempt);
  }
  h->waking = false;
}

static void on_freed(lk_client *c, void *arg)
{
  harness *h = arg;

  harness_must(h, h->client == c && h->depth == 0, "freed in a callback");
  h->client = NULL;
  harness_must(h, h->sasl == NULL || !h->sasl->running,
               "an exchange never ended");
  h->open = false;
  h->probe = 0;
  harness_things_freed(h);
  harness_log_line(h, "freed");
}

static bool on_forked(void *arg)
{
  const harness *h = arg;

  return h->forked;
}

/* Logs warnings and errors only: the harness logs all else itself. */
static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  harness *h = arg;
  char room[16];

  harness_must(h, strchr(text, '\n') == NULL, "more than a line for the log");
  if (level == LK_LOG_WARNING || level == LK_LOG_ERROR)
    harness_log_line(h, "%s %s: %s",
                     level == LK_LOG_ERROR ? "error" : "warning",
                     harness_error(err, room, sizeof room), text);
}

/* ---- life --------------------------------------------------------------- */

int harness_init(harness *h, const lk_client_config *config)
{
  lk_client_config copy = *config;

  h->log = wire_buf();
  h->wire = wire_buf();
  h->now = 1000000; /* any time but 0 */
  h->log_now = h->now;
  h->log_start = h->now;
  h->room = SIZE_MAX;
  h->resumed = config->resume != NULL;
  h->session = h->resumed ? config->resume->id : 0;
  h->read_only = config->read_only;
  h->proves = config->sasl != NULL;
  h->hooks = (lk_hooks){.size = sizeof(lk_hooks),
                        .now = on_now,
                        .random = on_random,
                        .wake = on_wake,
                        .freed = on_freed,
                        .forked = on_forked,
                        .arg = h};
  copy.mem = &h->mem.mem;
  copy.log = on_log;
  copy.log_arg = h;
  int err = lk_client_new(&h->client, &copy, &h->hooks);

  if (err == 0)
    harness_listen_base(h);
  else
    harness_must(h, h->client == NULL, "no client and a pointer to it");
  return err;
}

void harness_done(harness *h)
{
  if (h->client != NULL)
    harness_free(h);
  harness_must(h, h->client == NULL, "not freed");
  harness_things_done(h);
  harness_must(h, h->mem.live == 0, "memory was not given back");
  lk__buf_free(&h->log);
  lk__buf_free(&h->wire);
}

/* ---- the driver --------------------------------------------------------- */

static void log_want(harness *h)
{
  bool is_ipv6 = strchr(h->host, ':') != NULL;
  char address[24] = "";

  if (h->want.address_index > 0)
    snprintf(address, sizeof address, " address %" PRIu32,
             h->want.address_index);
  if (h->want.attempt == 0)
    harness_log_line(h, "want nothing");
  else
    harness_log_line(h, "want %" PRIu64 " %s%s%s:%u%s", h->want.attempt,
                     is_ipv6 ? "[" : "", h->host, is_ipv6 ? "]" : "",
                     (unsigned)h->want.port, address);
}

static bool follow_want(harness *h)
{
  lk_want want;

  want = *lk_client_want(h->client);
  if (want.attempt == h->want.attempt)
    return false;
  harness_must(h, want.attempt == 0 || want.attempt > h->attempts,
               "an attempt's number came again");
  if (want.attempt != 0)
    h->attempts = want.attempt;
  h->want = want;
  snprintf(h->host, sizeof h->host, "%s", want.host);
  h->open = false;
  h->next_is_connect_request = true;
  if (h->sasl != NULL)
    h->sasl->proved = false;
  lk__buf_consume(&h->wire, lk__buf_len(&h->wire));
  log_want(h);
  return true;
}

static bool follow_probe(harness *h)
{
  lk_want want;

  want = *lk_client_want_probe(h->client);
  if (want.attempt == h->probe)
    return false;
  harness_must(h, want.attempt == 0 || want.attempt > h->probes,
               "a probe's number came again");
  harness_must(h, want.attempt == 0 || h->state == LK_STATE_READ_ONLY,
               "a probe though there is a quorum, or no connection");
  if (want.attempt != 0)
    h->probes = want.attempt;
  h->probe = want.attempt;
  if (want.attempt != 0)
    harness_log_line(h, "probe %" PRIu64 " %s:%u", want.attempt, want.host,
                     (unsigned)want.port);
  else
    harness_log_line(h, "probe nothing");
  return true;
}

/* The xids of requests grow; those of pings and the like are below 0. */
static void check_xid(harness *h, lk_bytes frame)
{
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);

  if (xid < 0)
    return;
  bool may_start_again = h->xid > INT32_MAX - 1000;

  harness_must(h, xid > h->xid || (may_start_again && xid > 0),
               "an xid came again");
  h->xid = xid;
}

/* If the request is a marked write, note that it was sent completely. `shown`:
   the request as text. */
static void note_marked_write(harness *h, const char *shown)
{
  const char *at = strstr(shown, "data=\"");
  char name[24];

  if (at == NULL || sscanf(at, "data=\"%23[^\"]\"", name) != 1)
    return;
  harness_thing *t = harness_thing_find(h, name);

  if (t == NULL)
    return;
  t->was_sent = true;
  harness_must(h, !t->was_cancelled, "a cancelled write was sent");
}

/* Tokens of SASL are sent before requests, and not after them. */
static void check_sasl(harness *h, const char *shown)
{
  bool is_token = strncmp(shown, "sasl ", 5) == 0;
  bool is_connected =
      h->state == LK_STATE_CONNECTED || h->state == LK_STATE_READ_ONLY;
  bool proved = h->sasl != NULL ? h->sasl->proved : is_connected;

  if (h->next_is_connect_request || !h->proves)
    return;
  if (is_token)
    harness_must(h, !proved, "a token behind the end of the SASL exchange");
  else
    harness_must(h, proved,
                 "something was sent ahead of the SASL exchange's end");
}

static void see_frame(harness *h, lk_bytes frame)
{
  lk_buf text = wire_buf();

  wire_print(frame, h->next_is_connect_request, &text);
  wire_say(&text, "%c", '\0');
  const char *shown = (const char *)lk__buf_bytes(&text);

  harness_must(h,
               strstr(shown, "UNREADABLE") == NULL &&
                   strstr(shown, "MALFORMED") == NULL &&
                   strstr(shown, "UNKNOWN") == NULL,
               "a request that cannot be read was sent");
  check_sasl(h, shown);
  if (!h->next_is_connect_request)
    check_xid(h, frame);
  note_marked_write(h, shown);
  h->next_is_connect_request = false;
  if (!h->mute)
    harness_log_line(h, "send %s", shown);
  lk__buf_free(&text);
}

/* Process the complete frames among the sent bytes. */
static void see_frames(harness *h)
{
  for (;;) {
    const unsigned char *bytes = lk__buf_bytes(&h->wire);
    size_t have = lk__buf_len(&h->wire);
    lk_reader in;

    if (bytes == NULL || have < LEN_SIZE)
      return;
    lk__reader_init(&in, bytes, have);
    size_t len = (size_t)lk__reader_int(&in);

    if (have - LEN_SIZE < len)
      return;
    see_frame(h, lk_bytes_of(bytes + LEN_SIZE, len));
    lk__buf_consume(&h->wire, LEN_SIZE + len);
  }
}

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

/* Take the client's output, as far as the transport has room. */
static bool transmit(harness *h)
{
  lk_bytes bytes = lk_client_pending(h->client);
  size_t len = least(bytes.len, h->room);

  if (h->step > 0)
    len = least(len, h->step);
  if (!h->open)
    harness_must(h, bytes.len == 0,
                 "bytes for a transport that does not stand");
  if (len == 0)
    return false;
  if (!lk__buf_append(&h->wire, bytes.at, len))
    abort();
  lk_client_sent(h->client, h->want.attempt, len);
  if (h->room != SIZE_MAX)
    h->room -= len;
  see_frames(h);
  return true;
}

static bool tick_if_due(harness *h)
{
  if (lk_client_deadline(h->client) > h->now)
    return false;
  lk_client_tick(h->client);
  return true;
}

void harness_settle(harness *h)
{
  bool moved = true;

  for (int turns = 0; moved; turns++) {
    harness_must(h, h->step > 0 || turns < MAX_TURNS, "it never comes to rest");
    moved = h->client != NULL && tick_if_due(h);
    moved = (h->client != NULL && follow_want(h)) || moved;
    moved = (h->client != NULL && follow_probe(h)) || moved;
    moved = (h->client != NULL && transmit(h)) || moved;
  }
  harness_must(h,
               h->client == NULL ||
                   h->client->connection.phase != LK_PHASE_LIVE ||
                   lk__list_empty(&h->client->requests.waiting),
               "requests wait though there is a connection");
}

void harness_resolved(harness *h, uint32_t count)
{
  if (h->client != NULL)
    lk_client_resolved(h->client, h->want.attempt, count);
  harness_settle(h);
}

void harness_connected(harness *h)
{
  if (h->client != NULL) {
    h->open = h->want.attempt != 0;
    lk_client_connected(h->client, h->want.attempt);
  }
  harness_settle(h);
}

void harness_failed(harness *h, int err, const char *why)
{
  h->open = false;
  if (h->client != NULL)
    lk_client_failed(h->client, h->want.attempt, err, why);
  harness_settle(h);
}

/* The bytes stand in a block of exactly their size, so that AddressSanitizer
   reports a read behind them. */
static void receive_copy(harness *h, const void *bytes, size_t len)
{
  unsigned char *copy = malloc(len);

  if (copy == NULL)
    abort();
  memcpy(copy, bytes, len);
  lk_client_received(h->client, h->want.attempt, copy, len);
  free(copy);
}

void harness_receive(harness *h, const void *bytes, size_t len)
{
  size_t step = h->step == 0 ? len : h->step;

  for (size_t at = 0; h->client != NULL && at < len; at += step)
    receive_copy(h, (const char *)bytes + at, least(step, len - at));
  harness_settle(h);
}

void harness_probed(harness *h, const char *answer)
{
  if (h->client != NULL)
    lk_client_probed(h->client, h->probe, answer, strlen(answer));
  harness_settle(h);
}

void harness_pass(harness *h, int64_t ms)
{
  int64_t end = h->now + ms;

  harness_settle(h);
  while (h->client != NULL && lk_client_deadline(h->client) <= end) {
    h->now = lk_client_deadline(h->client);
    harness_settle(h);
  }
  h->now = end;
  harness_settle(h);
}
