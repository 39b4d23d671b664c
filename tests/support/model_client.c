/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "support/model_server.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

/* The length in front of a frame. */
enum { LEN_SIZE = 4 };

static void must(bool is_so, const char *otherwise)
{
  if (is_so)
    return;
  fprintf(stderr, "model server: %s\n", otherwise);
  abort();
}

/* ---- frames -------------------------------------------------------------- */

static bool next_frame(lk_buf *in, lk_bytes *out)
{
  lk_reader r;

  lk__reader_init(&r, lk__buf_bytes(in), lk__buf_len(in));
  size_t len = (size_t)lk__reader_int(&r);

  if (r.err != 0 || lk__reader_left(&r) < len)
    return false;
  *out = lk_bytes_of(r.at, len);
  return true;
}

static bool is_silent(const model_link *l)
{
  const char *silent = l->server->silent;

  return silent != NULL &&
         (strcmp(silent, "*") == 0 || strcmp(silent, l->host) == 0);
}

static bool serve_all(model_link *l)
{
  lk_bytes frame;
  bool moved = false;

  while (l->up && !l->frozen && !is_silent(l) && !l->closed_by_server &&
         next_frame(&l->in, &frame)) {
    bool goes_on = true;

    moved = true;
    if (l->greeted)
      goes_on = l->server->serve != NULL ? l->server->serve(l, frame)
                                         : model_serve(l, frame);
    else
      model_read_connect(l, frame);
    if (!goes_on && l->cut_softly) {
      l->closed_by_server = true;
      return true;
    }
    if (!goes_on) {
      model_drop(l);
      return true;
    }
    lk__buf_consume(&l->in, LEN_SIZE + frame.len);
  }
  return moved;
}

/* ---- what a driver does ------------------------------------------------ */

static void append_to_log(model_link *l, const char *text)
{
  size_t at = strlen(l->log);

  must(at + strlen(text) < sizeof l->log, "the log is full");
  memcpy(l->log + at, text, strlen(text) + 1);
}

/* Log the requests that the client has written at once. */
static void log_write(model_link *l, lk_bytes bytes)
{
  static const char between_writes[] = " | ";
  lk_buf b = {.mem = &lk__mem_libc,
              .at = (unsigned char *)(uintptr_t)bytes.at, /* drops `const` */
              .end = bytes.len};
  lk_bytes frame;
  bool first = true;
  const char *names = l->log + strlen(l->log); /* those of this write */

  if (l->log[0] != '\0')
    names += strlen(between_writes);

  for (; next_frame(&b, &frame); b.start += LEN_SIZE + frame.len) {
    lk_reader in;

    if (!l->logged_connect) {
      l->logged_connect = true;
      continue;
    }
    lk__reader_init(&in, frame.at, frame.len);
    (void)lk__reader_int(&in); /* the xid */
    int32_t op = lk__reader_int(&in);

    if (op == LK_OPCODE_PING || op == LK_OPCODE_AUTH)
      continue;
    if (l->log[0] != '\0')
      append_to_log(l, first ? between_writes : " ");
    append_to_log(l, lk__opcode_info(op)->name);
    first = false;
  }
  if (!first && l->server->wrote != NULL)
    l->server->wrote(l->server, l, names);
}

static bool follow_want(model_link *l)
{
  lk_want w;

  w = *lk_client_want(l->client);
  if (w.attempt == l->attempt)
    return false;
  model_hang_up(l);
  l->attempt = w.attempt;
  if (w.attempt == 0)
    return true;
  snprintf(l->host, sizeof l->host, "%s", w.host);
  if (l->server->unreachable != NULL &&
      strcmp(l->server->unreachable, l->host) == 0)
    return true;
  l->up = !l->server->down;
  if (l->up)
    lk_client_connected(l->client, w.attempt);
  else
    lk_client_failed(l->client, w.attempt, LK_ERR_CONNECT, "down");
  return true;
}

static bool take_output(model_link *l)
{
  lk_bytes bytes = lk_client_pending(l->client);

  if (bytes.len == 0 || !l->up)
    return false;
  log_write(l, bytes);
  must(lk__buf_append(&l->in, bytes.at, bytes.len), "no memory");
  lk_client_sent(l->client, l->attempt, bytes.len);
  return true;
}

bool model_deliver(model_link *l)
{
  size_t len = lk__buf_len(&l->out), size;
  unsigned char *room, *copy = NULL;

  if (!l->up)
    return false;
  if (len == 0 && l->closed_by_server && l->allow > 0) {
    model_drop(l);
    return true;
  }
  if (l->step > 0 && len > l->step)
    len = l->step;
  if (len > l->allow)
    len = l->allow;
  if (len == 0)
    return false;
  room = lk_client_receive_buffer(l->client, l->attempt, 1, &size);
  if (room == NULL) {
    /* A block of the exact size, so that ASan reports a read behind it. */
    copy = malloc(len);
    must(copy != NULL, "no memory");
    room = copy;
  } else if (len > size) {
    len = size;
  }
  if (l->allow != SIZE_MAX)
    l->allow -= len;
  memcpy(room, lk__buf_bytes(&l->out), len);
  lk__buf_consume(&l->out, len);
  lk_client_received(l->client, l->attempt, room, len);
  free(copy);
  return true;
}

/* Each call may free the client. */
static bool pump(model_link *l)
{
  bool moved = false;

  if (l->client != NULL)
    moved = follow_want(l);
  if (l->client != NULL && lk_client_deadline(l->client) <= l->server->now) {
    lk_client_tick(l->client);
    moved = true;
  }
  if (l->client != NULL)
    moved = take_output(l) || moved;
  moved = serve_all(l) || moved;
  if (l->client != NULL)
    moved = model_deliver(l) || moved;
  return moved;
}

void model_turn(model_server *s)
{
  bool moved = true;

  model_keep_time(s);
  for (int i = 0; moved; i++) {
    must(i < 100000, "it never comes to rest");
    moved = false;
    for (model_link *l = s->links; l != NULL; l = l->next)
      moved = pump(l) || moved;
  }
}

void model_run(model_server *s, int64_t ms)
{
  int64_t end = s->now + ms;

  model_turn(s);
  while (s->now < end) {
    int64_t event = model_next_event(s);
    int64_t next = event < end ? event : end;

    for (const model_link *l = s->links; l != NULL; l = l->next) {
      if (l->client != NULL && lk_client_deadline(l->client) < next)
        next = lk_client_deadline(l->client);
    }
    /* At least 1 ms, even if a deadline stays in the past. */
    s->now = next > s->now ? next : s->now + 1;
    model_turn(s);
  }
}

/* ---- life -------------------------------------------------------------- */

/* A client calls no hook once it was freed, even if objects live on it. */
static model_server *server_of_hook(void *arg)
{
  model_link *l = arg;

  must(!l->freed, "a hook of a client that was freed");
  return l->server;
}

static int64_t hook_now(void *arg)
{
  model_server *s = server_of_hook(arg);

  return s->now += s->clock_step_ms;
}

static void hook_random(void *arg, void *out, size_t len)
{
  uint64_t *x = &server_of_hook(arg)->seed;
  unsigned char *p = out;

  for (size_t i = 0; i < len; i++) {
    /* the linear congruential generator of MMIX */
    *x = *x * 6364136223846793005U + 1442695040888963407U;
    p[i] = (unsigned char)(*x >> 33);
  }
}

static void hook_wake(lk_client *c, void *arg)
{
  (void)c;
  (void)server_of_hook(arg);
}

static void hook_freed(lk_client *c, void *arg)
{
  model_link *l = arg;

  must(l->client == c, "freed twice");
  l->client = NULL;
  l->freed = true;
  model_hang_up(l);
}

static model_link *new_link(model_server *s)
{
  model_link *l = calloc(1, sizeof *l);

  must(l != NULL, "no memory");
  l->server = s;
  l->allow = SIZE_MAX;
  l->in.mem = &lk__mem_libc;
  l->out.mem = &lk__mem_libc;
  return l;
}

static void add_link(model_link *l)
{
  model_link **end = &l->server->links;

  while (*end != NULL)
    end = &(*end)->next;
  *end = l;
}

model_link *model_client(model_server *s, lk_client_config *config)
{
  model_link *l = new_link(s);
  lk_hooks hooks = {.size = sizeof hooks,
                    .now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .arg = l};

  if (lk_client_new(&l->client, config, &hooks) != 0) {
    free(l);
    return NULL;
  }
  add_link(l);
  return l;
}

/* ---- clients at the other end of a socket -------------------------------- */

model_link *model_accept(model_server *s)
{
  model_link *l = new_link(s);

  l->up = true;
  add_link(l);
  return l;
}

void model_take(model_link *l, lk_bytes frame)
{
  log_write(l, frame);
  must(lk__buf_append(&l->in, frame.at, frame.len), "no memory");
  (void)serve_all(l);
}

void model_done(model_server *s)
{
  for (model_link *l = s->links; l != NULL; l = l->next)
    lk_client_free(l->client);
  while (s->links != NULL) {
    model_link *l = s->links;

    s->links = l->next;
    model_hang_up(l);
    lk__buf_free(&l->in);
    lk__buf_free(&l->out);
    free(l);
  }
  sim_ensemble_free(s->ensemble);
}

/* ---- what tests do ------------------------------------------------------- */

void model_drop(model_link *l)
{
  const int err_of_close = 0;
  bool was_up = l->up;

  model_hang_up(l);
  if (was_up && l->client != NULL)
    lk_client_failed(l->client, l->attempt, err_of_close, NULL);
}

bool model_check_log(model_link *l, const char *text)
{
  bool same = strcmp(l->log, text) == 0;

  if (!same)
    fprintf(stderr, "requests: %s\nexpected: %s\n", l->log, text);
  l->log[0] = '\0';
  return same;
}

unsigned model_count(const model_link *l, const char *name)
{
  unsigned count = 0;
  size_t len = strlen(name);

  for (const char *p = l->log; (p = strstr(p, name)) != NULL; p += len) {
    if ((p == l->log || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
      count++;
  }
  return count;
}
