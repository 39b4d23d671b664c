/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/ephemeral.h"
#include "cli/output/print.h"
#include "cli/session/session.h"

/* The pause before a request that has failed to set the watch is sent again. */
enum { WATCH_RETRY_MS = 1000 };

/* How often a node that cannot be watched is looked at. */
enum { LOOK_S = 5 };

typedef struct ephemeral {
  cli_command *command;
  const char *path;
  const char *clean_path; /* in printable form, for messages */
  lk_watch *watch;        /* NULL: no watch is set */
  lk_timer retry;         /* runs until the watch is requested again */
  bool warned;            /* the last request for the watch has failed */
  bool unreadable; /* the access list forbids to watch it: it is looked at */
  bool suspended;  /* the connection is lost */
  bool done;       /* interrupted, or the node is gone */
  int code;        /* the exit code */
} ephemeral;

static void watch_ephemeral_node(ephemeral *s);
static void look_at_ephemeral_node(ephemeral *s);

/* ---- the node ------------------------------------------------------------ */

static void report_ephemeral_deleted(ephemeral *s)
{
  if (s->done)
    return;
  s->code = cli_fail(CLI_EXIT_NO, "create %s: another client deleted the node",
                     s->clean_path);
  s->done = true;
}

/* Sets the one-shot watch again. LK_EVENT_ENDED is ignored here, since
   on_ephemeral_session_state() handles the end of the session. */
static void on_ephemeral_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  ephemeral *s = arg;

  (void)c;
  (void)w;
  s->watch = NULL;
  if (event->type == LK_EVENT_DELETED)
    report_ephemeral_deleted(s);
  else if (event->type != LK_EVENT_ENDED && !s->done)
    watch_ephemeral_node(s);
}

/* The watch is not set, since the server is overloaded or memory is lacking.
   The end of the session is reported elsewhere. */
static void retry_watch(ephemeral *s, int err)
{
  lk_client *c = s->command->session.client;

  if (s->done)
    return;
  if (!s->warned)
    cli_warn("%s: its deletion would not be noticed: %s; trying again",
             s->clean_path, lk_error_text(err));
  s->warned = true;
  lk_timer_start(c, &s->retry, lk_client_clock(c) + WATCH_RETRY_MS);
}

static void on_ephemeral_retry(lk_client *c, void *arg)
{
  ephemeral *s = arg;

  (void)c;
  if (s->done)
    return;
  if (s->unreadable)
    look_at_ephemeral_node(s);
  else
    watch_ephemeral_node(s);
}

/* Whether the node is gone. If it belongs to another session, another client
   has deleted the own node and created one with the same path while no watch
   was set. */
static bool is_ephemeral_gone(const lk_client *c, int err, const lk_stat *stat)
{
  bool replaced = err == 0 && stat->ephemeral_owner != lk_client_session(c).id;

  return err == LK_ERR_NO_NODE || replaced;
}

static void look_later(ephemeral *s)
{
  lk_client *c = s->command->session.client;

  if (!s->unreadable)
    cli_warn("%s: without the permission to read it, its deletion is noticed "
             "%d s late",
             s->clean_path, LOOK_S);
  s->unreadable = true;
  lk_timer_start(c, &s->retry, lk_client_clock(c) + LOOK_S * 1000);
}

/* LK_ERR_NO_AUTH: the node exists. */
static void on_ephemeral_look(lk_client *c, int err, const lk_stat *stat,
                              void *arg)
{
  ephemeral *s = arg;

  if (s->done)
    return;
  if (is_ephemeral_gone(c, err, stat))
    report_ephemeral_deleted(s);
  else if (err != 0 && err != LK_ERR_NO_AUTH)
    retry_watch(s, err);
  else {
    s->warned = false;
    look_later(s);
  }
}

static void look_at_ephemeral_node(ephemeral *s)
{
  const lk_call call = {.size = sizeof call, .repeat = true};
  int err = lk_exists(s->command->session.client, s->path, &call,
                      on_ephemeral_look, s);

  if (err != 0)
    retry_watch(s, err);
}

static void on_ephemeral_children(lk_client *c, int err, const lk_bytes *names,
                                  size_t count, const lk_stat *stat, void *arg)
{
  ephemeral *s = arg;

  (void)names;
  (void)count;
  if (is_ephemeral_gone(c, err, stat))
    report_ephemeral_deleted(s);
  else if (err == LK_ERR_NO_AUTH && !s->done)
    look_later(s);
  else if (err != 0)
    retry_watch(s, err);
  else
    s->warned = false;
}

/* The watch for children fires at the deletion alone, since an ephemeral node
   has none. Like each read it needs the permission to read. lk_exists() needs
   none at many servers, but its event is withheld then: ZOOKEEPER-4799. */
static void watch_ephemeral_node(ephemeral *s)
{
  lk_call call = {.size = sizeof call,
                  .repeat = true,
                  .on_event = on_ephemeral_event,
                  .watch_arg = s,
                  .watch = &s->watch};
  int err = lk_get_children(s->command->session.client, s->path, &call,
                            on_ephemeral_children, s);

  if (err != 0)
    retry_watch(s, err);
}

/* ---- the session --------------------------------------------------------- */

static void report_ephemeral_session_ended(ephemeral *s, int err)
{
  if (s->done)
    return;
  s->code =
      cli_fail(CLI_EXIT_FAILED, "create %s: the node has been deleted: %s",
               s->clean_path, lk_error_text(err));
  s->done = true;
}

static void warn_connection_lost(ephemeral *s)
{
  const cli_session *session = &s->command->session;
  int64_t timeout_ms = lk_client_timeout_ms(session->client);
  cli_text text = {0};

  cli_session_say_connection_lost(session, &text);
  const char *line = cli_text_end(&text);

  cli_warn(
      "%s; reconnecting: after %g s without a server the servers delete %s",
      line == NULL ? "connection lost" : line, (double)timeout_ms / 1000,
      s->clean_path);
  cli_text_free(&text);
}

static void on_ephemeral_session_state(lk_client *c, lk_state state, int err,
                                       void *arg)
{
  ephemeral *s = arg;

  (void)c;
  if (state == LK_STATE_EXPIRED || state == LK_STATE_AUTH_FAILED)
    report_ephemeral_session_ended(s, err);
  /* With -v the library's log reports the lost connection. */
  if (state == LK_STATE_SUSPENDED && !s->command->options->verbose)
    warn_connection_lost(s);
  if (state == LK_STATE_CONNECTED && s->suspended)
    cli_notice("reconnected");
  s->suspended = state == LK_STATE_SUSPENDED;
}

static void keep_until_done(ephemeral *s, cli_interrupt *interrupt)
{
  lk_client *c = s->command->session.client;
  lk_listener listener = {
      .size = sizeof listener, .state = on_ephemeral_session_state, .arg = s};

  lk_client_attach(c, &listener);
  interrupt->done = &s->done;
  s->done = interrupt->number != 0;
  watch_ephemeral_node(s);
  cli_session_run(&s->command->session, &s->done);
  lk_client_detach(c, &listener);
}

int cli_ephemeral_keep(cli_command *command, const char *path,
                       cli_interrupt *interrupt)
{
  ephemeral s = {.command = command, .path = path, .code = CLI_EXIT_DONE};
  cli_text clean = {0};

  s.retry.fire = on_ephemeral_retry;
  s.retry.arg = &s;
  cli_text_add_printable(&clean, lk_text(path));
  s.clean_path = cli_text_end(&clean);
  if (s.clean_path == NULL)
    s.clean_path = "the node";
  keep_until_done(&s, interrupt);
  cli_interrupt_close(interrupt);
  /* Ends all callbacks, which have `s` as their argument. */
  cli_session_close(&command->session);
  cli_session_free(&command->session);
  cli_text_free(&clean);
  return s.code;
}
