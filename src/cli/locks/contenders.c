/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/contenders.h"

#include <stdio.h>
#include <stdlib.h>

#include <latchkey/semaphore.h>

#include "cli/output/print.h"
#include "cli/session/request_batch.h"

/* ---- names of contenders ------------------------------------------------- */

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

/* Returns the text to put in front of "/NAME" for a child of `path`. */
static const char *contenders_path_prefix(const char *path)
{
  return strcmp(path, "/") == 0 ? "" : path;
}

/* ---- the list ------------------------------------------------------------ */

/* Which children of which nodes the contenders of a lock are. */

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
    cli_text_printf(out, "%s%s%.*s", contenders_path_prefix(path),
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

/* Adds the lock's node as the only contender; `stat` NULL: it may not be read.
   Returns false if out of memory. */
static bool add_single_node(cli_contenders *queue, const lk_stat *stat)
{
  const char *last_slash = strrchr(queue->command->path, '/');

  if (!grow_contenders(queue, 1))
    return false;
  queue->all[0] = (cli_contender){.name = strdup(last_slash + strlen("/")),
                                  .hidden = stat == NULL};
  if (stat != NULL)
    queue->all[0].stat = *stat;
  queue->count = queue->all[0].name == NULL ? 0 : 1;
  return queue->count == 1;
}

static void on_single_node_stat(lk_client *c, int err, const lk_stat *stat,
                                void *arg)
{
  cli_contenders *queue = arg;

  (void)c;
  /* Servers from 3.8.4 and 3.9.2 on show the Stat to readers of the node only
     (ZOOKEEPER-2590). It exists then. */
  if (err == LK_ERR_NO_AUTH)
    err = 0;
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

/* ---- labels and Stats ---------------------------------------------------- */

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
  c->label = lk_bytes_of(label, data->len);
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

/* ---- holders of permits -------------------------------------------------- */

/* The first contender in the queue of a semaphore creates the nodes of its
   permits before it knows whether so many permits are free. While it waits,
   these nodes look like those of a holder. They are called waiting permits
   here, and are not shown as held. */

/* Deleted contenders come last. A reader with the same number as a writer
   belongs to that writer (a downgrade), and comes after it. */
static int compare_contenders(const void *a, const void *b)
{
  const cli_contender *x = a;
  const cli_contender *y = b;

  if (x->gone != y->gone)
    return x->gone ? 1 : -1;
  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  if (x->shared != y->shared)
    return x->shared ? 1 : -1;
  return strcmp(x->name, y->name);
}

/* Returns the first contender in the queue of a semaphore, or NULL. */
static const cli_contender *first_in_queue(const cli_contender *all,
                                           size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (!all[i].permit && !all[i].gone)
      return &all[i];
  }
  return NULL;
}

static bool is_of_same_session(const cli_contender *c,
                               const cli_contender *first)
{
  return !c->gone && !c->hidden &&
         c->stat.ephemeral_owner == first->stat.ephemeral_owner;
}

/* Whether `c` is a permit of the session of `first` that is newer than the
   queue node of `first`. */
static bool can_be_waiting_permit(const cli_contender *c,
                                  const cli_contender *first)
{
  return c->permit && is_of_same_session(c, first) &&
         c->stat.czxid > first->stat.czxid;
}

/* Whether the session of `first` has other queue nodes or older permits, as a
   program with many threads has. */
static bool has_several_contenders(const cli_contender *all, size_t count,
                                   const cli_contender *first)
{
  for (size_t i = 0; i < count; i++) {
    if (&all[i] != first && is_of_same_session(&all[i], first) &&
        !can_be_waiting_permit(&all[i], first))
      return true;
  }
  return false;
}

static size_t count_permits(const cli_contender *all, size_t count)
{
  size_t permits = 0;

  for (size_t i = 0; i < count; i++)
    if (all[i].permit && !all[i].gone)
      permits++;
  return permits;
}

static size_t count_possible_waiting_permits(const cli_contender *all,
                                             size_t count,
                                             const cli_contender *first)
{
  size_t permits = 0;

  for (size_t i = 0; i < count; i++)
    if (can_be_waiting_permit(&all[i], first))
      permits++;
  return permits;
}

/* The two functions below unmark permits that can be waiting permits of
   `first`. */

static void unmark_newest_permit(cli_contender *all, size_t count,
                                 const cli_contender *first)
{
  cli_contender *newest = NULL;

  for (size_t i = 0; i < count; i++) {
    if (can_be_waiting_permit(&all[i], first) &&
        (newest == NULL || all[i].stat.czxid > newest->stat.czxid))
      newest = &all[i];
  }
  if (newest != NULL)
    newest->holds = false;
}

static void unmark_all_permits(cli_contender *all, size_t count,
                               const cli_contender *first)
{
  for (size_t i = 0; i < count; i++) {
    if (can_be_waiting_permit(&all[i], first))
      all[i].holds = false;
  }
}

/* Unmarks the waiting permits. The permit limit is not known here, but a
   contender waits only while other sessions hold permits. So if all permits
   can be those of the first contender, it does not wait: they are held. */
static void unmark_waiting_permits(cli_contender *all, size_t count)
{
  const cli_contender *first = first_in_queue(all, count);
  size_t permits = count_permits(all, count);

  /* By this rule a single permit is held. */
  if (first == NULL || first->hidden || permits < 2)
    return;
  /* Nothing shows which permits of a session belong to which of its threads.
     One is unmarked, as a thread usually takes one permit. */
  if (has_several_contenders(all, count, first))
    unmark_newest_permit(all, count, first);
  else if (count_possible_waiting_permits(all, count, first) < permits)
    unmark_all_permits(all, count, first);
}

size_t cli_queue_mark_permit_holders(cli_contender *all, size_t count)
{
  size_t kept = 0;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (size_t i = 0; i < count; i++)
    all[i].holds = all[i].permit && !all[i].gone;
  unmark_waiting_permits(all, count);
  for (size_t i = 0; i < count; i++) {
    cli_contender c = all[i];
    bool waiting_permit = c.permit && !c.holds;

    if (c.gone || waiting_permit)
      continue;
    /* Swapped, so that dropped contenders stay in the array and are freed. */
    all[i] = all[kept];
    all[kept++] = c;
  }
  return kept;
}

/* ---- holders of locks ---------------------------------------------------- */

size_t cli_queue_mark_lock_holders(cli_contender *all, size_t count)
{
  bool writer_seen = false;
  size_t i;

  if (count > 0)
    qsort(all, count, sizeof *all, compare_contenders);
  for (i = 0; i < count && !all[i].gone; i++) {
    /* A holding writer that has downgraded has a reader of the same number. */
    bool downgraded = all[i].shared && all[i].number == all[0].number;
    bool before_writers = all[i].shared && !writer_seen;

    all[i].holds = i == 0 || before_writers || downgraded;
    writer_seen = writer_seen || !all[i].shared;
  }
  return i;
}

void cli_contenders_mark_holders(cli_contenders *queue)
{
  /* The dropped contenders stay in `all`, behind `count`. */
  queue->count = queue->semaphore
                     ? cli_queue_mark_permit_holders(queue->all, queue->count)
                     : cli_queue_mark_lock_holders(queue->all, queue->count);
}

/* ---- queries ------------------------------------------------------------- */

size_t cli_contenders_count_holders(const cli_contenders *queue)
{
  size_t holders = 0;

  for (size_t i = 0; i < queue->count; i++)
    if (queue->all[i].holds)
      holders++;
  return holders;
}

bool cli_contender_is_ephemeral(const cli_contender *c)
{
  return c->stat.ephemeral_owner != 0;
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

char *cli_contenders_path(const cli_contenders *queue, size_t i)
{
  const cli_contender *c = &queue->all[i];

  if (queue->command->options->single_node)
    return strdup(queue->command->path);
  size_t size =
      strlen(queue->command->path) + strlen("/") + strlen(c->name) + 1;
  char *path = malloc(size);

  if (path != NULL)
    snprintf(path, size, "%s%s%s", contenders_path_prefix(queue->command->path),
             c->in_kazoo_queue ? "" : "/", c->name);
  return path;
}

/* ---- end ----------------------------------------------------------------- */

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
