/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/common/error_advice.h"
#include "recipes/semaphore/semaphore_acquisition.h"

/**
 * @file
 * The node that says how many permits a semaphore has: Curator's SharedCount,
 * four bytes. Whoever finds it missing makes it. Or kazoo's, which says it in
 * decimal: nobody may think otherwise, and what is no number says nothing.
 */

enum { COUNT_LEN = 4, REST_MS = 100, MAX_MISSES = 3 };

static int32_t get_count(const unsigned char at[COUNT_LEN])
{
  return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
                   (uint32_t)at[2] << 8 | (uint32_t)at[3]);
}

static void put_count(unsigned char at[COUNT_LEN], int32_t count)
{
  uint32_t n = (uint32_t)count;

  at[0] = (unsigned char)(n >> 24);
  at[1] = (unsigned char)(n >> 16);
  at[2] = (unsigned char)(n >> 8);
  at[3] = (unsigned char)n;
}

static bool is_text(const lk_semaphore_acquisition *p)
{
  return p->config->limit_text.at != NULL;
}

static void ask_again(lk_semaphore_acquisition *p)
{
  int err = lk__permit_limit_read(p);

  if (err != 0)
    lk__semaphore_end(p, err);
}

static void ask_in(lk_semaphore_acquisition *p, int64_t ms)
{
  lk_session_lease *k = p->lease;

  if (!p->over)
    lk__lease_start_timer(k, &p->limit_rest, lk_client_clock(k->client) + ms);
}

void lk__permit_limit_on_timer(lk_client *c, void *arg)
{
  lk_semaphore_acquisition *p = arg;

  lk__semaphore_ref(p);
  if (lk_client_state(c) == LK_STATE_EXPIRED)
    lk__semaphore_end(p, LK_ERR_SESSION_EXPIRED); /* and no new one follows */
  else
    ask_again(p);
  lk__semaphore_unref(p);
}

/* What watched it has gone with its session, or the server is busy: whatever
 * was asked for meanwhile found it still there. */
static void on_trouble(lk_semaphore_acquisition *p, int err)
{
  switch (lk__error_advice(p->lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: ask_in(p, 0); break;
  case LK_ADVICE_RETRY_LATER: ask_in(p, REST_MS); break;
  case LK_ADVICE_GIVE_UP: lk__semaphore_end(p, err); break;
  }
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  lk_semaphore_acquisition *p = arg;

  (void)c;
  (void)w;
  p->limit_watch = NULL;
  p->limit_moved = true; /* nothing is granted until it has been read */
  if (event->type == LK_EVENT_ENDED)
    ask_in(p, 0);
  else
    ask_again(p);
}

/* Its directory is missing. Where the node is the directory of the permits,
 * parents are being made with it or with the place in the queue. */
static void miss_directory(lk_semaphore_acquisition *p)
{
  if (!is_text(p))
    lk__semaphore_end(p, LK_ERR_NO_NODE);
  else
    p->limit_later = ++p->limit_misses > MAX_MISSES;
}

/* The read behind it shows whether there is a node now. A server that refuses
 * to make one is not asked again, or not at once. */
static void judge_made(lk_semaphore_acquisition *p, int err)
{
  if (err == 0 || err == LK_ERR_NODE_EXISTS) {
    p->limit_misses = 0;
    return;
  }
  if (err == LK_ERR_NO_NODE) {
    miss_directory(p);
    return;
  }
  switch (lk__error_advice(p->lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break;
  case LK_ADVICE_RETRY_LATER: p->limit_later = true; break;
  case LK_ADVICE_GIVE_UP: lk__semaphore_end(p, err); break;
  }
}

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *p = arg;

  (void)c;
  (void)path;
  (void)stat;
  judge_made(p, err);
  lk__semaphore_unref(p);
}

static void make(lk_semaphore_acquisition *p)
{
  unsigned char bytes[COUNT_LEN];
  lk_bytes data = p->config->limit_text;

  if (p->limit_later) {
    p->limit_later = false;
    ask_in(p, REST_MS);
    return;
  }
  put_count(bytes, p->config->limit);
  if (!is_text(p))
    data = lk_bytes_of(bytes, sizeof bytes);
  int err =
      lk_create(p->lease->client, p->config->limit_path, data,
                p->config->place.parent_acl, LK_PERSISTENT, NULL, on_made, p);

  if (err != 0) {
    lk__semaphore_end(p, err);
    return;
  }
  lk__semaphore_ref(p);
  ask_again(p);
}

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* As Python reads a number, within reason. -1: it is none. */
static int64_t parse_text(const char *at, size_t len)
{
  int64_t n = 0;

  while (len > 0 && is_blank(*at)) {
    at++;
    len--;
  }
  while (len > 0 && is_blank(at[len - 1]))
    len--;
  for (size_t i = 0; i < len; i++) {
    if (at[i] < '0' || at[i] > '9')
      return -1;
    n = n > INT32_MAX ? n : n * 10 + (at[i] - '0');
  }
  return len > 0 ? n : -1;
}

static void take_text(lk_semaphore_acquisition *p, const lk_bytes *data)
{
  int64_t n = data->at == NULL ? -1 : parse_text(data->at, data->len);

  if (n == -1 || n == p->config->limit)
    lk__semaphore_set_limit(p, p->config->limit);
  else
    lk__semaphore_end(p, LK_ERR_OTHER_LIMIT);
}

static void take_count(lk_semaphore_acquisition *p, const lk_bytes *data)
{
  if (is_text(p))
    take_text(p, data);
  else if (data->at == NULL || data->len != COUNT_LEN)
    lk__semaphore_end(p, LK_ERR_MARSHALLING);
  else
    lk__semaphore_set_limit(p, get_count(data->at));
}

/* The answer is of a server without a quorum, and may be an old one. */
static bool is_doubtful(const lk_client *c)
{
  const lk_reply *a = lk_client_reply(c);

  return a != NULL && a->proof == LK_EVIDENCE_NONE;
}

static void on_limit(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *p = arg;

  (void)stat;
  if (err != 0)
    p->limit_watch = NULL;
  if (p->over) {
    lk__permit_limit_forget(p);
  } else if (is_doubtful(c)) {
    lk__permit_limit_forget(p);
    ask_in(p, REST_MS);
  } else if (err == 0) {
    take_count(p, data);
  } else if (err == LK_ERR_NO_NODE) {
    make(p);
  } else {
    on_trouble(p, err);
  }
  lk__semaphore_unref(p);
}

int lk__permit_limit_read(lk_semaphore_acquisition *p)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_event,
                  .watch_arg = p,
                  .watch = &p->limit_watch};

  if (p->config->limit_path == NULL || p->limit_watch != NULL || p->over)
    return 0;
  if (lk_client_state(p->lease->client) == LK_STATE_READ_ONLY) {
    ask_in(p, REST_MS);
    return 0;
  }
  if (is_text(p)) /* it does not change */
    call = (lk_call){.size = sizeof call, .repeat = true};
  int err = lk_get(p->lease->client, p->config->limit_path, &call, on_limit, p);

  if (err == 0)
    lk__semaphore_ref(p);
  return err;
}

void lk__permit_limit_forget(lk_semaphore_acquisition *p)
{
  lk__lease_stop_timer(p->lease, &p->limit_rest);
  if (p->limit_watch != NULL && !p->lease->detached)
    lk_watch_cancel(p->lease->client, p->limit_watch, true);
  p->limit_watch = NULL;
}
