/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/list.h"
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

/* Removes the pending signals. Returns whether there was one. */
static bool take_pending_signals(const cli_interrupt *interrupt)
{
  struct signalfd_siginfo info;
  bool any = false;

  while (read(interrupt->io.fd, &info, sizeof info) == (ssize_t)sizeof info)
    any = true;
  return any;
}

static void on_interrupt(lk_loop_io *io, int events)
{
  cli_interrupt *interrupt = LK_OWNER(io, cli_interrupt, io);

  (void)events;
  if (take_pending_signals(interrupt))
    *interrupt->done = true;
}

void cli_interrupt_open(cli_interrupt *interrupt, lk_loop *loop, bool *done)
{
  const int new_signalfd = -1;
  sigset_t interrupts;

  *interrupt = (cli_interrupt){.done = done, .loop = loop};
  interrupt->io.on_events = on_interrupt;
  fill_interrupt_set(&interrupts);
  interrupt->io.fd =
      signalfd(new_signalfd, &interrupts, SFD_CLOEXEC | SFD_NONBLOCK);
  if (interrupt->io.fd < 0)
    return;
  sigprocmask(SIG_BLOCK, &interrupts, &interrupt->mask_before);
  lk__loop_set_io(loop, &interrupt->io, LK_LOOP_READ);
  lk__loop_hold(loop); /* the signals do not keep it running */
}

void cli_interrupt_close(cli_interrupt *interrupt)
{
  if (interrupt->io.fd < 0)
    return;
  lk__loop_release(interrupt->loop);
  lk__loop_stop_io(interrupt->loop, &interrupt->io);
  /* A pending signal would kill latchkey when it is unblocked below. */
  (void)take_pending_signals(interrupt);
  close(interrupt->io.fd);
  sigprocmask(SIG_SETMASK, &interrupt->mask_before, NULL);
}
