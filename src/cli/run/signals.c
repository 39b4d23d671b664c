/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/run/descendants.h"
#include "cli/run/signals.h"
#include "cli/session/interrupt.h"

/* The signals that latchkey passes to COMMAND. */
static const struct passed_signal {
  int number;
  const char *name;
  bool ends_wait; /* ends a run that waits for the lock */
} passed_signals[] = {
    {SIGINT, "INT", true},      {SIGTERM, "TERM", true},
    {SIGHUP, "HUP", true},      {SIGQUIT, "QUIT", true},
    {SIGUSR1, "USR1", true},    {SIGUSR2, "USR2", true},
    {SIGWINCH, "WINCH", false}, {SIGCONT, "CONT", false},
    {SIGTSTP, "TSTP", false},
};
enum { NPASSED = sizeof passed_signals / sizeof passed_signals[0] };

int cli_signals_open(cli_signals *s)
{
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t wanted;

  sigemptyset(&action.sa_mask);
  /* If SIGCHLD was ignored when latchkey was started, the end of children would
     not be reported. */
  sigaction(SIGCHLD, &action, NULL);
  s->sigpipe_ignored = cli_signal_is_ignored(SIGPIPE);
  s->sigxfsz_ignored = cli_signal_is_ignored(SIGXFSZ);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
  sigaction(SIGXFSZ, &action, NULL);
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  for (int i = 0; i < NPASSED; i++)
    if (!cli_signal_is_ignored(passed_signals[i].number))
      sigaddset(&wanted, passed_signals[i].number);
  if (sigprocmask(SIG_BLOCK, &wanted, &s->mask_before) != 0)
    return errno;
  s->opened = true;
  return cli_signal_queue_open(&s->queue, &wanted);
}

bool cli_signals_next(const cli_signals *s, cli_signal *out)
{
  siginfo_t info;

  if (!cli_signal_queue_take(&s->queue, &info))
    return false;
  out->number = info.si_signo;
  /* Above 0: sent by the kernel, for a key of the terminal. */
  out->from_terminal = info.si_code > 0;
  return true;
}

bool cli_signal_may_end_command(int number)
{
  return number == SIGTERM || number == SIGINT || number == SIGHUP ||
         number == SIGQUIT;
}

bool cli_signal_ends_wait(int number)
{
  for (int i = 0; i < NPASSED; i++)
    if (passed_signals[i].number == number)
      return passed_signals[i].ends_wait;
  return false;
}

bool cli_signal_ends_loops(int number)
{
  return number == SIGINT || number == SIGQUIT;
}

const char *cli_signal_name(int number)
{
  for (int i = 0; i < NPASSED; i++)
    if (passed_signals[i].number == number)
      return passed_signals[i].name;
  return number == SIGKILL ? "KILL" : "a signal";
}

void cli_signals_restore(const cli_signals *s)
{
  struct sigaction action = {.sa_handler = SIG_DFL};

  sigemptyset(&action.sa_mask);
  if (!s->sigpipe_ignored)
    sigaction(SIGPIPE, &action, NULL);
  if (!s->sigxfsz_ignored)
    sigaction(SIGXFSZ, &action, NULL);
  sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
}

/* The kernel asks less, namely whether any process of the group has a parent in
   another group of the session: with --foreground COMMAND has one, the
   supervisor. */
bool cli_signals_have_shell(void)
{
  pid_t parent = getppid();

  while (parent > 0 && getpgid(parent) == getpgrp())
    if (cli_proc_state(parent, &parent) == '\0')
      return true; /* not known: /proc is missing or hidden */
  return parent > 0 && getsid(parent) == getsid(0);
}

bool cli_signals_stop_self(void)
{
  sigset_t stop, pending;

  if (!cli_signals_have_shell())
    return false;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  kill(getpid(), SIGTSTP);               /* discards a pending SIGCONT */
  sigprocmask(SIG_UNBLOCK, &stop, NULL); /* the process stops here */
  sigprocmask(SIG_BLOCK, &stop, NULL);
  sigemptyset(&pending);
  sigpending(&pending);
  return cli_signal_is_ignored(SIGCONT) || sigismember(&pending, SIGCONT) == 1;
}

void cli_signals_die_of(int number)
{
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t set;

  if (getpid() == 1) /* the kernel would discard the signal */
    return;
  /* Prevents a core dump. A limit by RLIMIT_CORE would not do if core_pattern
     is a program. */
  prctl(PR_SET_DUMPABLE, 0);
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
  sigemptyset(&set);
  sigaddset(&set, number);
  raise(number); /* the signal is blocked, so it stays pending */
  sigprocmask(SIG_UNBLOCK, &set, NULL); /* the process dies here */
}
