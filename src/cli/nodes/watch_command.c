/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/nodes/watch_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latchkey/subscribe.h>

#include "base/list.h"
#include "cli/nodes/child_names.h"
#include "cli/options/options.h"
#include "cli/output/print.h"
#include "cli/run/job.h"
#include "cli/session/command.h"
#include "cli/session/session.h"

/* ---- the standard input of COMMAND --------------------------------------- */

/* The indices of the descriptors of pipe2(). */
enum { READ_END, WRITE_END };

static void close_input(cli_piped_command *p)
{
  if (p->input_io.fd < 0)
    return;
  lk__loop_stop_io(p->loop, &p->input_io);
  close(p->input_io.fd);
  p->input_io.fd = -1;
  cli_text_free(&p->input);
}

/* If COMMAND has closed its standard input, the rest is discarded. */
static void on_room_for_input(lk_loop_io *io, int events)
{
  cli_piped_command *p = LK_OWNER(io, cli_piped_command, input_io);
  ssize_t n =
      write(io->fd, p->input.at + p->written, p->input.len - p->written);

  (void)events;
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n > 0)
    p->written += (size_t)n;
  if (n < 0 || p->written == p->input.len)
    close_input(p);
}

/* COMMAND reads from another open file description, which stays blocking. */
static void open_input(cli_piped_command *p, int fd, cli_text *input)
{
  fcntl(fd, F_SETFL, O_NONBLOCK);
  p->input = *input;
  *input = (cli_text){0};
  p->written = 0;
  p->input_io.on_events = on_room_for_input;
  p->input_io.fd = fd;
  if (p->input.len > 0)
    lk__loop_set_io(p->loop, &p->input_io, LK_LOOP_WRITE);
  else
    close_input(p);
}

/* ---- the environment of COMMAND ------------------------------------------ */

/* Whether both entries "NAME=VALUE" have the same name. */
static bool has_same_name(const char *a, const char *b)
{
  size_t len = strcspn(a, "=");

  return strncmp(a, b, len) == 0 && a[len] == b[len];
}

/* Adds an entry to `environment`, or replaces the entry of that name. */
static void set_variable(char **environment, char *variable)
{
  while (*environment != NULL && !has_same_name(*environment, variable))
    environment++;
  *environment = variable;
}

static size_t count_variables(const cli_text *variables)
{
  size_t count = 0;

  for (size_t i = 0; i < variables->len; i++)
    if (variables->at[i] == '\0')
      count++;
  return count;
}

/* Returns the environment of COMMAND, to be freed; NULL: out of memory. It is
   made before fork(): a child of a process with threads must not allocate. */
static char **make_environment(const cli_text *variables)
{
  size_t inherited = 0;

  while (environ != NULL && environ[inherited] != NULL)
    inherited++;
  char **made =
      calloc(inherited + count_variables(variables) + 1, sizeof *made);

  if (made == NULL)
    return NULL;
  for (size_t i = 0; i < inherited; i++)
    made[i] = environ[i];
  for (size_t at = 0; at < variables->len; at += strlen(variables->at + at) + 1)
    set_variable(made, variables->at + at);
  return made;
}

/* ---- the start of COMMAND ------------------------------------------------ */

static void close_pipe(const int ends[2])
{
  close(ends[READ_END]);
  close(ends[WRITE_END]);
}

/* Both pipes are closed in COMMAND, except its standard input. */
static int open_pipes(int input[2], int exec_result[2])
{
  if (pipe2(input, O_CLOEXEC) != 0)
    return errno;
  if (pipe2(exec_result, O_CLOEXEC) == 0)
    return 0;
  int error = errno;

  close_pipe(input);
  return error;
}

/* Runs in the child, between fork() and exec(). */
static _Noreturn void execute_piped_command(const cli_piped_command *p,
                                            pid_t parent, char **environment,
                                            int input, int exec_result)
{
  setpgid(0, 0);
  dup2(input, STDIN_FILENO);
  environ = environment;
  cli_command_process_exec(p->argv, parent, p->signals, exec_result);
}

static int fork_piped_command(cli_piped_command *p, char **environment,
                              cli_text *input)
{
  pid_t self = getpid();
  int in[2];
  int result[2];
  int error = open_pipes(in, result);

  if (error != 0)
    return error;
  pid_t pid = fork();

  if (pid == 0)
    execute_piped_command(p, self, environment, in[READ_END],
                          result[WRITE_END]);
  if (pid < 0) {
    error = errno;
    close_pipe(in);
    close_pipe(result);
    return error;
  }
  close(in[READ_END]);
  close(result[WRITE_END]);
  /* The child does the same. So the process group exists before a signal is
     sent to it. */
  setpgid(pid, pid);
  p->pid = pid;
  p->exec_result = result[READ_END];
  open_input(p, in[WRITE_END], input);
  return 0;
}

int cli_piped_command_start(cli_piped_command *p, const cli_text *variables,
                            cli_text *input)
{
  bool complete = !variables->failed && !input->failed;
  char **environment = complete ? make_environment(variables) : NULL;
  int error =
      environment == NULL ? ENOMEM : fork_piped_command(p, environment, input);

  free(environment);
  cli_text_free(input);
  return error;
}

/* ---- while COMMAND runs -------------------------------------------------- */

bool cli_piped_command_runs(const cli_piped_command *p)
{
  return p->pid != 0;
}

void cli_piped_command_signal(const cli_piped_command *p, int number)
{
  if (p->pid == 0)
    return;
  /* COMMAND may have left its process group. */
  if (kill(-p->pid, number) != 0)
    kill(p->pid, number);
}

bool cli_piped_command_reap(cli_piped_command *p, cli_piped_command_end *out)
{
  bool ended = false;
  int status;
  pid_t pid;

  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != p->pid) /* an orphan that this process got as process 1 */
      continue;
    ended = true;
    out->status = status;
  }
  if (!ended)
    return false;
  p->pid = 0;
  close_input(p);
  out->exec_error = cli_command_process_exec_error(p->exec_result);
  return true;
}

/* ---- runs of COMMAND with the newest state ------------------------------- */

/* Between TERM and KILL, after a signal has ended the verb. */
enum { KILL_AFTER_MS = 10 * 1000 };

/* A state of the node, as COMMAND gets it. */
typedef struct node_state {
  cli_text variables; /* of the environment, for cli_piped_command_start() */
  cli_text input;
} node_state;

typedef struct watched_command {
  cli_command command;
  lk_subscription *subscription;
  cli_signals signals;
  cli_signal_watcher signal_watcher;
  cli_piped_command process;
  lk_loop_timer kill_timer;
  node_state newest; /* the state that no COMMAND has got, if `has_newest` */
  bool has_newest;
  int64_t runs_left; /* until the verb ends; 0: no limit */
  bool interrupted;  /* a signal has ended the verb: COMMAND has got TERM */
  bool ending;       /* no COMMAND is started any more */
  bool over;         /* `ending`, and no COMMAND runs; ends the loop */
  int err;           /* why the node cannot be watched; or 0 */
  int code;          /* the exit code if `err` is 0 */
} watched_command;

/* Ends the verb when COMMAND has ended. */
static void end_watched_command(watched_command *w)
{
  w->ending = true;
  w->over = !cli_piped_command_runs(&w->process);
}

static void refuse_command(watched_command *w, int code, int error)
{
  cli_text line = {0};

  cli_command_process_say_not_run(w->process.argv[0], strerror(error),
                                  cli_command_process_failure_advice(error),
                                  &line);
  w->code = cli_fail_text(code, "watch", &line);
  end_watched_command(w);
}

static void free_newest_state(watched_command *w)
{
  cli_text_free(&w->newest.variables);
  cli_text_free(&w->newest.input);
  w->has_newest = false;
}

/* Gives the newest state to COMMAND, unless a COMMAND runs. */
static void run_with_newest_state(watched_command *w)
{
  node_state *newest = &w->newest;

  if (w->ending || !w->has_newest || cli_piped_command_runs(&w->process))
    return;
  int error =
      cli_piped_command_start(&w->process, &newest->variables, &newest->input);

  free_newest_state(w);
  if (error != 0)
    refuse_command(w, CLI_EXIT_FAILED, error);
}

/* The last run of -n decides the exit code of latchkey. */
static void take_exit_code(watched_command *w, int code)
{
  bool is_last = w->runs_left > 0 && --w->runs_left == 0;

  if (is_last) {
    w->code = code;
    w->ending = true;
  } else if (code != 0) {
    cli_warn("watch %s: COMMAND has ended with code %d; it is run again after "
             "the next change",
             w->command.path, code);
  }
}

static void handle_command_end(watched_command *w,
                               const cli_piped_command_end *end)
{
  lk__loop_stop_timer(w->command.session.loop, &w->kill_timer);
  if (end->exec_error != 0)
    refuse_command(w, cli_command_process_failure_code(end->exec_error),
                   end->exec_error);
  else if (!w->ending)
    take_exit_code(w, cli_command_process_exit_code(end->status));
  if (w->ending)
    w->over = true;
  else
    run_with_newest_state(w);
}

/* ---- signals ------------------------------------------------------------- */

static void on_kill_timer(lk_loop_timer *t)
{
  cli_piped_command_signal(&LK_OWNER(t, watched_command, kill_timer)->process,
                           SIGKILL);
}

static void interrupt_watched_command(watched_command *w)
{
  if (w->interrupted)
    return;
  w->interrupted = true;
  cli_piped_command_signal(&w->process, SIGTERM);
  cli_piped_command_signal(&w->process, SIGCONT); /* it may be stopped */
  if (cli_piped_command_runs(&w->process))
    lk__loop_set_timer(w->command.session.loop, &w->kill_timer, KILL_AFTER_MS);
  end_watched_command(w);
}

static void handle_watch_signal(watched_command *w, cli_signal signal)
{
  if (cli_signal_ends_wait(signal.number)) {
    interrupt_watched_command(w);
    return;
  }
  cli_piped_command_signal(&w->process, signal.number);
  if (signal.number == SIGTSTP)
    cli_signals_stop_self();
}

static void on_watch_signals(cli_signal_watcher *watcher)
{
  watched_command *w = LK_OWNER(watcher, watched_command, signal_watcher);
  cli_piped_command_end end;
  cli_signal signal;

  while (cli_signals_next(&w->signals, &signal)) {
    if (signal.number != SIGCHLD)
      handle_watch_signal(w, signal);
    else if (cli_piped_command_reap(&w->process, &end))
      handle_command_end(w, &end);
  }
}

/* ---- states of the node -------------------------------------------------- */

/* Takes the bytes of `input`. `version` is NULL if the node does not exist. */
static void take_state(watched_command *w, const char *event,
                       const int32_t *version, cli_text *input)
{
  cli_text *variables = &w->newest.variables;
  const char nul = '\0';

  free_newest_state(w);
  cli_text_printf(variables, "LATCHKEY_EVENT=%s%c", event, nul);
  cli_text_printf(variables, "LATCHKEY_PATH=%s%c", w->command.path, nul);
  cli_text_puts(variables, "LATCHKEY_VERSION=");
  if (version != NULL)
    cli_text_printf(variables, "%" PRId32, *version);
  cli_text_add(variables, &nul, 1);
  w->newest.input = *input;
  w->has_newest = true;
  run_with_newest_state(w);
}

/* Handles a node that does not exist, or cannot be read. */
static void take_error(watched_command *w, int err)
{
  const int32_t *no_version = NULL;
  cli_text no_input = {0};

  if (err == LK_ERR_NO_NODE) {
    take_state(w, "missing", no_version, &no_input);
    return;
  }
  w->err = err;
  end_watched_command(w);
}

static void on_data_for_command(lk_subscription *s, int err,
                                const lk_bytes *data, const lk_stat *stat,
                                void *arg)
{
  watched_command *w = arg;
  cli_text input = {0};

  (void)s;
  if (w->ending)
    return;
  if (err != 0) {
    take_error(w, err);
    return;
  }
  cli_text_add(&input, data->at, data->len);
  take_state(w, "data", &stat->version, &input);
}

static void on_children_for_command(lk_subscription *s, int err,
                                    const lk_bytes *names, size_t count,
                                    const lk_stat *stat, void *arg)
{
  watched_command *w = arg;
  cli_text input = {0};

  (void)s;
  if (w->ending)
    return;
  if (err != 0) {
    take_error(w, err);
    return;
  }
  cli_child_names_text(&input, names, count);
  take_state(w, "children", &stat->cversion, &input);
}

static int subscribe_for_command(watched_command *w)
{
  lk_client *c = w->command.session.client;
  const char *path = w->command.path;

  if (w->command.options->children)
    return lk_subscribe_children(&w->subscription, c, path, NULL,
                                 on_children_for_command, w);
  return lk_subscribe_data(&w->subscription, c, path, NULL, on_data_for_command,
                           w);
}

/* ---- the verb ------------------------------------------------------------ */

static void run_until_over(watched_command *w)
{
  lk_loop *loop = w->command.session.loop;

  w->process.signals = &w->signals;
  w->process.loop = loop;
  w->kill_timer.on_timer = on_kill_timer;
  w->signal_watcher.on_signals = on_watch_signals;
  cli_signal_watcher_start(&w->signal_watcher, loop, &w->signals.queue);
  lk__loop_ref(loop); /* the signals do not keep it running */
  w->err = subscribe_for_command(w);
  w->over = w->err != 0;
  cli_session_run(&w->command.session, &w->over);
  lk_subscription_free(w->subscription);
  lk__loop_unref(loop);
  cli_signal_watcher_stop(&w->signal_watcher);
  free_newest_state(w);
}

int cli_watch_command(const cli_options *o, const char *path, char **argv)
{
  watched_command w = {.runs_left = o->count, .process = {.argv = argv}};

  if (!cli_command_open(&w.command, o, "watch", path))
    return CLI_EXIT_FAILED;
  int error = cli_signals_open(&w.signals);

  if (error == 0)
    run_until_over(&w);
  else
    w.code = cli_fail(CLI_EXIT_FAILED, "watch: cannot wait for signals: %s",
                      strerror(error));
  int close_code = cli_command_close(&w.command, w.err);

  cli_signal_queue_close(&w.signals.queue);
  return close_code != CLI_EXIT_DONE ? close_code : w.code;
}
