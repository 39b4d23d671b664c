/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/node_path.h"
#include "cli/options/options.h"
#include "cli/run/descendants.h"
#include "cli/run/lock_kind.h"
#include "cli/run/runner.h"
#include "cli/session/session.h"

/* ---- the words of COMMAND ------------------------------------------------ */

/* Finds COMMAND in `*rest`, the operands after LOCK, and moves `*rest` to it.
   For LOCK -c STRING, moves `*rest` to STRING and sets `*is_string`. Returns a
   complaint, or NULL. */
static const char *find_command(const cli_options *o, char ***rest,
                                bool *is_string)
{
  const char *word = **rest;

  if (o->command != NULL && word != NULL)
    return "-c STRING is the whole command: nothing may follow the path";
  if (o->command != NULL)
    return NULL;
  if (word == NULL)
    return "COMMAND is missing";
  *is_string = strcmp(word, "-c") == 0 || strcmp(word, "--command") == 0;
  if (*is_string) {
    char **string = ++*rest;
    bool is_last_word = string[0] != NULL && string[1] == NULL;

    if (!is_last_word)
      return "-c after the path takes one STRING, and nothing may follow it";
    return NULL;
  }
  if (strcmp(word, "--") == 0) {
    char **command = ++*rest;

    return command[0] == NULL ? "COMMAND is missing" : NULL;
  }
  if (*word == '-')
    return "options must stand before the path (put -- before a COMMAND that "
           "begins with -)";
  return NULL;
}

/* Returns the words of the command `$SHELL -c text`, to be freed; NULL: out of
   memory. */
static char **make_shell_words(const char *text)
{
  enum { WORDS = 3 };
  const char *name = getenv("SHELL");
  char **words = calloc(WORDS + 1, sizeof *words); /* ends with NULL */

  if (words == NULL)
    return NULL;
  words[0] = strdup(name != NULL && *name != '\0' ? name : "/bin/sh");
  words[1] = strdup("-c");
  words[2] = strdup(text);
  return words;
}

static void free_shell_words(char **words)
{
  for (size_t i = 0; words != NULL && words[i] != NULL; i++)
    free(words[i]);
  free(words);
}

/* Finds COMMAND in `operands`, of which the first is LOCK. Returns a
   complaint, or NULL. */
static const char *command_line_parse(const cli_options *o, char **operands,
                                      cli_command_line *out)
{
  char **rest = operands + 1;
  bool string_after_lock = false; /* LOCK -c STRING */
  const char *wrong = find_command(o, &rest, &string_after_lock);

  if (wrong != NULL)
    return wrong;
  const char *string = string_after_lock ? *rest : o->command;

  out->shell_words = string == NULL ? NULL : make_shell_words(string);
  out->argv = string == NULL ? rest : out->shell_words;
  return out->argv == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : NULL;
}

void cli_command_line_free(cli_command_line *c)
{
  free_shell_words(c->shell_words);
}

/* ---- refusals ------------------------------------------------------------ */

/* Reports a failure before cli_events_open() was called. */
static void fail_early(const cli_options *o, const char *path_key,
                       const char *path, const char *reason)
{
  bool has_events_fd = o->events_fd >= 0;
  cli_text line = {0};

  if (has_events_fd || !o->json)
    cli_fail(CLI_EXIT_FAILED, "%s", reason);
  if (has_events_fd || o->json) {
    /* The exit code stays 125 if the reader is gone. */
    signal(SIGPIPE, SIG_IGN);
    cli_failed_json(&line, path_key, path, CLI_EXIT_FAILED, reason);
    cli_write_all(has_events_fd ? o->events_fd : STDERR_FILENO, &line);
  }
  cli_text_free(&line);
}

int cli_run_refuse(const cli_options *o, const char *line)
{
  const char *no_path = NULL;

  fail_early(o, no_path, no_path, line);
  return CLI_EXIT_FAILED;
}

static int refuse_run_usage(const cli_options *o, const char *verb,
                            const cli_run_target *target, const char *path,
                            const char *wrong)
{
  char line[512];

  snprintf(line, sizeof line, "%s: %s; latchkey %s --help shows the usage",
           verb, wrong, verb);
  fail_early(o, target->path_key, path, line);
  return CLI_EXIT_FAILED;
}

/* Returns a complaint if --min-hold, --max-hold and --on-lost do not fit
   together, else NULL. */
static const char *check_hold_options(const cli_options *o)
{
  if (o->max_hold_ms == 0)
    return NULL;
  if (o->on_lost == CLI_ON_LOST_IGNORE)
    return "--max-hold and --on-lost ignore exclude each other";
  return o->min_hold_ms > o->max_hold_ms
             ? "--min-hold is longer than --max-hold"
             : NULL;
}

/* Returns the first path of a lock that is at or below /zookeeper, or NULL. */
static const char *find_reserved_path(const cli_options *o, const char *path)
{
  if (cli_path_is_reserved(o->hosts, path))
    return path;
  for (size_t i = 0; i < o->extra_count; i++)
    if (cli_path_is_reserved(o->hosts, cli_lock_kind_path(o, i)))
      return cli_lock_kind_path(o, i);
  return NULL;
}

static int refuse_reserved_path(const cli_options *o, const char *verb,
                                const cli_run_target *target, const char *path)
{
  cli_text line = {0};

  cli_text_printf(&line, "%s: cannot use ", verb);
  cli_text_add_printable(&line, lk_text(path));
  cli_text_puts(&line,
                ": /zookeeper is reserved for ZooKeeper; choose another path");
  const char *text = cli_text_end(&line);

  fail_early(o, target->path_key, path,
             text == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : text);
  cli_text_free(&line);
  return CLI_EXIT_FAILED;
}

/* In the root, only names with a prefix are possible. */
static bool root_is_possible(const cli_options *o)
{
  bool has_prefix =
      o->layout == LK_LAYOUT_NATIVE || o->layout == LK_LAYOUT_NATIVE_UUID;

  return has_prefix && (o->prefix == NULL || *o->prefix != '\0') &&
         o->extra_count == 0;
}

int cli_run_check(const cli_options *o, const char *verb,
                  const cli_run_target *target, char **operands,
                  cli_command_line *out)
{
  const char *wrong = cli_lock_kind_check(o);

  if (wrong == NULL)
    wrong = cli_lock_kind_check_sides(o, operands[0]);
  if (wrong == NULL)
    wrong = check_hold_options(o);
  if (wrong == NULL && strcmp(operands[0], "/") == 0 && !root_is_possible(o))
    wrong = "the path must be below \"/\"";
  if (wrong == NULL)
    wrong = command_line_parse(o, operands, out);
  if (wrong != NULL)
    return refuse_run_usage(o, verb, target, operands[0], wrong);
  const char *reserved = find_reserved_path(o, operands[0]);

  return reserved == NULL ? 0 : refuse_reserved_path(o, verb, target, reserved);
}

/* ---- events of the loop -------------------------------------------------- */

static void on_supervisor(lk_loop_io *io, int events)
{
  (void)events;
  cli_hold_supervisor_ready(LK_OWNER(io, cli_runner, supervisor_io));
}

/* Handles stopped and ended children. Reaps orphans, which latchkey has adopted
   or gets as process 1. The supervisor stays a zombie: cli_supervisor_close()
   reaps it. */
static void handle_sigchld(cli_runner *r)
{
  siginfo_t info = {.si_pid = 0};

  cli_supervisor_continue(&r->supervisor);
  /* Sees the death of the supervisor even if its socket stays open. */
  if (r->supervisor.fd >= 0)
    cli_hold_supervisor_ready(r);
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0 && info.si_pid != r->supervisor.pid) {
    waitpid(info.si_pid, NULL, WNOHANG);
    cli_children_remove(&r->children_before, info.si_pid);
    info.si_pid = 0;
  }
}

static void handle_signal_while_waiting(cli_runner *r, int number)
{
  char line[80];

  if (number == SIGTSTP)
    (void)cli_signals_stop_self();
  if (!cli_signal_ends_wait(number))
    return;
  if (cli_signal_ends_loops(number))
    r->died_of = number;
  r->resigned = true;
  snprintf(line, sizeof line, "ended by SIG%s while waiting",
           cli_signal_name(number));
  if (r->options->quiet)
    cli_run_fail_silently(r, CLI_EXIT_SIGNAL + number, line);
  else
    cli_run_fail(r, CLI_EXIT_SIGNAL + number, line);
}

/* Whether the signal ends an election, also while COMMAND runs. The others are
   passed on to COMMAND, as a HUP by which daemons read their configuration; the
   HUP of a terminal is none. */
static bool signal_resigns(cli_signal signal)
{
  int number = signal.number;

  return number == SIGTERM || number == SIGINT || number == SIGQUIT ||
         (number == SIGHUP && signal.from_terminal);
}

static void handle_signal(cli_runner *r, cli_signal signal)
{
  if (signal_resigns(signal))
    r->resigned = true;
  switch (r->phase) {
  case CLI_PHASE_CONNECTING:
  case CLI_PHASE_ACQUIRING:
    handle_signal_while_waiting(r, signal.number);
    break;
  case CLI_PHASE_RUNNING: cli_hold_signal(r, signal); break;
  case CLI_PHASE_KEEPING: cli_min_hold_signal(r, signal.number); break;
  case CLI_PHASE_RELEASING:
  case CLI_PHASE_CLOSING:
  case CLI_PHASE_OVER:
    /* Without a connection the deletion of the own node may take long. */
    if (cli_signal_ends_wait(signal.number) &&
        lk_client_state(r->session.client) != LK_STATE_CONNECTED)
      cli_run_stop_releasing(r);
    break;
  }
}

static void on_run_signal(cli_signal_watcher *w)
{
  cli_runner *r = LK_OWNER(w, cli_runner, signals);
  cli_signal signal;

  while (cli_signals_next(&r->job.signals, &signal)) {
    if (signal.number == SIGCHLD)
      handle_sigchld(r);
    else
      handle_signal(r, signal);
  }
}

/* lk__loop_ref() keeps the loop running when the client is closed, until
   `over` ends it. */
static void start_run_watchers(cli_runner *r)
{
  lk_loop *loop = r->session.loop;

  r->supervisor_io.on_events = on_supervisor;
  r->supervisor_io.fd = r->supervisor.fd;
  lk__loop_set_io(loop, &r->supervisor_io, LK_LOOP_READ);
  r->signals.on_signals = on_run_signal;
  cli_signal_watcher_start(&r->signals, loop, &r->job.signals.queue);
  cli_service_manager_start_waiting(r->manager, loop);
  lk__loop_ref(loop);
}

static void stop_run_watchers(cli_runner *r)
{
  lk_loop *loop = r->session.loop;

  lk__loop_stop_io(loop, &r->supervisor_io);
  cli_signal_watcher_stop(&r->signals);
  cli_service_manager_stop(r->manager);
  lk__loop_stop_timer(loop, &r->timer);
}

/* ---- start and end ------------------------------------------------------- */

/* Called before the loop and the connection are opened, so that the supervisor
   does not inherit their descriptors. */
static bool start_supervisor(cli_runner *r, cli_process_title title,
                             cli_text *complaint)
{
  int error = r->job.signals.opened ? 0 : cli_signals_open(&r->job.signals);

  r->job.foreground = r->options->foreground;
  r->job.group = getpgrp();
  r->job.owns_namespace = getpid() == 1;
  cli_children_list(&r->children_before);
  (void)cli_descendants_adopt();
  cli_cgroup_choose_path(&r->job.cgroup);
  if (error == 0)
    error = cli_supervisor_fork(&r->supervisor, &r->job, r->options->on_lost,
                                title);
  if (error != 0)
    cli_text_printf(complaint, "cannot start the supervisor process: %s",
                    strerror(error));
  return error == 0;
}

static bool prepare_run(cli_runner *r, cli_process_title title,
                        cli_text *complaint)
{
  r->events_fd = cli_events_take_fd(r->options->events_fd);
  if (r->events_fd < 0 && r->options->events_fd >= 0) {
    cli_text_printf(complaint, "--events-fd: %s", strerror(errno));
    return false;
  }
  if (!cli_acl_read(&r->acl, "--acl", r->options->acl, complaint) ||
      !cli_session_read_auth_file(&r->session, r->options, complaint) ||
      !start_supervisor(r, title, complaint) ||
      !cli_run_session_open(r, complaint))
    return false;
  cli_events_open(&r->events, r->options, r->events_fd, r->manager,
                  r->target->path_key, r->path, r->session.loop);
  cli_events_status(&r->events, "connecting");
  start_run_watchers(r);
  cli_tls_warn(&r->options->tls, r->options->hosts, r->options->quiet);
  return true;
}

static void free_run(cli_runner *r)
{
  bool events_fd_is_copy = r->events_fd != r->options->events_fd;

  r->target->free(r);
  cli_supervisor_close(&r->supervisor);
  cli_events_close(&r->events);
  if (events_fd_is_copy && r->events_fd >= 0)
    close(r->events_fd);
  if (r->session.loop != NULL)
    stop_run_watchers(r);
  cli_session_free(&r->session);
  cli_acl_free(&r->acl);
  cli_pids_free(&r->children_before.pids);
  cli_text_free(&r->environment);
}

static void run_until_over(cli_runner *r, cli_process_title title)
{
  cli_text complaint = {0};

  if (prepare_run(r, title, &complaint)) {
    cli_session_run(&r->session, &r->over);
  } else {
    const char *line = cli_text_end(&complaint);

    fail_early(r->options, r->target->path_key, r->path,
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line);
  }
  free_run(r);
  cli_text_free(&complaint);
}

void cli_run_once(cli_runner *r, cli_process_title title)
{
  r->code = CLI_EXIT_FAILED;
  r->supervisor.fd = -1;
  r->job.cgroup.fd = -1;
  run_until_over(r, title);
}

void cli_run_open_manager(cli_service_manager *manager, const cli_options *o)
{
  int error = cli_service_manager_open(manager);

  if (error != 0 && !o->quiet)
    cli_warn("NOTIFY_SOCKET: %s: the service manager is not told when COMMAND "
             "is started",
             strerror(error));
}

/* On ^C a shell ends its loop only if latchkey dies of the signal, too. The
   exit code is another one if the lock was lost. */
void cli_run_die_if_signalled(const cli_runner *r)
{
  if (r->died_of == 0 || r->code != CLI_EXIT_SIGNAL + r->died_of)
    return;
  cli_messages_close();
  cli_signals_die_of(r->died_of);
}

/* ---- the verbs ----------------------------------------------------------- */

static int run_with(const cli_options *o, const char *verb,
                    const cli_run_target *target, char **operands,
                    cli_process_title title)
{
  cli_command_line line = {0};
  int code = cli_run_check(o, verb, target, operands, &line);

  if (code != 0) {
    cli_command_line_free(&line);
    return code;
  }
  cli_service_manager manager;
  cli_runner r = {.options = o,
                  .path = operands[0],
                  .target = target,
                  .manager = &manager,
                  .job = {.argv = line.argv}};

  cli_run_open_manager(&manager, o);
  cli_run_once(&r, title);
  cli_service_manager_close(&manager);
  cli_command_line_free(&line);
  cli_run_die_if_signalled(&r);
  return r.code;
}

int cli_run(const cli_options *o, char **operands, cli_process_title title)
{
  return run_with(o, "run", &cli_lock_target, operands, title);
}

int cli_join(const cli_options *o, char **operands, cli_process_title title)
{
  return run_with(o, "join", &cli_member_target, operands, title);
}
