/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/locks/contenders.h"
#include "cli/session/request_batch.h"

/* ---- labels and Stats ---------------------------------------------------- */

/* Returns the length of the label in the data of a node. LK_ANNOUNCEMENT can
   follow the label. */
static size_t label_len(const lk_bytes *data)
{
  size_t announcement_len = sizeof LK_ANNOUNCEMENT - 1;

  if (data->len < announcement_len)
    return data->len;
  size_t len = data->len - announcement_len;
  bool announced = memcmp((const char *)data->at + len, LK_ANNOUNCEMENT,
                          announcement_len) == 0;

  return announced ? len : data->len;
}

bool cli_contender_is_ephemeral(const cli_contender *c)
{
  return c->stat.ephemeral_owner != 0;
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
                              const lk_stat *stat, void *ticket)
{
  size_t at;
  cli_contenders *queue = cli_request_batch_of(ticket, &at)->owner;

  (void)c;
  cli_request_batch_complete(
      ticket, store_contender_node(&queue->all[at], err, data, stat));
}

static int request_contender_node(cli_request_batch *b, size_t at, void *ticket)
{
  lk_call call = cli_command_repeatable_call(b->command);
  char *path = cli_contenders_path(b->owner, at);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_get(b->command->session.client, path, &call,
                                  on_contender_node, ticket);

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
  /* The dropped contenders stay in `all`, behind `count`. */
  queue->count = queue->semaphore
                     ? cli_queue_mark_permit_holders(queue->all, queue->count)
                     : cli_queue_mark_lock_holders(queue->all, queue->count);
}

size_t cli_contenders_count_holders(const cli_contenders *queue)
{
  size_t holders = 0;

  for (size_t i = 0; i < queue->count; i++)
    if (queue->all[i].holds)
      holders++;
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

  if (path == NULL)
    j->out->failed = true;
  cli_json_text(j, "node", lk_text(path));
  free(path);
}

void cli_contender_add_label_json(const cli_contender *c, cli_json *j)
{
  if (c->hidden)
    return;
  if (c->asked)
    cli_json_bool(j, "asked_to_release", c->asked);
  else
    cli_json_data(j, "label", c->label);
}

const char *cli_contenders_path_prefix(const char *path)
{
  return strcmp(path, "/") == 0 ? "" : path;
}

char *cli_contenders_path(const cli_contenders *queue, size_t i)
{
  const cli_contender *c = &queue->all[i];

  if (queue->command->options->single_node)
    return strdup(queue->command->path);
  size_t size =
      strlen(queue->command->path) + strlen("/") + strlen(c->name) + 1;
  char *path = malloc(size);

  if (path != NULL)
    snprintf(path, size, "%s%s%s",
             cli_contenders_path_prefix(queue->command->path),
             c->in_kazoo_queue ? "" : "/", c->name);
  return path;
}

/* The member `at` of lk_bytes is const, and free() takes a pointer that is not.
 */
static void free_label(lk_bytes label)
{
  union {
    const void *constant;
    void *writable;
  } at = {label.at};

  free(at.writable);
}

void cli_contenders_free(cli_contenders *queue)
{
  for (size_t i = 0; i < queue->all_count; i++) {
    free(queue->all[i].name);
    free_label(queue->all[i].label);
  }
  free(queue->all);
}
