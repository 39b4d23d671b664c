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
  lock_wait *p = LK_OWNER(t, lock_wait, timer);

  p->late = true;
  p->over = true;
}

static void on_contender_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lock_wait *p = arg;

  (void)c;
  (void)w;
  (void)event;
  p->over = true;
}

static void on_contender_read(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  lock_wait *p = arg;

  (void)c;
  (void)data;
  (void)stat;
  p->command.err = err;
  p->over = p->over || err != 0;
}

/* Waits until `node` changes or the time of -w is over. */
static int wait_for_change(lock_wait *p, const char *node)
{
  lk_watch *w = NULL;
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_contender_event,
                  .watch_arg = p,
                  .watch = &w};

  if (node == NULL)
    return LK_ERR_NO_MEMORY;
  p->over = p->late;
  int err =
      lk_get(p->command.session.client, node, &call, on_contender_read, p);

  if (err != 0)
    return err;
  cli_session_run(&p->command.session, &p->over);
  err = p->command.err;
  return err == LK_ERR_NO_NODE ? 0 : err;
}

/* Reads the queue. `*held` gets whether the lock is held; then waits until the
   queue changes. */
static int read_queue_and_wait(lock_wait *p, bool *held)
{
  cli_contenders queue;
  int err = cli_contenders_list(&queue, &p->command);

  if (err == 0)
    cli_contenders_mark_holders(&queue);
  *held = cli_contenders_count_holders(&queue) > 0;
  if (err == 0 && queue.missing && !p->queue_was_read)
    cli_notice("wait %s: no such node, so the lock is free", p->command.path);
  p->queue_was_read = true;
  /* The lock is not free before its last contender is gone, so this one is
     watched. A semaphore is free when nobody holds a permit, so the last permit
     is watched. */
  if (err == 0 && *held && !p->late) {
    size_t last = queue.count - 1;

    while (queue.semaphore && !queue.all[last].holds)
      last--;
    char *node = cli_contenders_path(&queue, last);

    err = wait_for_change(p, node);
    free(node);
  }
  cli_contenders_free(&queue);
  return err;
}

/* Starts the timer for the rest of -w, which includes the time to connect. */
static void start_wait_timer(lock_wait *p)
{
  cli_session *l = &p->command.session;
  int64_t deadline = cli_session_deadline(l);
  int64_t left = deadline - lk_client_clock(l->client);

  p->late = p->command.options->wait_ms == 0;
  p->timer.on_timer = on_wait_over;
  if (deadline != LK_NO_LIMIT)
    lk__loop_set_timer(l->loop, &p->timer, left > 0 ? left : 0);
}

int cli_wait(const cli_options *o, char **operands)
{
  lock_wait p = {.late = false};
  bool held = true;
  int err = 0;

  if (!cli_command_open(&p.command, o, "wait", operands[0]))
    return CLI_EXIT_FAILED;
  start_wait_timer(&p);
  do
    err = read_queue_and_wait(&p, &held);
  while (err == 0 && held && !p.late);
  /* The servers have not replied before the end of -w. The lock is not known to
     be free, so it counts as held. */
  if (err == LK_ERR_DEADLINE &&
      cli_session_is_past_deadline(&p.command.session)) {
    err = 0;
    held = true;
  }
  lk__loop_set_timer(p.command.session.loop, &p.timer, -1);
  int code = cli_command_close(&p.command, err);

  return code == CLI_EXIT_DONE && held ? CLI_EXIT_NO : code;
}
