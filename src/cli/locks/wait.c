/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/locks/contenders.h"
#include "cli/output/print.h"
#include "cli/verbs.h"

typedef struct lock_wait {
  cli_command command;
  lk_loop_timer timer;
  bool queue_was_read; /* at least once */
  bool late;           /* the time of -w is over */
  bool over; /* ends wait_for_change(): the watched node has changed, or the
                time of -w is over */
} lock_wait;

static void on_wait_over(lk_loop_timer *t)
{
  lock_wait *waiter = LK_OWNER(t, lock_wait, timer);

  waiter->late = true;
  waiter->over = true;
}

static void on_contender_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lock_wait *waiter = arg;

  (void)c;
  (void)w;
  (void)event;
  waiter->over = true;
}

static void on_contender_read(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  lock_wait *waiter = arg;

  (void)c;
  (void)data;
  (void)stat;
  waiter->command.err = err;
  waiter->over = waiter->over || err != 0;
}

/* Waits until `node` changes or the time of -w is over. */
static int wait_for_change(lock_wait *waiter, const char *node)
{
  lk_watch *w = NULL;
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_contender_event,
                  .watch_arg = waiter,
                  .watch = &w};

  if (node == NULL)
    return LK_ERR_NO_MEMORY;
  waiter->over = waiter->late;
  int err = lk_get(waiter->command.session.client, node, &call,
                   on_contender_read, waiter);

  if (err != 0)
    return err;
  cli_session_run(&waiter->command.session, &waiter->over);
  err = waiter->command.err;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

/* Reads the queue. `*held` gets whether the lock is held; then waits until the
   queue changes. */
static int read_queue_and_wait(lock_wait *waiter, bool *held)
{
  cli_contenders queue;
  int err = cli_contenders_list(&queue, &waiter->command);

  if (err == 0)
    cli_contenders_mark_holders(&queue);
  *held = cli_contenders_count_holders(&queue) > 0;
  if (err == 0 && queue.missing && !waiter->queue_was_read)
    cli_notice("wait %s: no such node, so the lock is free",
               waiter->command.path);
  waiter->queue_was_read = true;
  /* The lock is not free before its last contender is gone, so this one is
     watched. A semaphore is free when no client holds a permit, so the last
     permit is watched. */
  if (err == 0 && *held && !waiter->late) {
    size_t last = queue.count - 1;

    while (queue.semaphore && !queue.all[last].holds)
      last--;
    char *node = cli_contenders_path(&queue, last);

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
  int64_t left = deadline - lk_client_clock(session->client);

  waiter->late = waiter->command.options->wait_ms == 0;
  waiter->timer.on_timer = on_wait_over;
  if (deadline != LK_NO_LIMIT)
    lk__loop_set_timer(session->loop, &waiter->timer, left > 0 ? left : 0);
}

int cli_wait(const cli_options *o, char **operands)
{
  lock_wait waiter = {.late = false};
  bool held = true;
  int err = 0;

  if (!cli_command_open(&waiter.command, o, "wait", operands[0]))
    return CLI_EXIT_FAILED;
  start_wait_timer(&waiter);
  do
    err = read_queue_and_wait(&waiter, &held);
  while (err == 0 && held && !waiter.late);
  /* The servers have not replied before the end of -w. The lock is not known to
     be free, so it counts as held. */
  if (err == LK_ERR_DEADLINE &&
      cli_session_is_past_deadline(&waiter.command.session)) {
    err = 0;
    held = true;
  }
  lk__loop_set_timer(waiter.command.session.loop, &waiter.timer, -1);
  int code = cli_command_close(&waiter.command, err);

  return code == CLI_EXIT_DONE && held ? CLI_EXIT_NO : code;
}
