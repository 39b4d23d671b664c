/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/semaphore.h>

#include "cli/locks/contenders.h"
#include "cli/output/print.h"

/* The list of the contenders of a lock: which children of which nodes they are.
 */

/* A semaphore of kazoo at PATH has its queue in the directory PATH-__lock__.
   The slash is in front of the names of its children. */
#define KAZOO_QUEUE "-__lock__/"

/* Whether `name` is a permit in kazoo's layout, where permits are children of
   the lock's node. */
static bool is_kazoo_permit(const cli_contenders *queue, lk_bytes name,
                            int64_t *number)
{
  return queue->layout == LK_LAYOUT_KAZOO && *queue->directory == '\0' &&
         lk_layout_is_permit(LK_LAYOUT_KAZOO, name, number);
}

/* Whether the child `name` is a permit or a contender. Sets the members of `c`
   that follow from the name. */
static bool parse_contender_name(cli_contenders *queue, lk_bytes name,
                                 cli_contender *c)
{
  if (is_kazoo_permit(queue, name, &c->number)) {
    c->permit = true;
    queue->semaphore = true;
    return true;
  }
  c->permit = strcmp(queue->directory, "leases/") == 0;
  if (c->permit)
    return lk_layout_is_permit(LK_LAYOUT_CURATOR, name, &c->number);
  return lk_layout_contends(queue->layout, queue->command->options->prefix,
                            name, &c->number, &c->shared);
}

enum { NUMBER_DIGITS = 10 }; /* of a sequential node */

bool cli_is_sequential_name(lk_bytes name)
{
  const char *end = (const char *)name.at + name.len;
  size_t digits = 0;

  while (digits < name.len && end[-1 - (ptrdiff_t)digits] >= '0' &&
         end[-1 - (ptrdiff_t)digits] <= '9')
    digits++;
  return digits >= NUMBER_DIGITS;
}

static void count_if_other(cli_contenders *queue, lk_bytes name)
{
  bool at_lock = *queue->directory == '\0';
  int64_t number;
  bool is_other = cli_is_sequential_name(name) ||
                  lk_layout_is_permit(LK_LAYOUT_KAZOO, name, &number);

  if (at_lock && is_other)
    queue->others++;
}

/* Adds the child `name` if it is a permit or a contender. Returns false if out
   of memory. */
static bool add_if_contender(cli_contenders *queue, lk_bytes name)
{
  cli_contender *c = &queue->all[queue->count];
  size_t len = strlen(queue->directory);

  memset(c, 0, sizeof *c);
  c->in_kazoo_queue = strcmp(queue->directory, KAZOO_QUEUE) == 0;
  if (!parse_contender_name(queue, name, c)) {
    count_if_other(queue, name);
    return true;
  }
  c->name = malloc(len + name.len + 1);
  if (c->name == NULL)
    return false;
  memcpy(c->name, queue->directory, len);
  memcpy(c->name + len, name.at, name.len);
  c->name[len + name.len] = '\0';
  queue->count++;
  return true;
}

/* Makes room for `more` contenders. Returns false if out of memory. */
static bool grow_contenders(cli_contenders *queue, size_t more)
{
  if (more == 0)
    return true;
  void *all = realloc(queue->all, (queue->count + more) * sizeof *queue->all);

  if (all == NULL)
    return false;
  queue->all = all;
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

/* Adds the children that contend in `layout`. Returns an error. */
static int add_contenders(cli_contenders *queue, lk_layout layout,
                          const lk_bytes *names, size_t count)
{
  queue->layout = layout;
  queue->others = 0;
  if (!grow_contenders(queue, count))
    return LK_ERR_NO_MEMORY;
  for (size_t i = 0; i < count; i++)
    if (!add_if_contender(queue, names[i]))
      return LK_ERR_NO_MEMORY;
  return 0;
}

/* What a lock's node without contenders is. A semaphore of Curator has two
   directories. If no layout was given, candidates of `elect` are contenders. */
static int add_other_contenders(cli_contenders *queue, const lk_bytes *names,
                                size_t count)
{
  queue->semaphore =
      has_name(names, count, "locks") && has_name(names, count, "leases");
  if (queue->semaphore || queue->command->options->layout_given)
    return 0;
  return add_contenders(queue, LK_LAYOUT_LATCH, names, count);
}

static void on_contender_names(lk_client *c, int err, const lk_bytes *names,
                               size_t count, const lk_stat *stat, void *arg)
{
  cli_contenders *queue = arg;
  bool at_lock = *queue->directory == '\0';

  (void)c;
  (void)stat;
  if (err == 0)
    err = add_contenders(queue, queue->layout, names, count);
  if (err == 0 && at_lock && queue->count == 0)
    err = add_other_contenders(queue, names, count);
  cli_command_complete(queue->command, err);
}

/* Appends PATH, PATH/locks, PATH/leases or PATH-__lock__. */
static void add_directory_path(cli_text *out, const char *path,
                               const char *directory)
{
  int len_without_slash = (int)strcspn(directory, "/");

  if (*directory == '\0')
    cli_text_puts(out, path);
  else
    cli_text_printf(out, "%s%s%.*s", cli_contenders_path_prefix(path),
                    strcmp(directory, KAZOO_QUEUE) == 0 ? "" : "/",
                    len_without_slash, directory);
}

/* Lists `directory`, which is as in cli_contenders: "" for the lock's node. A
   missing directory is an empty queue: servers delete empty containers. */
static int list_directory(cli_contenders *queue, const char *directory)
{
  lk_call call = cli_command_repeatable_call(queue->command);
  cli_text text = {0};

  queue->directory = directory;
  add_directory_path(&text, queue->command->path, directory);
  const char *path = cli_text_end(&text);
  int err = path == NULL ? LK_ERR_NO_MEMORY
                         : lk_get_children(queue->command->session.client, path,
                                           &call, on_contender_names, queue);

  err = cli_command_wait(queue->command, err);
  cli_text_free(&text);
  if (*directory == '\0')
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
  size_t count_at_lock = queue->count;

  if (count_at_lock > 0 && !queue->semaphore)
    return 0;
  int err = list_directory(queue, KAZOO_QUEUE);

  if (queue->count > count_at_lock)
    queue->semaphore = true;
  return err;
}

static int list_queue(cli_contenders *queue)
{
  int err = list_directory(queue, "");

  if (err == 0 && queue->layout == LK_LAYOUT_KAZOO)
    return list_kazoo_queue(queue);
  return err == 0 && queue->semaphore ? list_curator_semaphore(queue) : err;
}

/* Adds the lock's node as the only contender. Returns false if out of memory.
 */
static bool add_single_node(cli_contenders *queue, const lk_stat *stat)
{
  const char *last_slash = strrchr(queue->command->path, '/');

  if (!grow_contenders(queue, 1))
    return false;
  queue->all[0] =
      (cli_contender){.name = strdup(last_slash + strlen("/")), .stat = *stat};
  queue->count = queue->all[0].name == NULL ? 0 : 1;
  return queue->count == 1;
}

static void on_single_node_stat(lk_client *c, int err, const lk_stat *stat,
                                void *arg)
{
  cli_contenders *queue = arg;

  (void)c;
  if (err == 0 && !add_single_node(queue, stat))
    err = LK_ERR_NO_MEMORY;
  cli_command_complete(queue->command, err);
}

static int list_single_node(cli_contenders *queue)
{
  lk_call call = cli_command_repeatable_call(queue->command);
  int err = lk_exists(queue->command->session.client, queue->command->path,
                      &call, on_single_node_stat, queue);

  err = cli_command_wait(queue->command, err);
  queue->missing = err == LK_ERR_NO_NODE;
  return queue->missing ? 0 : err;
}

/* A lock with contenders of another layout only is not free for them. */
static void warn_of_others(const cli_contenders *queue)
{
  const cli_command *command = queue->command;

  if (queue->count == 0 && queue->others > 0)
    cli_warn("%s %s: not shown are the nodes of another kind of lock or "
             "another --layout: %zu",
             command->verb, command->path, queue->others);
}

int cli_contenders_list(cli_contenders *queue, cli_command *command)
{
  memset(queue, 0, sizeof *queue);
  queue->command = command;
  queue->layout = command->options->layout;
  int err = command->options->single_node ? list_single_node(queue)
                                          : list_queue(queue);

  queue->all_count = queue->count;
  if (queue->count > 0) /* kazoo's queue may exist without the lock's node */
    queue->missing = false;
  if (err == 0)
    warn_of_others(queue);
  return err;
}
