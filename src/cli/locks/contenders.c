/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <latchkey/semaphore.h>

#include "cli/locks/contenders.h"
#include "cli/session/request_batch.h"

/* A semaphore of kazoo at PATH has its queue in the directory PATH-__lock__. */
#define KAZOO_QUEUE "-__lock__/"

/* Returns the text to put in front of "/NAME" for a child of `path`. */
static const char *directory_prefix(const char *path)
{
  return strcmp(path, "/") == 0 ? "" : path;
}

/* Whether `name` is a permit in kazoo's layout, where permits are children of
   the lock's node. */
static bool is_kazoo_permit(const cli_contenders *queue, lk_bytes name,
                            int64_t *number)
{
  return queue->command->options->layout == LK_LAYOUT_KAZOO &&
         *queue->part == '\0' &&
         lk_layout_is_permit(LK_LAYOUT_KAZOO, name, number);
}

/* Whether the child `name` is a permit or a contender. Sets the members of `c`
   that follow from the name. */
static bool parse_contender_name(cli_contenders *queue, lk_bytes name,
                                 cli_contender *c)
{
  const cli_options *o = queue->command->options;

  if (is_kazoo_permit(queue, name, &c->number)) {
    c->permit = true;
    queue->semaphore = true;
    return true;
  }
  c->permit = strcmp(queue->part, "leases/") == 0;
  return c->permit ? lk_layout_is_permit(LK_LAYOUT_CURATOR, name, &c->number)
                   : lk_layout_contends(o->layout, o->prefix, name, &c->number,
                                        &c->shared);
}

/* Ignores other nodes. Returns false if out of memory. */
static bool add_contender(cli_contenders *queue, lk_bytes name)
{
  cli_contender *c = &queue->all[queue->count];
  size_t len = strlen(queue->part);

  memset(c, 0, sizeof *c);
  c->in_kazoo_queue = strcmp(queue->part, KAZOO_QUEUE) == 0;
  if (!parse_contender_name(queue, name, c))
    return true;
  c->name = malloc(len + name.len + 1);
  if (c->name == NULL)
    return false;
  memcpy(c->name, queue->part, len);
  memcpy(c->name + len, name.at, name.len);
  c->name[len + name.len] = '\0';
  queue->count++;
  return true;
}

static bool has_name(const lk_bytes *names, size_t count, const char *name)
{
  for (size_t i = 0; i < count; i++) {
    if (names[i].len == strlen(name) &&
        memcmp(names[i].at, name, names[i].len) == 0)
      return true;
  }
  return false;
}

static void on_contender_names(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg)
{
  cli_contenders *queue = arg;

  (void)c;
  (void)stat;
  if (err == 0 && count > 0) {
    void *all =
        realloc(queue->all, (queue->count + count) * sizeof *queue->all);

    if (all == NULL)
      err = LK_ERR_NO_MEMORY;
    else
      queue->all = all;
  }
  for (size_t i = 0; err == 0 && i < count; i++)
    if (!add_contender(queue, names[i]))
      err = LK_ERR_NO_MEMORY;
  /* A semaphore of Curator has these two directories. */
  if (err == 0 && *queue->part == '\0' && !queue->semaphore)
    queue->semaphore =
        has_name(names, count, "locks") && has_name(names, count, "leases");
  cli_command_complete(queue->command, err);
}

/* Lists the directory `part`; see cli_contenders. A missing directory is an
   empty queue, since servers delete empty container nodes. */
static int list_directory(cli_contenders *queue, const char *part)
{
  lk_call call = cli_command_call_options(queue->command, true);
  cli_text path = {0};
  const char *at;

  queue->part = part;
  /* PATH, PATH/locks, PATH/leases or PATH-__lock__ */
  cli_text_puts(&path, directory_prefix(queue->command->path));
  if (*part != '\0' || path.len == 0)
    cli_text_printf(&path, "%s%.*s", strcmp(part, KAZOO_QUEUE) == 0 ? "" : "/",
                    (int)strcspn(part, "/"), part);
  at = cli_text_end(&path);
  int err = at == NULL ? LK_ERR_NO_MEMORY
                       : lk_get_children(queue->command->session.client, at,
                                         &call, on_contender_names, queue);

  err = cli_command_wait(queue->command, err);
  cli_text_free(&path);
  if (*part == '\0')
    queue->missing = err == LK_ERR_NO_NODE;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

static int list_curator_semaphore(cli_contenders *queue)
{
  int err = list_directory(queue, "locks/");

  return err != 0 ? err : list_directory(queue, "leases/");
}

/* Lists the queue of a semaphore of kazoo. If the lock's node has contenders
   and no permits, the lock is not a semaphore. */
static int list_kazoo_queue(cli_contenders *queue)
{
  size_t permits = queue->count;

  if (permits > 0 && !queue->semaphore)
    return 0;
  int err = list_directory(queue, KAZOO_QUEUE);

  queue->semaphore = queue->semaphore || queue->count > permits;
  return err;
}

int cli_contenders_list(cli_contenders *queue, cli_command *command)
{
  memset(queue, 0, sizeof *queue);
  queue->command = command;
  int err = list_directory(queue, "");

  if (err == 0 && command->options->layout == LK_LAYOUT_KAZOO)
    err = list_kazoo_queue(queue);
  else if (err == 0 && queue->semaphore && queue->count == 0)
    err = list_curator_semaphore(queue);
  queue->found = queue->count;
  queue->missing = queue->missing && queue->count == 0;
  return err;
}

/* ---- labels and Stats ---------------------------------------------------- */

/* Returns the length of the label, which LK_ANNOUNCEMENT can follow. */
static size_t label_len(const lk_bytes *data)
{
  size_t len = sizeof LK_ANNOUNCEMENT - 1;
  bool announced =
      data->len >= len && memcmp((const char *)data->at + data->len - len,
                                 LK_ANNOUNCEMENT, len) == 0;

  return announced ? data->len - len : data->len;
}

bool cli_is_revoke_message(const lk_bytes *data)
{
  return data->len == strlen(LK_REVOKE_MESSAGE) &&
         memcmp(data->at, LK_REVOKE_MESSAGE, data->len) == 0;
}

/* Stores the reply. A deleted or unreadable node is no error. */
static int store_contender_node(cli_contender *c, int err, const lk_bytes *data,
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
  c->asked = cli_is_revoke_message(data);
  c->stat = *stat;
  return 0;
}

static void on_contender_node(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *number)
{
  size_t at;
  cli_contenders *queue = cli_request_batch_of(number, &at)->owner;

  (void)c;
  cli_request_batch_complete(
      number, store_contender_node(&queue->all[at], err, data, stat));
}

static int request_contender_node(cli_request_batch *b, size_t at, void *number)
{
  lk_call call = cli_command_call_options(b->command, true);
  char *path = cli_contenders_path(b->owner, at);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_get(b->command->session.client, path, &call,
                                  on_contender_node, number);

  free(path);
  return err;
}

int cli_contenders_read_nodes(cli_contenders *queue)
{
  cli_request_batch b = {.command = queue->command,
                         .send = request_contender_node,
                         .owner = queue,
                         .count = queue->count};

  return cli_request_batch_run(&b);
}

/* ---- order and holders --------------------------------------------------- */

void cli_contenders_mark_holders(cli_contenders *queue)
{
  queue->count = queue->semaphore
                     ? cli_queue_mark_permit_holders(queue->all, queue->count)
                     : cli_queue_mark_lock_holders(queue->all, queue->count);
}

size_t cli_contenders_count_holders(const cli_contenders *queue)
{
  size_t holders = 0;

  for (size_t i = 0; i < queue->count; i++)
    holders += queue->all[i].holds ? 1 : 0;
  return holders;
}

void cli_contender_add_label(const cli_contender *c, cli_text *out)
{
  if (c->hidden)
    cli_text_puts(out, "(not readable)");
  else if (c->asked)
    cli_text_puts(out, "(asked to release)");
  else if (c->label.len == 0)
    cli_text_puts(out, "(no label)");
  else
    cli_text_add_printable(out, c->label);
}

void cli_contender_add_node_json(const cli_contenders *queue, size_t i,
                                 cli_json *j)
{
  char *path = cli_contenders_path(queue, i);

  j->out->failed = j->out->failed || path == NULL;
  cli_json_text(j, "node", lk_text(path));
  free(path);
}

void cli_contender_add_label_json(const cli_contender *c, cli_json *j)
{
  if (c->hidden)
    return;
  if (c->asked)
    cli_json_bool(j, "asked_to_release", true);
  else
    cli_json_data(j, "label", c->label);
}

char *cli_contenders_path(const cli_contenders *queue, size_t i)
{
  const cli_contender *c = &queue->all[i];
  size_t size = strlen(queue->command->path) + strlen(c->name) + 2;
  char *path = malloc(size);

  if (path != NULL)
    snprintf(path, size, "%s%s%s", directory_prefix(queue->command->path),
             c->in_kazoo_queue ? "" : "/", c->name);
  return path;
}

void cli_contenders_free(cli_contenders *queue)
{
  for (size_t i = 0; i < queue->found; i++) {
    /* free() takes a pointer that is not const. */
    union {
      const void *from;
      void *at;
    } label = {queue->all[i].label.at};

    free(queue->all[i].name);
    free(label.at);
  }
  free(queue->all);
}
