/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "support/peer.h"
#include "support/peer_things.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A client that still wants something after so many turns never stops. */
enum { MAX_TURNS = 200 };

/* The length in front of a frame. */
enum { LEN_SIZE = 4 };

void peer_must(peer *p, bool holds, const char *what)
{
  if (holds)
    return;
  fprintf(stderr, "%.*s", (int)lk__buf_len(&p->log),
          (const char *)lk__buf_bytes(&p->log));
  fprintf(stderr, "the client broke its promise: %s\n", what);
  abort();
}

void peer_log_line(peer *p, const char *format, ...)
{
  char text[1000]; /* longer lines are truncated */
  va_list args;

  if (p->now != p->log_now)
    wire_say(&p->log, "at %" PRId64 "\n", p->now - p->log_start);
  p->log_now = p->now;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  wire_say(&p->log, "%s\n", text);
}

/* ---- hooks -------------------------------------------------------------- */

static int64_t on_now(void *arg)
{
  const peer *p = arg;

  return p->now;
}

static void on_random(void *arg, void *out, size_t len)
{
  peer *p = arg;
  unsigned char *bytes = out;

  for (size_t i = 0; i < len; i++) {
    if (p->seed != 0) {
      /* the linear congruential generator of MMIX */
      p->seed = p->seed * 6364136223846793005U + 1442695040888963407U;
      p->random = (unsigned char)(p->seed >> 56);
    }
    bytes[i] = p->random;
  }
}

static bool follow_want(peer *p);

static void on_wake(lk_client *c, void *arg)
{
  peer *p = arg;

  peer_must(p, p->client == NULL || p->client == c, "woken for another");
  peer_must(p, p->depth == 0, "woken in a callback");
  peer_must(p, !p->waking, "woken while it is being woken");
  p->waking = true;
  p->wakes++;
  if (p->eager && follow_want(p) && p->want.attempt != 0) {
    p->open = true;
    lk_client_connected(c, p->want.attempt);
  }
  p->waking = false;
}

static void on_freed(lk_client *c, void *arg)
{
  peer *p = arg;

  peer_must(p, p->client == c && p->depth == 0, "freed in a callback");
  p->client = NULL;
  peer_must(p, p->sasl == NULL || !p->sasl->running, "an exchange never ended");
  p->open = false;
  p->probe = 0;
  peer_things_freed(p);
  peer_log_line(p, "freed");
}

static bool on_forked(void *arg)
{
  const peer *p = arg;

  return p->forked;
}

/* Logs warnings and errors only: the peer logs all else itself. */
static void on_log(void *arg, int level, int err, const char *text)
{
  peer *p = arg;
  char room[16];

  peer_must(p, strchr(text, '\n') == NULL, "more than a line for the log");
  if (level == LK_LOG_WARNING || level == LK_LOG_ERROR)
    peer_log_line(p, "%s %s: %s", level == LK_LOG_ERROR ? "error" : "warning",
                  peer_error(err, room, sizeof room), text);
}

/* ---- life --------------------------------------------------------------- */

int peer_init(peer *p, const lk_client_config *config)
{
  lk_client_config copy = *config;

  p->log = wire_buf();
  p->wire = wire_buf();
  p->now = 1000000; /* any time but 0 */
  p->log_now = p->now;
  p->log_start = p->now;
  p->room = SIZE_MAX;
  p->resumed = config->resume != NULL;
  p->session = p->resumed ? config->resume->id : 0;
  p->read_only = config->read_only;
  p->proves = config->sasl != NULL;
  p->hooks = (lk_hooks){.now = on_now,
                        .random = on_random,
                        .wake = on_wake,
                        .freed = on_freed,
                        .forked = on_forked,
                        .arg = p};
  copy.mem = &p->mem.mem;
  copy.log = on_log;
  copy.log_arg = p;
  int err = lk_client_new(&p->client, &copy, &p->hooks);

  if (err == 0)
    peer_listen_base(p);
  else
    peer_must(p, p->client == NULL, "no client and a pointer to it");
  return err;
}

void peer_done(peer *p)
{
  if (p->client != NULL)
    peer_free(p);
  peer_must(p, p->client == NULL, "not freed");
  peer_things_done(p);
  peer_must(p, p->mem.live == 0, "memory was not given back");
  lk__buf_free(&p->log);
  lk__buf_free(&p->wire);
}

/* ---- the driver --------------------------------------------------------- */

static void log_want(peer *p)
{
  bool is_ipv6 = strchr(p->host, ':') != NULL;
  char address[24] = "";

  if (p->want.address_index > 0)
    snprintf(address, sizeof address, " address %" PRIu32,
             p->want.address_index);
  if (p->want.attempt == 0)
    peer_log_line(p, "want nothing");
  else
    peer_log_line(p, "want %" PRIu64 " %s%s%s:%u%s", p->want.attempt,
                  is_ipv6 ? "[" : "", p->host, is_ipv6 ? "]" : "",
                  (unsigned)p->want.port, address);
}

static bool follow_want(peer *p)
{
  lk_want want;

  lk_client_want(p->client, &want);
  if (want.attempt == p->want.attempt)
    return false;
  peer_must(p, want.attempt == 0 || want.attempt > p->attempts,
            "an attempt's number came again");
  if (want.attempt != 0)
    p->attempts = want.attempt;
  p->want = want;
  snprintf(p->host, sizeof p->host, "%s", want.host);
  p->open = false;
  p->next_is_connect_request = true;
  if (p->sasl != NULL)
    p->sasl->proved = false;
  lk__buf_consume(&p->wire, lk__buf_len(&p->wire));
  log_want(p);
  return true;
}

static bool follow_probe(peer *p)
{
  lk_want want;

  lk_client_want_probe(p->client, &want);
  if (want.attempt == p->probe)
    return false;
  peer_must(p, want.attempt == 0 || want.attempt > p->probes,
            "a probe's number came again");
  peer_must(p, want.attempt == 0 || p->state == LK_STATE_READ_ONLY,
            "a probe though there is a quorum, or no connection");
  if (want.attempt != 0)
    p->probes = want.attempt;
  p->probe = want.attempt;
  if (want.attempt != 0)
    peer_log_line(p, "probe %" PRIu64 " %s:%u", want.attempt, want.host,
                  (unsigned)want.port);
  else
    peer_log_line(p, "probe nothing");
  return true;
}

/* The xids of requests grow; those of pings and the like are below 0. */
static void check_xid(peer *p, lk_bytes frame)
{
  lk_reader in;

  lk__reader_init(&in, frame.at, frame.len);
  int32_t xid = lk__reader_int(&in);

  if (xid < 0)
    return;
  bool may_start_again = p->xid > INT32_MAX - 1000;

  peer_must(p, xid > p->xid || (may_start_again && xid > 0),
            "an xid came again");
  p->xid = xid;
}

/* If the request is a marked write, note that it was sent completely. `shown`:
   the request as text. */
static void note_marked_write(peer *p, const char *shown)
{
  const char *at = strstr(shown, "data=\"");
  char name[24];

  if (at == NULL || sscanf(at, "data=\"%23[^\"]\"", name) != 1)
    return;
  peer_thing *t = peer_thing_find(p, name);

  if (t != NULL)
    t->was_sent = true;
}

/* Tokens of SASL are sent before requests, and not after them. */
static void check_sasl(peer *p, const char *shown)
{
  bool is_token = strncmp(shown, "sasl ", 5) == 0;
  bool is_connected =
      p->state == LK_STATE_CONNECTED || p->state == LK_STATE_READ_ONLY;
  bool proved = p->sasl != NULL ? p->sasl->proved : is_connected;

  if (p->next_is_connect_request || !p->proves)
    return;
  if (is_token)
    peer_must(p, !proved, "a token behind the end of the SASL exchange");
  else
    peer_must(p, proved, "something was sent ahead of the SASL exchange's end");
}

static void see_frame(peer *p, lk_bytes frame)
{
  lk_buf text = wire_buf();

  wire_print(frame, p->next_is_connect_request, &text);
  wire_say(&text, "%c", '\0');
  const char *shown = (const char *)lk__buf_bytes(&text);

  peer_must(p,
            strstr(shown, "UNREADABLE") == NULL &&
                strstr(shown, "MALFORMED") == NULL &&
                strstr(shown, "UNKNOWN") == NULL,
            "a request that cannot be read was sent");
  check_sasl(p, shown);
  if (!p->next_is_connect_request)
    check_xid(p, frame);
  note_marked_write(p, shown);
  p->next_is_connect_request = false;
  if (!p->mute)
    peer_log_line(p, "send %s", shown);
  lk__buf_free(&text);
}

/* Process the complete frames among the sent bytes. */
static void see_frames(peer *p)
{
  for (;;) {
    const unsigned char *bytes = lk__buf_bytes(&p->wire);
    size_t have = lk__buf_len(&p->wire);
    lk_reader in;

    if (bytes == NULL || have < LEN_SIZE)
      return;
    lk__reader_init(&in, bytes, have);
    size_t len = (size_t)lk__reader_int(&in);

    if (have - LEN_SIZE < len)
      return;
    see_frame(p, lk_bytes_of(bytes + LEN_SIZE, len));
    lk__buf_consume(&p->wire, LEN_SIZE + len);
  }
}

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

/* Take the client's output, as far as the transport has room. */
static bool transmit(peer *p)
{
  lk_bytes bytes = lk_client_pending(p->client);
  size_t len = least(bytes.len, p->room);

  if (p->step > 0)
    len = least(len, p->step);
  if (!p->open)
    peer_must(p, bytes.len == 0, "bytes for a transport that does not stand");
  if (len == 0)
    return false;
  if (!lk__buf_append(&p->wire, bytes.at, len))
    abort();
  lk_client_sent(p->client, p->want.attempt, len);
  if (p->room != SIZE_MAX)
    p->room -= len;
  see_frames(p);
  return true;
}

static bool tick_if_due(peer *p)
{
  if (lk_client_deadline(p->client) > p->now)
    return false;
  lk_client_tick(p->client);
  return true;
}

void peer_settle(peer *p)
{
  bool moved = true;

  for (int turns = 0; moved; turns++) {
    peer_must(p, p->step > 0 || turns < MAX_TURNS, "it never comes to rest");
    moved = p->client != NULL && tick_if_due(p);
    moved = (p->client != NULL && follow_want(p)) || moved;
    moved = (p->client != NULL && follow_probe(p)) || moved;
    moved = (p->client != NULL && transmit(p)) || moved;
  }
  peer_must(p,
            p->client == NULL || p->client->connection.phase != LK_PHASE_LIVE ||
                p->client->requests.waiting.count == 0,
            "requests wait though there is a connection");
}

void peer_resolved(peer *p, uint32_t count)
{
  if (p->client != NULL)
    lk_client_resolved(p->client, p->want.attempt, count);
  peer_settle(p);
}

void peer_connected(peer *p)
{
  if (p->client != NULL) {
    p->open = p->want.attempt != 0;
    lk_client_connected(p->client, p->want.attempt);
  }
  peer_settle(p);
}

void peer_failed(peer *p, int err, const char *why)
{
  p->open = false;
  if (p->client != NULL)
    lk_client_failed(p->client, p->want.attempt, err, why);
  peer_settle(p);
}

/* The bytes stand in a block of exactly their size, so that AddressSanitizer
   reports a read behind them. */
static void receive_copy(peer *p, const void *bytes, size_t len)
{
  unsigned char *copy = malloc(len);

  if (copy == NULL)
    abort();
  memcpy(copy, bytes, len);
  lk_client_received(p->client, p->want.attempt, copy, len);
  free(copy);
}

void peer_receive(peer *p, const void *bytes, size_t len)
{
  size_t step = p->step == 0 ? len : p->step;

  for (size_t at = 0; p->client != NULL && at < len; at += step)
    receive_copy(p, (const char *)bytes + at, least(step, len - at));
  peer_settle(p);
}

void peer_probed(peer *p, const char *answer)
{
  if (p->client != NULL)
    lk_client_probed(p->client, p->probe, answer, strlen(answer));
  peer_settle(p);
}

void peer_pass(peer *p, int64_t ms)
{
  int64_t end = p->now + ms;

  peer_settle(p);
  while (p->client != NULL && lk_client_deadline(p->client) <= end) {
    p->now = lk_client_deadline(p->client);
    peer_settle(p);
  }
  p->now = end;
  peer_settle(p);
}
