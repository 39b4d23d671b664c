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

static bool is_text(const lk_semaphore_acquisition *s)
{
  return s->plan->limit_text.at != NULL;
}

static void ask_again(lk_semaphore_acquisition *s)
{
  int err = lk__permit_limit_read(s);

  if (err != 0)
    lk__group_end(&s->group, err);
}

static void ask_in(lk_semaphore_acquisition *s, int64_t ms)
{
  lk_session_lease *k = s->group.lease;

  if (!s->group.over)
    lk__lease_start_timer(k, &s->limit.pause, lk_client_clock(k->client) + ms);
}

void lk__permit_limit_on_timer(lk_client *c, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  lk__group_ref(&s->group);
  if (lk_client_state(c) == LK_STATE_EXPIRED)
    lk__group_end(&s->group,
                  LK_ERR_SESSION_EXPIRED); /* and no new one follows */
  else
    ask_again(s);
  lk__group_unref(&s->group);
}

/* What watched it has gone with its session, or the server is busy: whatever
 * was asked for meanwhile found it still there. */
static void on_trouble(lk_semaphore_acquisition *s, int err)
{
  switch (lk__error_advice(s->group.lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: ask_in(s, 0); break;
  case LK_ADVICE_RETRY_LATER: ask_in(s, REST_MS); break;
  case LK_ADVICE_GIVE_UP: lk__group_end(&s->group, err); break;
  }
}

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)c;
  (void)w;
  s->limit.watch = NULL;
  s->limit.changed = true; /* nothing is granted until it has been read */
  if (event->type == LK_EVENT_ENDED)
    ask_in(s, 0);
  else
    ask_again(s);
}

/* Its directory is missing. Where the node is the directory of the permits,
 * parents are being made with it or with the place in the queue. */
static void miss_directory(lk_semaphore_acquisition *s)
{
  if (!is_text(s))
    lk__group_end(&s->group, LK_ERR_NO_NODE);
  else
    s->limit.create_later = ++s->limit.no_parent > MAX_MISSES;
}

/* The read behind it shows whether there is a node now. A server that refuses
 * to make one is not asked again, or not at once. */
static void judge_made(lk_semaphore_acquisition *s, int err)
{
  if (err == 0 || err == LK_ERR_NODE_EXISTS) {
    s->limit.no_parent = 0;
    return;
  }
  if (err == LK_ERR_NO_NODE) {
    miss_directory(s);
    return;
  }
  switch (lk__error_advice(s->group.lease->client, err)) {
  case LK_ADVICE_AWAIT_CONNECTION: break;
  case LK_ADVICE_RETRY_LATER: s->limit.create_later = true; break;
  case LK_ADVICE_GIVE_UP: lk__group_end(&s->group, err); break;
  }
}

static void on_made(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)c;
  (void)path;
  (void)stat;
  judge_made(s, err);
  lk__group_unref(&s->group);
}

static void make(lk_semaphore_acquisition *s)
{
  unsigned char bytes[COUNT_LEN];
  lk_bytes data = s->plan->limit_text;

  if (s->limit.create_later) {
    s->limit.create_later = false;
    ask_in(s, REST_MS);
    return;
  }
  put_count(bytes, s->plan->limit);
  if (!is_text(s))
    data = lk_bytes_of(bytes, sizeof bytes);
  int err = lk_create(s->group.lease->client, s->plan->limit_path, data,
                      s->plan->queue_node.parent_acl, LK_PERSISTENT, NULL,
                      on_made, s);

  if (err != 0) {
    lk__group_end(&s->group, err);
    return;
  }
  lk__group_ref(&s->group);
  ask_again(s);
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

static void take_text(lk_semaphore_acquisition *s, const lk_bytes *data)
{
  int64_t n = data->at == NULL ? -1 : parse_text(data->at, data->len);

  if (n == -1 || n == s->plan->limit)
    lk__semaphore_set_limit(s, s->plan->limit);
  else
    lk__group_end(&s->group, LK_ERR_OTHER_LIMIT);
}

static void take_count(lk_semaphore_acquisition *s, const lk_bytes *data)
{
  if (is_text(s))
    take_text(s, data);
  else if (data->at == NULL || data->len != COUNT_LEN)
    lk__group_end(&s->group, LK_ERR_MARSHALLING);
  else
    lk__semaphore_set_limit(s, get_count(data->at));
}

/* The answer is of a server without a quorum, and may be an old one. */
static bool is_doubtful(const lk_client *c)
{
  const lk_reply *a = lk_client_reply(c);

  return a != NULL && a->evidence == LK_EVIDENCE_NONE;
}

static void on_limit(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  lk_semaphore_acquisition *s = arg;

  (void)stat;
  if (err != 0)
    s->limit.watch = NULL;
  if (s->group.over) {
    lk__permit_limit_forget(s);
  } else if (is_doubtful(c)) {
    lk__permit_limit_forget(s);
    ask_in(s, REST_MS);
  } else if (err == 0) {
    take_count(s, data);
  } else if (err == LK_ERR_NO_NODE) {
    make(s);
  } else {
    on_trouble(s, err);
  }
  lk__group_unref(&s->group);
}

int lk__permit_limit_read(lk_semaphore_acquisition *s)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_event,
                  .watch_arg = s,
                  .watch = &s->limit.watch};

  if (s->plan->limit_path == NULL || s->limit.watch != NULL || s->group.over)
    return 0;
  if (lk_client_state(s->group.lease->client) == LK_STATE_READ_ONLY) {
    ask_in(s, REST_MS);
    return 0;
  }
  if (is_text(s)) /* it does not change */
    call = (lk_call){.size = sizeof call, .repeat = true};
  int err =
      lk_get(s->group.lease->client, s->plan->limit_path, &call, on_limit, s);

  if (err == 0)
    lk__group_ref(&s->group);
  return err;
}

void lk__permit_limit_forget(lk_semaphore_acquisition *s)
{
  lk__lease_stop_timer(s->group.lease, &s->limit.pause);
  if (s->limit.watch != NULL && !s->group.lease->life.detached)
    lk_watch_cancel(s->group.lease->client, s->limit.watch, true);
  s->limit.watch = NULL;
}
