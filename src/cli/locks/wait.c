/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/locks/contenders.h"
#include "cli/options/verbs.h"
#include "cli/output/print.h"

typedef struct lock_wait {
  cli_command command;
  cli_options options; /* with the layout that the first contenders had */
  lk_loop_timer timer;
  bool queue_was_read; /* at least once */
  bool time_is_over;   /* the time of -w is over */
  bool watches;        /* the server has set the watch of wait_for_change() */
  bool wake;           /* ends wait_for_change(): the watched node has changed,
                          or the time of -w is over */
} lock_wait;

static void on_wait_timer(lk_loop_timer *t)
{
  lock_wait *waiter = LK_OWNER(t, lock_wait, timer);

  waiter->time_is_over = true;
  waiter->wake = true;
}

static void on_contender_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lock_wait *waiter = arg;

  (void)c;
  (void)w;
  (void)event;
  waiter->wake = true;
}

static void on_contender_read(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  lock_wait *waiter = arg;

  (void)c;
  (void)data;
  (void)stat;
  waiter->command.err = err;
  waiter->watches = err == 0;
  if (err != 0)
    waiter->wake = true;
}

/* Whether the client learns of a change of the watched node at once. Otherwise
   the lock may be free by now. */
static bool sees_changes(const lock_wait *waiter)
{
  lk_state state = lk_client_state(waiter->command.session.client);

  return waiter->watches &&
         (state == LK_STATE_CONNECTED || state == LK_STATE_READ_ONLY);
}

/* Waits until `node` changes or the time of -w is over. */
static int wait_for_change(lock_wait *waiter, const char *node)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_contender_event,
                  .watch_arg = waiter};

  if (node == NULL)
    return LK_ERR_NO_MEMORY;
  waiter->wake = waiter->time_is_over;
  waiter->watches = false;
  int err = lk_get(waiter->command.session.client, node, &call,
                   on_contender_read, waiter);

  if (err != 0)
    return err;
  cli_session_run(&waiter->command.session, &waiter->wake);
  err = waiter->command.err;
  if (err == 0 && waiter->time_is_over && !sees_changes(waiter))
    return LK_ERR_DEADLINE;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

/* Reports what the first read has shown, if it may be a mistake. The node of a
   free single-node lock does not exist, so its absence is not reported. */
static void report_first_read(const char *lock, const cli_contenders *queue)
{
  bool single_node = queue->command->options->single_node;

  if (queue->missing && !single_node)
    cli_notice("wait %s: no such node, so the lock is free", lock);
  if (queue->count > 0 && single_node && !queue->all[0].hidden &&
      !cli_contender_is_ephemeral(&queue->all[0]))
    cli_warn("%s is not ephemeral, so no session holds it: the lock is held "
             "until a client deletes the node",
             lock);
}

/* Contenders of another layout that are there when the last of these is gone
   are not waited for. */
static void keep_layout(lock_wait *waiter, lk_layout layout)
{
  waiter->options = *waiter->command.options;
  waiter->options.layout = layout;
  waiter->options.layout_given = true;
  waiter->command.options = &waiter->options;
}

/* Reads the queue. `*held` gets whether the lock is held. If it is held, waits
   until the queue changes. */
static int read_queue_and_wait(lock_wait *waiter, bool *held)
{
  cli_contenders queue;
  int err = cli_contenders_list(&queue, &waiter->command);

  if (err == 0)
    cli_contenders_mark_holders(&queue);
  *held = cli_contenders_count_holders(&queue) > 0;
  if (err == 0 && !waiter->queue_was_read) {
    report_first_read(waiter->command.path, &queue);
    keep_layout(waiter, queue.layout);
  }
  waiter->queue_was_read = true;
  /* The lock is not free before its last contender is gone, so this one is
     watched. A semaphore is free when no client holds a permit, so the last
     permit is watched. */
  if (err == 0 && *held && !waiter->time_is_over) {
    size_t watched = queue.count - 1;

    while (queue.semaphore && !queue.all[watched].holds)
      watched--;
    char *node = cli_contenders_path(&queue, watched);

    err = wait_for_change(waiter, node);
    free(node);
  }
  cli_contenders_free(&queue);
  return err;
}

/* Starts the timer for the rest of -w, which includes the time to connect. */
static void start_wait_timer(lock_wait *waiter)
{
  cli_session *session = &waiter->command.session;
  int64_t deadline = cli_session_deadline(session);
  int64_t left_ms = deadline - lk_client_clock(session->client);

  /* -w 0: does not wait, and has no deadline. */
  waiter->time_is_over = waiter->command.options->wait_ms == 0;
  waiter->timer.on_timer = on_wait_timer;
  if (deadline != LK_NO_LIMIT)
    lk__loop_set_timer(session->loop, &waiter->timer,
                       left_ms > 0 ? left_ms : 0);
}

int cli_wait(const cli_options *o, char **operands)
{
  lock_wait waiter = {.time_is_over = false};
  bool held;
  int err;

  if (!cli_command_open(&waiter.command, o, "wait", operands[0]))
    return CLI_EXIT_FAILED;
  start_wait_timer(&waiter);
  do
    err = read_queue_and_wait(&waiter, &held);
  while (err == 0 && held && !waiter.time_is_over);
  lk__loop_stop_timer(waiter.command.session.loop, &waiter.timer);
  int code = cli_command_close(&waiter.command, err);

  return code == CLI_EXIT_DONE && held ? CLI_EXIT_NO : code;
}
