/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/ephemeral.h"
#include "cli/output/print.h"
#include "cli/session/interrupt.h"

typedef struct stay {
  cli_command *ask;
  const char *path;
  const char *clean; /* the same, for messages */
  lk_watch *watch;
  bool suspended;
  bool done;
  int code;
} stay;

static void look_at_node(stay *s);

/* ---- the node ------------------------------------------------------------ */

static void node_gone(stay *s)
{
  if (s->done)
    return;
  s->code = cli_fail(CLI_EXIT_NO, "create %s: another client deleted the node",
                     s->clean);
  s->done = true;
}

/* A watch fires once. The end of the session is a matter of on_state(). */
static void on_node_event(lk_client *c, lk_watch *w, const lk_event *event,
                          void *arg)
{
  stay *s = arg;

  (void)c;
  (void)w;
  s->watch = NULL;
  if (event->type == LK_EVENT_DELETED)
    node_gone(s);
  else if (event->type != LK_EVENT_ENDED && !s->done)
    look_at_node(s);
}

/* While the connection was lost another client may have put a node of its own
   in the place of ours. */
static void on_node(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  stay *s = arg;

  if (err == LK_ERR_NO_NODE ||
      (err == 0 && stat->ephemeral_owner != lk_client_session(c).id))
    node_gone(s);
}

/* lk_exists() needs no permission. */
static void look_at_node(stay *s)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_node_event,
                  .watch_arg = s,
                  .watch = &s->watch};
  int err = lk_exists(s->ask->link.client, s->path, &call, on_node, s);

  if (err != 0)
    cli_warn("%s: its deletion would not be noticed: %s", s->clean,
             lk_error_text(err));
}

/* ---- the session --------------------------------------------------------- */

static void session_over(stay *s, int err)
{
  if (s->done)
    return;
  s->code = cli_fail(CLI_EXIT_FAILED, "create %s: the node is gone: %s",
                     s->clean, lk_error_text(err));
  s->done = true;
}

static void tell_lost_connection(stay *s)
{
  const cli_session *l = &s->ask->link;
  int64_t timeout_ms = lk_client_timeout_ms(l->client);
  cli_text text = {0};

  cli_session_say_connection_lost(l, &text);
  const char *line = cli_text_end(&text);

  cli_warn("%s; reconnecting: after %g s without a server %s is gone",
           line == NULL ? "connection lost" : line, (double)timeout_ms / 1000,
           s->clean);
  cli_text_free(&text);
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  stay *s = arg;

  (void)c;
  if (state == LK_STATE_EXPIRED || state == LK_STATE_AUTH_FAILED)
    session_over(s, err);
  /* With -v the library's own lines are there. */
  if (state == LK_STATE_SUSPENDED && !s->ask->options->verbose)
    tell_lost_connection(s);
  if (state == LK_STATE_CONNECTED && s->suspended)
    cli_notice("connected again");
  s->suspended = state == LK_STATE_SUSPENDED;
}

static void run_until_done(stay *s)
{
  lk_client *c = s->ask->link.client;
  struct ev_loop *loop = s->ask->link.loop;
  lk_listener listener = {.state = on_state, .arg = s};
  cli_interrupt interrupt;

  lk_client_attach(c, &listener);
  cli_interrupt_open(&interrupt, loop, &s->done);
  look_at_node(s);
  cli_session_run(&s->ask->link, &s->done);
  cli_interrupt_close(&interrupt);
  lk_client_detach(c, &listener);
}

int cli_ephemeral_keep(cli_command *a, const char *path)
{
  stay s = {.ask = a, .path = path, .code = CLI_EXIT_DONE};
  cli_text clean = {0};

  cli_text_clean(&clean, lk_text(path));
  s.clean = cli_text_end(&clean);
  if (s.clean == NULL)
    s.clean = "the node";
  run_until_done(&s);
  /* No callback comes after this. */
  cli_session_close(&a->link);
  cli_session_free(&a->link);
  cli_text_free(&clean);
  return s.code;
}
