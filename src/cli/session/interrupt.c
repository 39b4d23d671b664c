/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <unistd.h>

#include "base/list.h"
#include "cli/output/exit_code.h"
#include "cli/session/interrupt.h"

bool cli_signal_is_ignored(int number)
{
  struct sigaction now;

  return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* Stores INT, TERM and HUP, without those that are ignored. */
static void fill_interrupt_set(sigset_t *out)
{
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

  sigemptyset(out);
  for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
    if (!cli_signal_is_ignored(numbers[k]))
      sigaddset(out, numbers[k]);
}

static void exit_by_signal(int number)
{
  _exit(CLI_EXIT_SIGNAL + number);
}

void cli_interrupt_end_process_1(void)
{
  const struct sigaction action = {.sa_handler = exit_by_signal};
  sigset_t interrupts;

  if (getpid() != 1)
    return;
  fill_interrupt_set(&interrupts);
  for (int number = 1; number <= SIGTERM; number++)
    if (sigismember(&interrupts, number) == 1)
      sigaction(number, &action, NULL);
}

/* Removes the pending signals. Returns whether there was one. */
static bool take_pending_signals(cli_interrupt *interrupt)
{
  siginfo_t info;
  bool any = false;

  for (; cli_signal_queue_take(&interrupt->signals, &info); any = true)
    if (interrupt->number == 0)
      interrupt->number = info.si_signo;
  return any;
}

static void on_interrupt(cli_signal_watcher *w)
{
  cli_interrupt *interrupt = LK_OWNER(w, cli_interrupt, watcher);

  if (take_pending_signals(interrupt))
    *interrupt->done = true;
}

void cli_interrupt_open(cli_interrupt *interrupt, lk_loop *loop, bool *done)
{
  sigset_t interrupts;

  *interrupt = (cli_interrupt){.done = done, .loop = loop};
  interrupt->watcher.on_signals = on_interrupt;
  fill_interrupt_set(&interrupts);
  if (cli_signal_queue_open(&interrupt->signals, &interrupts) != 0)
    return;
  interrupt->open = true;
  sigprocmask(SIG_BLOCK, &interrupts, &interrupt->mask_before);
  cli_signal_watcher_start(&interrupt->watcher, loop, &interrupt->signals);
  lk__loop_ref(loop); /* the signals do not keep it running */
}

void cli_interrupt_close(cli_interrupt *interrupt)
{
  if (!interrupt->open)
    return;
  lk__loop_unref(interrupt->loop);
  cli_signal_watcher_stop(&interrupt->watcher);
  /* A pending signal would kill latchkey when it is unblocked below. */
  (void)take_pending_signals(interrupt);
  cli_signal_queue_close(&interrupt->signals);
  sigprocmask(SIG_SETMASK, &interrupt->mask_before, NULL);
}
