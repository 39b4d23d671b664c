/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/exit_code.h"
#include "cli/run/descendants.h"

/* ---- the variables of COMMAND -------------------------------------------- */

void cli_environment_add(cli_text *out, const char *name, const char *value)
{
  cli_text_printf(out, "%s=%s", name, value);
  cli_text_add(out, "", 1);
}

void cli_environment_add_session(cli_text *out, const lk_client *c)
{
  char text[32];

  snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)lk_client_session(c).id);
  cli_environment_add(out, "LATCHKEY_SESSION", text);
}

/* ---- the process of COMMAND ---------------------------------------------- */

void cli_command_process_exec(char **argv, pid_t parent,
                              const cli_signals *signals, int exec_result)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The kernel sends no signal if the parent died before the previous call. */
  if (getppid() != parent)
    _exit(CLI_EXIT_NOT_FOUND);
  cli_signals_restore(signals);
  execvp(argv[0], argv);
  int error = errno;
  ssize_t n = write(exec_result, &error, sizeof error);

  (void)n;
  _exit(CLI_EXIT_NOT_FOUND);
}

/* A successful exec() closes the writing end, and the read returns 0. */
int cli_command_process_exec_error(int exec_result)
{
  int error;
  ssize_t n = read(exec_result, &error, sizeof error);

  close(exec_result);
  return n == (ssize_t)sizeof error ? error : 0;
}

void cli_command_process_say_not_run(const char *name, const char *reason,
                                     const char *advice, cli_text *out)
{
  enum { MAX_NAME_BYTES = 512 };
  size_t len = strlen(name);
  bool is_long = len > MAX_NAME_BYTES;
  cli_text clean = {0};

  cli_text_add_printable(&clean,
                         lk_bytes_of(name, is_long ? MAX_NAME_BYTES : len));
  const char *text = cli_text_end(&clean);

  cli_text_printf(out, "cannot run %s%s: %s%s", text == NULL ? "" : text,
                  is_long ? "..." : "", reason, advice);
  cli_text_free(&clean);
}

int cli_command_process_failure_code(int error)
{
  return error == ENOENT ? CLI_EXIT_NOT_FOUND : CLI_EXIT_NOT_RUNNABLE;
}

const char *cli_command_process_failure_advice(int error)
{
  if (error == ENOENT)
    return "; check the name and PATH";
  return error == EACCES ? "; it must be an executable file" : "";
}

int cli_command_process_exit_code(int status)
{
  if (WIFSIGNALED(status))
    return CLI_EXIT_SIGNAL + WTERMSIG(status);
  return WEXITSTATUS(status);
}

/* ---- the start of COMMAND ------------------------------------------------ */

/* The indices of the descriptors of pipe2(). */
enum { READ_END, WRITE_END };

/* If the service manager watches latchkey, it watches COMMAND: a library for
   sd_notify(3) sends WATCHDOG=1 only from the process that WATCHDOG_PID names.
   The child fills in its own process id. */
static void prepare_watchdog(cli_job *job)
{
  const char *watched = getenv("WATCHDOG_PID");
  pid_t latchkey = getppid();

  job->watchdog[0] = '\0';
  if (watched == NULL || strtol(watched, NULL, 10) != latchkey)
    return;
  snprintf(job->watchdog, sizeof job->watchdog, "WATCHDOG_PID=");
  putenv(job->watchdog); /* the environment has this array */
}

/* Runs between fork() and exec(), where snprintf() may hang. */
static void set_watchdog_pid(cli_job *job)
{
  char digits[CLI_WATCHDOG_SIZE];
  size_t count = 0;
  char *out = strchr(job->watchdog, '=');

  if (out == NULL)
    return;
  for (long pid = getpid(); pid > 0; pid /= 10)
    digits[count++] = (char)('0' + pid % 10);
  while (count > 0)
    *++out = digits[--count];
  *++out = '\0';
}

/* Runs in the child, between fork() and exec(). */
static _Noreturn void execute_command(cli_job *job, pid_t parent,
                                      int exec_result)
{
  const pid_t new_group = 0;

  set_watchdog_pid(job);
  setpgid(0, job->foreground ? job->group : new_group);
  cli_command_process_exec(job->argv, parent, &job->signals, exec_result);
}

int cli_job_start(cli_job *job)
{
  pid_t self = getpid();
  int ends[2];

  cli_cgroup_make(&job->cgroup);
  prepare_watchdog(job);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return errno;
  pid_t pid = cli_cgroup_fork(&job->cgroup);

  if (pid == 0)
    execute_command(job, self, ends[WRITE_END]);
  int error = errno;

  close(ends[WRITE_END]);
  if (pid < 0) {
    close(ends[READ_END]);
    return error;
  }
  /* The child does the same. So the process group exists before the parent
     sends a signal to it, whether the parent or the child runs first. */
  setpgid(pid, job->foreground ? job->group : pid);
  job->pid = pid;
  job->exec_result = ends[READ_END];
  return 0;
}

int cli_job_read_exec_result(cli_job *job)
{
  int error = cli_command_process_exec_error(job->exec_result);

  job->exec_result = -1;
  return error;
}

/* ---- signals to COMMAND and its descendants ------------------------------ */

int cli_job_signal(const cli_job *job, int number)
{
  if (job->pid == 0 || job->reaped)
    return 0;
  return kill(job->foreground ? job->pid : -job->pid, number) == 0 ? 0 : errno;
}

int cli_job_terminate(const cli_job *job)
{
  int error = cli_job_signal(job, SIGTERM);

  cli_job_signal(job, SIGCONT); /* a stopped process acts on TERM then */
  return error;
}

bool cli_job_has_cgroup(const cli_job *job)
{
  return job->cgroup.fd >= 0;
}

/* While `exec_result` is open, the child may not have set PR_SET_PDEATHSIG yet.
   A child that is stopped then would outlive a killed supervisor. */
bool cli_job_stop(const cli_job *job, bool command_ended)
{
  return job->exec_result < 0 &&
         cli_descendants_stop(&job->cgroup, command_ended ? job->pid : 0);
}

void cli_job_continue(const cli_job *job)
{
  cli_cgroup_thaw(&job->cgroup);
}

/* ---- KILL ---------------------------------------------------------------- */

static cli_kill_scope kill_scope(const cli_job *job)
{
  return (cli_kill_scope){.cgroup = &job->cgroup,
                          .command = job->reaped ? 0 : job->pid,
                          .leads_group = !job->foreground,
                          .owns_namespace = job->owns_namespace};
}

cli_descendants_left cli_job_kill_round(cli_job *job, cli_killed *out)
{
  const cli_kill_scope scope = kill_scope(job);
  cli_descendants_left left = cli_descendants_kill_round(&scope, out);

  job->reaped = job->reaped || out->reaped;
  return left;
}

void cli_job_kill(cli_job *job)
{
  const cli_kill_scope scope = kill_scope(job);
  cli_killed ignored;

  (void)cli_descendants_kill(&scope, &ignored);
}

bool cli_job_finds_orphans(const cli_job *job)
{
  return job->adopts_orphans || job->cgroup.fd >= 0;
}
