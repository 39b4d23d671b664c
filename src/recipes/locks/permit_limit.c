/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/locks/permit_limit.h"

#include "recipes/error_advice.h"
#include "recipes/locks/joint.h"
#include "recipes/locks/semaphore.h"

/**
 * @file
 * The node that holds the number of permits of a semaphore. A client that finds
 * it missing creates it. In Curator's layout its data are a SharedCount of four
 * bytes, which may change. In kazoo's layout they are a decimal number. If that
 * number differs from our limit the acquisition fails; data that are no number
 * are ignored.
 */

enum {
  COUNT_LEN = 4, /* bytes of Curator's SharedCount, big endian */
  NOT_A_NUMBER = -1,
  PAUSE_MS = 100,
  MAX_MISSES = 3 /* creates in a row without a parent, before they pause */
};

static int32_t permit_limit_decode(const unsigned char at[COUNT_LEN])
{
  return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
                   (uint32_t)at[2] << 8 | (uint32_t)at[3]);
}

static void permit_limit_encode(unsigned char at[COUNT_LEN], int32_t count)
{
  uint32_t n = (uint32_t)count;

  at[0] = (unsigned char)(n >> 24);
  at[1] = (unsigned char)(n >> 16);
  at[2] = (unsigned char)(n >> 8);
  at[3] = (unsigned char)n;
}

static bool permit_limit_is_text(const lk_semaphore_acquisition *s)
{
  return s->plan->limit_text.at != NULL;
}

static void permit_limit_read_again(lk_semaphore_acquisition *s)
{
  int err = lk__permit_limit_read(s);

  if (err != 0)
    lk__joint_end(&s->joint, err);
}

static void permit_limit_read_after(lk_semaphore_acquisition *s, int64_t ms)
{
  lk_session_lease *lease = s->joint.lease;

  if (!s->joint.over)
    lk_timer_start(lease->client, &s->limit.pause,
                   lk_client_clock(lease->client) + ms);
}

static void permit_limit_read_in_next_turn(lk_semaphore_acquisition *s)
{
  permit_limit_read_after(s, 0);
}

void lk__permit_limit_on_timer(lk_client *c, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)c;
  lk__joint_ref(&s->joint);
  permit_limit_read_again(s);
  lk__joint_unref(&s->joint);
}

/* While a read is under way, lk__permit_limit_read() sends no other. So the
 * read that failed is repeated here. */
static void permit_limit_read_failed(lk_semaphore_acquisition *s, int err)
{
  switch (lk__error_advice(s->joint.lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: permit_limit_read_in_next_turn(s); break;
  case LK_ADVICE_RETRY_LATER: permit_limit_read_after(s, PAUSE_MS); break;
  case LK_ADVICE_GIVE_UP: lk__joint_end(&s->joint, err); break;
  }
}

static void permit_limit_on_event(lk_client *c, lk_watch *w,
                                  const lk_event *event, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)c;
  (void)w;
  s->limit.watch = NULL;
  s->limit.changed = true; /* no grant before the limit has been read again */
  if (event->type == LK_EVENT_ENDED)
    permit_limit_read_in_next_turn(s);
  else
    permit_limit_read_again(s);
}

/* The parent of the limit's node is missing. In Curator's layout that is an
 * error. In kazoo's layout the limit's node is the directory of the permits.
 * Its parents are created together with the queue node or the permit nodes, so
 * the create is repeated. */
static void permit_limit_directory_missing(lk_semaphore_acquisition *s)
{
  if (!permit_limit_is_text(s)) {
    lk__joint_end(&s->joint, LK_ERR_NO_NODE);
    return;
  }
  s->limit.parent_misses++;
  s->limit.create_later = s->limit.parent_misses > MAX_MISSES;
}

/* The create of the limit's node has completed. A read was sent behind it,
 * whose reply shows whether the node exists; if not, that reply leads to the
 * next create. `create_later` puts a pause before that create. */
static void permit_limit_create_replied(lk_semaphore_acquisition *s, int err)
{
  if (err == 0 || err == LK_ERR_NODE_EXISTS) {
    s->limit.parent_misses = 0;
    return;
  }
  if (err == LK_ERR_NO_NODE) {
    permit_limit_directory_missing(s);
    return;
  }
  switch (lk__error_advice(s->joint.lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break;
  case LK_ADVICE_RETRY_LATER: s->limit.create_later = true; break;
  case LK_ADVICE_GIVE_UP: lk__joint_end(&s->joint, err); break;
  }
}

static void permit_limit_on_created(lk_client *c, int err, const char *path,
                                    const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)c;
  (void)path;
  (void)stat;
  permit_limit_create_replied(s, err);
  lk__joint_unref(&s->joint);
}

/* Creates the limit's node, and reads it in the same write. */
static void permit_limit_create(lk_semaphore_acquisition *s)
{
  unsigned char bytes[COUNT_LEN];
  lk_bytes data = s->plan->limit_text;

  if (s->limit.create_later) {
    s->limit.create_later = false;
    permit_limit_read_after(s, PAUSE_MS);
    return;
  }
  permit_limit_encode(bytes, s->plan->limit);
  if (!permit_limit_is_text(s))
    data = lk_bytes_of(bytes, sizeof bytes);
  int err = lk_create(s->joint.lease->client, s->plan->limit_path, data,
                      s->plan->queue_node.parent_acl, LK_PERSISTENT,
                      LK_NO_OPTIONS, permit_limit_on_created, s);

  if (err != 0) {
    lk__joint_end(&s->joint, err);
    return;
  }
  lk__joint_ref(&s->joint);
  permit_limit_read_again(s);
}

static bool is_python_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Accepts digits between blanks, as Python's int() does. Returns the number,
 * any number above INT32_MAX if it is larger than that, or NOT_A_NUMBER. */
static int64_t permit_limit_parse_text(const char *at, size_t len)
{
  int64_t n = 0;

  while (len > 0 && is_python_blank(*at)) {
    at++;
    len--;
  }
  while (len > 0 && is_python_blank(at[len - 1]))
    len--;
  for (size_t i = 0; i < len; i++) {
    if (at[i] < '0' || at[i] > '9')
      return NOT_A_NUMBER;
    if (n <= INT32_MAX)
      n = n * 10 + (at[i] - '0');
  }
  return len > 0 ? n : NOT_A_NUMBER;
}

/* Data that are no number count as our own limit. */
static void permit_limit_take_text(lk_semaphore_acquisition *s,
                                   const lk_bytes *data)
{
  int64_t n = data->at == NULL ? NOT_A_NUMBER
                               : permit_limit_parse_text(data->at, data->len);

  if (n == NOT_A_NUMBER || n == s->plan->limit)
    lk__semaphore_set_limit(s, s->plan->limit);
  else
    lk__joint_end(&s->joint, LK_ERR_OTHER_LIMIT);
}

static void permit_limit_take_data(lk_semaphore_acquisition *s,
                                   const lk_bytes *data)
{
  if (permit_limit_is_text(s))
    permit_limit_take_text(s, data);
  else if (data->at == NULL || data->len != COUNT_LEN)
    lk__joint_end(&s->joint, LK_ERR_MARSHALLING);
  else
    lk__semaphore_set_limit(s, permit_limit_decode(data->at));
}

/* Whether the present reply came from a read-only server: it may be outdated.
 */
static bool permit_limit_reply_unproven(const lk_client *c)
{
  const lk_reply *reply = lk_client_reply(c);

  return reply != NULL && reply->evidence == LK_EVIDENCE_NONE;
}

static void permit_limit_on_read(lk_client *c, int err, const lk_bytes *data,
                                 const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)stat;
  if (err != 0)
    s->limit.watch = NULL; /* a read that fails sets no watch */
  if (s->joint.over) {
    lk__permit_limit_forget(s);
  } else if (permit_limit_reply_unproven(c)) {
    lk__permit_limit_forget(s);
    permit_limit_read_after(s, PAUSE_MS);
  } else if (err == 0) {
    permit_limit_take_data(s, data);
  } else if (err == LK_ERR_NO_NODE) {
    permit_limit_create(s);
  } else {
    permit_limit_read_failed(s, err);
  }
  lk__joint_unref(&s->joint);
}

int lk__permit_limit_read(lk_semaphore_acquisition *s)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = permit_limit_on_event,
                  .watch_arg = s,
                  .watch = &s->limit.watch};

  if (s->plan->limit_path == NULL || s->limit.watch != NULL || s->joint.over)
    return 0;
  if (lk_client_state(s->joint.lease->client) == LK_STATE_READ_ONLY) {
    permit_limit_read_after(s, PAUSE_MS);
    return 0;
  }
  if (permit_limit_is_text(s)) /* kazoo's limit does not change: no watch */
    call = (lk_call){.size = sizeof call, .repeat = true};
  int err = lk_get(s->joint.lease->client, s->plan->limit_path, &call,
                   permit_limit_on_read, s);

  if (err == 0)
    lk__joint_ref(&s->joint);
  return err;
}

void lk__permit_limit_forget(lk_semaphore_acquisition *s)
{
  lk_timer_stop(s->joint.lease->client, &s->limit.pause);
  if (s->limit.watch != NULL)
    (void)lk_watch_remove(s->joint.lease->client, s->limit.watch, NULL, NULL);
  s->limit.watch = NULL;
}
