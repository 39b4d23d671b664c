/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/ask.h"
#include "cli/json.h"
#include "cli/nodes.h"
#include "cli/print.h"
#include "cli/queue.h"

/* Questions on their way at one time. */
enum { WINDOW = 256 };

typedef struct status {
  cli_ask ask;
  const char *part; /* of a semaphore: "locks/", "leases/"; else "" */
  bool semaphore;   /* both of these are there */
  cli_contender *all;
  size_t count;
  size_t next; /* the next to ask for */
  size_t left; /* not yet answered */
  int err;
} status;

/* One question for one contender; `at` is its place. */
typedef struct look {
  status *status;
  size_t at;
} look;

/* What stands before the name of a child of `path`. */
static const char *folder(const char *path)
{
  return strcmp(path, "/") == 0 ? "" : path;
}

/* ---- who queues ------------------------------------------------------------
 */

static bool add(status *s, lk_bytes name)
{
  cli_contender *c = &s->all[s->count];
  size_t len = strlen(s->part);

  memset(c, 0, sizeof *c);
  c->lease = strcmp(s->part, "leases/") == 0;
  if (c->lease ? !cli_queue_parse_lease(name, &c->number)
               : !cli_queue_parse(name, &c->number, &c->shared))
    return true;
  c->name = malloc(len + name.len + 1);
  if (c->name == NULL)
    return false;
  memcpy(c->name, s->part, len);
  memcpy(c->name + len, name.at, name.len);
  c->name[len + name.len] = '\0';
  s->count++;
  return true;
}

static bool has(const lk_bytes *names, size_t count, const char *name)
{
  for (size_t i = 0; i < count; i++) {
    if (names[i].len == strlen(name) &&
        memcmp(names[i].at, name, names[i].len) == 0)
      return true;
  }
  return false;
}

static void on_names(lk_client *c, int err, const lk_bytes *names, size_t count,
                     const lk_stat *stat, void *arg)
{
  status *s = arg;

  (void)c;
  (void)stat;
  if (err == 0 && count > 0) {
    void *all = realloc(s->all, (s->count + count) * sizeof *s->all);

    if (all == NULL)
      err = LK_ERR_NO_MEMORY;
    else
      s->all = all;
  }
  for (size_t i = 0; err == 0 && i < count; i++)
    if (!add(s, names[i]))
      err = LK_ERR_NO_MEMORY;
  if (err == 0 && *s->part == '\0')
    s->semaphore = has(names, count, "locks") && has(names, count, "leases");
  cli_ask_answer(&s->ask, err);
}

/* Nobody has ever queued, or the container has gone: that is an empty queue. */
static int list(status *s, const char *part)
{
  lk_call call = cli_ask_call(&s->ask, true);
  cli_text path = {0};
  const char *at;

  s->part = part;
  cli_text_puts(&path, folder(s->ask.path));
  if (*part != '\0' || path.len == 0)
    cli_text_printf(&path, "/%.*s", (int)strcspn(part, "/"), part);
  at = cli_text_end(&path);
  int err = at == NULL
                ? LK_ERR_NO_MEMORY
                : lk_children(s->ask.link.client, at, &call, on_names, s);

  err = cli_ask_wait(&s->ask, err);
  cli_text_free(&path);
  return err == LK_ERR_NO_NODE ? 0 : err;
}

static int list_semaphore(status *s)
{
  int err = list(s, "locks/");

  return err != 0 ? err : list(s, "leases/");
}

/* ---- what they say of themselves --------------------------------------------
 */

static void ask_next(status *s);

static int take(cli_contender *c, int err, const lk_bytes *data,
                const lk_stat *stat)
{
  c->gone = err == LK_ERR_NO_NODE;
  c->hidden = err == LK_ERR_NO_AUTH;
  if (c->gone || c->hidden)
    return 0;
  if (err != 0)
    return err;
  char *label = malloc(data->len + 1);

  if (label == NULL)
    return LK_ERR_NO_MEMORY;
  if (data->len > 0)
    memcpy(label, data->at, data->len);
  c->label = lk_bytes_of(label, data->len);
  c->stat = *stat;
  return 0;
}

static void on_label(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *arg)
{
  look *l = arg;
  status *s = l->status;

  (void)c;
  err = take(&s->all[l->at], err, data, stat);
  free(l);
  if (s->err == 0)
    s->err = err;
  s->left--;
  ask_next(s);
  if (s->left == 0)
    cli_ask_answer(&s->ask, s->err);
}

static void ask_next(status *s)
{
  lk_call call = cli_ask_call(&s->ask, true);
  char *path = NULL;

  if (s->err != 0 || s->next == s->count)
    return;
  size_t len = strlen(s->ask.path) + strlen(s->all[s->next].name) + 2;
  look *l = malloc(sizeof *l);

  path = malloc(len);
  s->err = l == NULL || path == NULL ? LK_ERR_NO_MEMORY : 0;
  if (s->err == 0) {
    *l = (look){s, s->next};
    snprintf(path, len, "%s/%s", folder(s->ask.path), s->all[s->next].name);
    s->err = lk_get(s->ask.link.client, path, &call, on_label, l);
  }
  free(path);
  if (s->err != 0) {
    free(l);
    return;
  }
  s->next++;
  s->left++;
}

static int look_at_all(status *s)
{
  while (s->left < WINDOW && s->next < s->count && s->err == 0)
    ask_next(s);
  if (s->left > 0)
    cli_ask_wait(&s->ask, 0);
  return s->err;
}

/* ---- telling ----------------------------------------------------------------
 */

static int64_t age_ms(const cli_contender *c)
{
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  int64_t age =
      (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - c->stat.ctime;

  return age < 0 ? 0 : age;
}

static void show_one(cli_text *out, const cli_contender *c)
{
  cli_text_puts(out, c->holds ? "holds  " : "waits  ");
  if (c->hidden) {
    cli_text_puts(out, "(may not be read)");
  } else {
    int64_t age = age_ms(c);

    cli_text_clean(out, c->label.len > 0 ? c->label : lk_text("(no label)"));
    cli_text_printf(out,
                    "  age %" PRId64 ".%" PRId64 " s  token %" PRIu64
                    "  session 0x%" PRIx64,
                    age / 1000, age % 1000 / 100, (uint64_t)c->stat.czxid,
                    (uint64_t)c->stat.ephemeral_owner);
  }
  cli_text_puts(out, "  ");
  cli_text_clean(out, lk_text(c->name));
  cli_text_puts(out, "\n");
}

static size_t count_holders(const status *s)
{
  size_t holders = 0;

  for (size_t i = 0; i < s->count; i++)
    holders += s->all[i].holds ? 1 : 0;
  return holders;
}

static void show(status *s)
{
  cli_text *out = &s->ask.out;
  size_t holders = count_holders(s);

  cli_text_clean(out, lk_text(s->ask.path));
  if (s->count == 0)
    cli_text_puts(out, ": free\n");
  else
    cli_text_printf(out, ": %s, %zu waiting\n", holders == 0 ? "free" : "held",
                    s->count - holders);
  for (int holding = 1; holding >= 0; holding--)
    for (size_t i = 0; i < s->count; i++)
      if (s->all[i].holds == (holding == 1))
        show_one(out, &s->all[i]);
}

static void show_one_json(cli_json *j, const char *path, const cli_contender *c)
{
  cli_text node = {0};

  cli_text_printf(&node, "%s/%s", folder(path), c->name);
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "node", lk_bytes_of(node.at, node.len));
  if (!c->hidden) {
    cli_json_big(j, "token", (uint64_t)c->stat.czxid);
    cli_json_hex(j, "session", (uint64_t)c->stat.ephemeral_owner);
    cli_json_number(j, "age_ms", age_ms(c));
    cli_json_data(j, "label", c->label);
  }
  cli_json_close(j, '}');
  cli_text_free(&node);
}

static void show_json(status *s)
{
  cli_json j = {.out = &s->ask.out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "lock", lk_text(s->ask.path));
  cli_json_text(&j, "state", lk_text(count_holders(s) == 0 ? "free" : "held"));
  for (int holding = 1; holding >= 0; holding--) {
    cli_json_open(&j, holding == 1 ? "holders" : "waiters", '[');
    for (size_t i = 0; i < s->count; i++)
      if (s->all[i].holds == (holding == 1))
        show_one_json(&j, s->ask.path, &s->all[i]);
    cli_json_close(&j, ']');
  }
  cli_json_close(&j, '}');
  cli_text_puts(&s->ask.out, "\n");
}

static void free_all(status *s, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    union {
      const void *from;
      void *at;
    } label = {s->all[i].label.at};

    free(s->all[i].name);
    free(label.at);
  }
  free(s->all);
}

int cli_status(const cli_options *o, char **operands)
{
  status s = {.err = 0};

  if (!cli_ask_open(&s.ask, o, "status", operands[0]))
    return CLI_FAILED;
  int err = list(&s, "");

  if (err == 0 && s.semaphore && s.count == 0)
    err = list_semaphore(&s);
  size_t found = s.count;

  if (err == 0)
    err = look_at_all(&s);
  if (err == 0)
    s.count = s.semaphore ? cli_queue_order_permits(s.all, s.count)
                          : cli_queue_order(s.all, s.count);
  bool held = count_holders(&s) > 0;

  if (err == 0 && o->json)
    show_json(&s);
  else if (err == 0)
    show(&s);
  int code = cli_ask_close(&s.ask, err);

  free_all(&s, found);
  return code == CLI_DONE && held ? CLI_NO : code;
}
