/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/nodes/piped_command.h"
#include "cli/run/command_process.h"

/* The indices of the descriptors of pipe2(). */
enum { READ_END, WRITE_END };

/* ---- input --------------------------------------------------------------- */

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

/* ---- environment --------------------------------------------------------- */

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

/* ---- start --------------------------------------------------------------- */

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
