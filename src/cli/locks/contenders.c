/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <latchkey/semaphore.h>

#include "cli/locks/contenders.h"
#include "cli/session/pipeline.h"

/* Where those queue who want a permit of kazoo's. */
#define BESIDE "-__lock__/"

static const char *folder(const char *path)
{
  return strcmp(path, "/") == 0 ? "" : path;
}

/* A permit of kazoo's stands in the path itself. */
static bool is_kazoos(const cli_contenders *l, lk_bytes name, int64_t *number)
{
  return l->ask->options->layout == LK_LAYOUT_KAZOO && *l->part == '\0' &&
         lk_layout_is_permit(LK_LAYOUT_KAZOO, name, number);
}

/* Whether it is one of those who hold or wait, and which. */
static bool take_name(cli_contenders *l, lk_bytes name, cli_contender *c)
{
  const cli_options *o = l->ask->options;

  if (is_kazoos(l, name, &c->number)) {
    c->lease = true;
    l->semaphore = true;
    return true;
  }
  c->lease = strcmp(l->part, "leases/") == 0;
  return c->lease ? lk_layout_is_permit(LK_LAYOUT_CURATOR, name, &c->number)
                  : lk_layout_contends(o->layout, o->prefix, name, &c->number,
                                       &c->shared);
}

static bool add(cli_contenders *l, lk_bytes name)
{
  cli_contender *c = &l->all[l->count];
  size_t len = strlen(l->part);

  memset(c, 0, sizeof *c);
  c->beside = strcmp(l->part, BESIDE) == 0;
  if (!take_name(l, name, c))
    return true;
  c->name = malloc(len + name.len + 1);
  if (c->name == NULL)
    return false;
  memcpy(c->name, l->part, len);
  memcpy(c->name + len, name.at, name.len);
  c->name[len + name.len] = '\0';
  l->count++;
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
  cli_contenders *l = arg;

  (void)c;
  (void)stat;
  if (err == 0 && count > 0) {
    void *all = realloc(l->all, (l->count + count) * sizeof *l->all);

    if (all == NULL)
      err = LK_ERR_NO_MEMORY;
    else
      l->all = all;
  }
  for (size_t i = 0; err == 0 && i < count; i++)
    if (!add(l, names[i]))
      err = LK_ERR_NO_MEMORY;
  if (err == 0 && *l->part == '\0' && !l->semaphore)
    l->semaphore = has(names, count, "locks") && has(names, count, "leases");
  cli_command_complete(l->ask, err);
}

/* Nobody has ever queued, or the container has gone: that is an empty queue. */
static int list(cli_contenders *l, const char *part)
{
  lk_call call = cli_command_call_options(l->ask, true);
  cli_text path = {0};
  const char *at;

  l->part = part;
  cli_text_puts(&path, folder(l->ask->path));
  if (*part != '\0' || path.len == 0)
    cli_text_printf(&path, "%s%.*s", strcmp(part, BESIDE) == 0 ? "" : "/",
                    (int)strcspn(part, "/"), part);
  at = cli_text_end(&path);
  int err = at == NULL
                ? LK_ERR_NO_MEMORY
                : lk_get_children(l->ask->link.client, at, &call, on_names, l);

  err = cli_command_wait(l->ask, err);
  cli_text_free(&path);
  if (*part == '\0')
    l->missing = err == LK_ERR_NO_NODE;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

static int list_semaphore(cli_contenders *l)
{
  int err = list(l, "locks/");

  return err != 0 ? err : list(l, "leases/");
}

/* A queue beside a path in which nobody queues is a semaphore's. */
static int list_beside(cli_contenders *l)
{
  size_t count = l->count;

  if (count > 0 && !l->semaphore)
    return 0;
  int err = list(l, BESIDE);

  l->semaphore = l->semaphore || l->count > count;
  return err;
}

int cli_contenders_list(cli_contenders *l, cli_command *ask)
{
  memset(l, 0, sizeof *l);
  l->ask = ask;
  int err = list(l, "");

  if (err == 0 && ask->options->layout == LK_LAYOUT_KAZOO)
    err = list_beside(l);
  else if (err == 0 && l->semaphore && l->count == 0)
    err = list_semaphore(l);
  l->found = l->count;
  l->missing = l->missing && l->count == 0;
  return err;
}

/* ---- what they say of themselves --------------------------------------------
 */

/* Without the word behind it that is meant for who waits. */
static size_t label_len(const lk_bytes *data)
{
  size_t len = sizeof LK_ANNOUNCEMENT - 1;
  bool head =
      data->len >= len && memcmp((const char *)data->at + data->len - len,
                                 LK_ANNOUNCEMENT, len) == 0;

  return head ? data->len - len : data->len;
}

static int take_look(cli_contender *c, int err, const lk_bytes *data,
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
  c->label = lk_bytes_of(label, label_len(data));
  c->stat = *stat;
  return 0;
}

static void on_label(lk_client *c, int err, const lk_bytes *data,
                     const lk_stat *stat, void *number)
{
  size_t at;
  cli_contenders *l = cli_pipeline_of(number, &at)->owner;

  (void)c;
  cli_pipeline_complete(number, take_look(&l->all[at], err, data, stat));
}

static int put_look(cli_pipeline *b, size_t at, void *number)
{
  lk_call call = cli_command_call_options(b->ask, true);
  char *path = cli_contenders_path(b->owner, at);
  int err = path == NULL
                ? LK_ERR_NO_MEMORY
                : lk_get(b->ask->link.client, path, &call, on_label, number);

  free(path);
  return err;
}

int cli_contenders_read_nodes(cli_contenders *l)
{
  cli_pipeline b = {
      .ask = l->ask, .put = put_look, .owner = l, .count = l->count};

  return cli_pipeline_run(&b);
}

/* ---- what follows from it -------------------------------------------------
 */

void cli_contenders_order(cli_contenders *l)
{
  l->count = l->semaphore ? cli_queue_order_permits(l->all, l->count)
                          : cli_queue_order_locks(l->all, l->count);
}

size_t cli_contenders_count_holders(const cli_contenders *l)
{
  size_t holders = 0;

  for (size_t i = 0; i < l->count; i++)
    holders += l->all[i].holds ? 1 : 0;
  return holders;
}

char *cli_contenders_path(const cli_contenders *l, size_t i)
{
  const cli_contender *c = &l->all[i];
  size_t size = strlen(l->ask->path) + strlen(c->name) + 2;
  char *path = malloc(size);

  if (path != NULL)
    snprintf(path, size, "%s%s%s", folder(l->ask->path), c->beside ? "" : "/",
             c->name);
  return path;
}

void cli_contenders_free(cli_contenders *l)
{
  for (size_t i = 0; i < l->found; i++) {
    union {
      const void *from;
      void *at;
    } label = {l->all[i].label.at};

    free(l->all[i].name);
    free(label.at);
  }
  free(l->all);
}
