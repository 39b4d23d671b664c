/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/run/job.h"

/* Runs in the child, between fork() and exec(). */
static _Noreturn void execute_command(const cli_job *job, pid_t parent,
                                      int report)
{
  setpgid(0, job->foreground ? job->group : 0);
  /* The kernel sends no signal for a parent that died before this call;
     getppid() shows that. */
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

pid_t cli_job_start(const cli_job *job, int *report)
{
  pid_t self = getpid();
  int ends[2];

  if (pipe2(ends, O_CLOEXEC) != 0)
    return -1;
  pid_t pid = cli_cgroup_fork(&job->cgroup);

  if (pid == 0)
    execute_command(job, self, ends[1]);
  int error = errno;

  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    errno = error;
    return -1;
  }
  /* The parent sets the group as well, so that it exists before a signal is
     sent to it. */
  setpgid(pid, job->foreground ? job->group : pid);
  *report = ends[0];
  return pid;
}
