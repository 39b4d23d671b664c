/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <signal.h>

#include "cli/session/interrupt.h"

static const int numbers[CLI_INTERRUPTS] = {SIGINT, SIGTERM, SIGHUP};

static void on_interrupt(struct ev_loop *loop, ev_signal *watcher, int events)
{
  cli_interrupt *i = watcher->data;

  (void)loop;
  (void)events;
  *i->done = true;
}

static bool is_ignored(int number)
{
  struct sigaction now;

  return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void cli_interrupt_open(cli_interrupt *i, struct ev_loop *loop, bool *done)
{
  i->done = done;
  i->loop = loop;
  for (int k = 0; k < CLI_INTERRUPTS; k++) {
    ev_signal_init(&i->watchers[k], on_interrupt, numbers[k]);
    i->watchers[k].data = i;
    if (!is_ignored(numbers[k]))
      ev_signal_start(loop, &i->watchers[k]);
  }
}

void cli_interrupt_close(cli_interrupt *i)
{
  for (int k = 0; k < CLI_INTERRUPTS; k++)
    ev_signal_stop(i->loop, &i->watchers[k]);
}
