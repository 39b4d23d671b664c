/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include "cli/run/supervisor_protocol.h"

bool cli_supervisor_socket_send(int fd, const void *message, size_t size)
{
  ssize_t n;

  do
    n = send(fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  bool no_room = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK ||
                           errno == ENOBUFS || errno == ENOMEM);

  /* After any other error the receiver has ended, and gets no more messages. */
  return !no_room;
}

static uint64_t signal_bit(int number)
{
  return (uint64_t)1 << number;
}

cli_order cli_order_signal(int number)
{
  return (cli_order){.what = CLI_ORDER_SIGNAL, .signals = signal_bit(number)};
}

/* CONT discards an earlier TSTP, and TSTP an earlier CONT, as in the kernel. */
static void merge_signals(uint64_t *into, uint64_t more)
{
  if ((more & signal_bit(SIGCONT)) != 0)
    *into &= ~signal_bit(SIGTSTP);
  if ((more & signal_bit(SIGTSTP)) != 0)
    *into &= ~signal_bit(SIGCONT);
  *into |= more;
}

void cli_order_merge(cli_order *into, const cli_order *more)
{
  into->what |= more->what;
  merge_signals(&into->signals, more->signals);
  if ((more->what & (CLI_ORDER_START | CLI_ORDER_LEASE)) != 0) {
    into->lease_deadline = more->lease_deadline;
    into->margin_ms = more->margin_ms;
  }
  if ((more->what & CLI_ORDER_START) != 0)
    into->max_hold_ms = more->max_hold_ms;
}

void cli_supervisor_report_merge(cli_supervisor_report *into,
                                 const cli_supervisor_report *more)
{
  const unsigned stop_bit = 1u << CLI_ACTION_STOP;
  const unsigned cont_bit = 1u << CLI_ACTION_CONT;

  into->what |= more->what;
  /* The receiver takes a STOP to be before a CONT. So an earlier CONT is
     dropped when a STOP follows it. */
  if ((more->action_bits & stop_bit) != 0)
    into->action_bits &= ~cont_bit;
  into->action_bits |= more->action_bits;
  if ((more->what & CLI_REPORT_STARTED) != 0)
    into->child = more->child;
  if ((more->what & (CLI_REPORT_NOT_EXECUTED | CLI_REPORT_NOT_STARTED)) != 0)
    into->error = more->error;
  if ((more->what & CLI_REPORT_STOPPED) != 0)
    into->signal = more->signal;
  if ((more->what & CLI_REPORT_ENDED) != 0)
    into->status = more->status;
  if ((more->what & CLI_REPORT_REFUSED) != 0) {
    into->refused = more->refused;
    into->refused_signal = more->refused_signal;
    into->refused_error = more->refused_error;
  }
}
