/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/run/job.h"

/* ---- start --------------------------------------------------------------- */

/* Runs in the child, between fork() and exec(). */
static _Noreturn void execute_command(const cli_job *job, pid_t parent,
                                      int report)
{
  setpgid(0, job->foreground ? job->group : 0);
  /* The kernel sends no signal if the parent has died before this call. So
     getppid() is compared after it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) {
    cli_signals_restore(&job->signals);
    execvp(job->argv[0], job->argv);
  }
  int error = errno;
  ssize_t n = write(report, &error, sizeof error);

  (void)n;
  _exit(127);
}

int cli_job_start(cli_job *job)
{
  pid_t self = getpid();
  int ends[2];

  cli_cgroup_make(&job->cgroup);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return errno;
  pid_t pid = cli_cgroup_fork(&job->cgroup);

  if (pid == 0)
    execute_command(job, self, ends[1]);
  int error = errno;

  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return error;
  }
  /* The child does the same. Whichever runs first, the process group exists
     before the parent sends a signal to it. */
  setpgid(pid, job->foreground ? job->group : pid);
  job->pid = pid;
  job->exec_result = ends[0];
  return 0;
}

/* execute_command() writes an errno into the pipe; a successful exec() closes
   the pipe, and the read returns 0. */
int cli_job_read_exec_result(cli_job *job)
{
  int error;
  ssize_t n = read(job->exec_result, &error, sizeof error);

  close(job->exec_result);
  job->exec_result = -1;
  return n == (ssize_t)sizeof error ? error : 0;
}

/* ---- signals ------------------------------------------------------------- */

void cli_job_signal(const cli_job *job, int number)
{
  if (job->pid == 0 || job->reaped)
    return;
  if (job->foreground)
    kill(job->pid, number);
  else
    kill(-job->pid, number);
}

void cli_job_terminate(const cli_job *job)
{
  cli_job_signal(job, SIGTERM);
  cli_job_signal(job, SIGCONT);
}

/* While `exec_result` is open, the child may not have set PR_SET_PDEATHSIG yet.
   A child that is stopped then would outlive a killed supervisor. */
bool cli_job_stop(const cli_job *job)
{
  return job->exec_result < 0 && cli_descendants_stop(&job->cgroup);
}

void cli_job_continue(const cli_job *job)
{
  cli_descendants_continue(&job->cgroup);
}

/* ---- kill ---------------------------------------------------------------- */

void cli_job_kill(cli_job *job, cli_reaped *out)
{
  cli_descendants_kill(&job->cgroup, job->reaped ? 0 : job->pid,
                       !job->foreground, out);
  job->reaped = job->reaped || out->known;
}

void cli_job_kill_orphans(cli_job *job, bool owns_all_children)
{
  cli_reaped reaped;

  cli_cgroup_open(&job->cgroup);
  if (owns_all_children) {
    cli_descendants_kill(&job->cgroup, 0, false, &reaped);
  } else {
    cli_cgroup_kill(&job->cgroup);
    if (!job->foreground)
      cli_job_signal(job, SIGKILL);
  }
  cli_cgroup_remove(&job->cgroup);
}
