/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/exit_code.h"
#include "cli/run/command_process.h"

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
