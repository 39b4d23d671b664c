/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/supervisor_handle.h"
#include "cli/run/supervisor_main.h"

/* Copies the words: set_process_title() overwrites their memory. Returns NULL
   if out of memory; the process exits then, so nothing is freed. */
static char **copy_arguments(char **words)
{
  size_t count = 0;

  while (words[count] != NULL)
    count++;
  char **copy = calloc(count + 1, sizeof *copy);

  for (size_t i = 0; copy != NULL && i < count; i++)
    if ((copy[i] = strdup(words[i])) == NULL)
      return NULL;
  return copy;
}

static void set_process_title(cli_process_title title)
{
  static const char name[] = "lk-supervisor";

  prctl(PR_SET_NAME, name);
  if (title.len > 0)
    memset(title.at, 0, title.len);
  for (size_t i = 0; i < title.len && name[i] != '\0'; i++)
    title.at[i] = name[i];
}

/* Runs in the child after fork(). */
static _Noreturn void run_supervisor(const cli_job *job, cli_on_lost on_lost,
                                     cli_process_title title, int fd)
{
  cli_job job_copy = *job;
  sigset_t all;

  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  setpgid(0, 0); /* leads a process group of its own */
  job_copy.argv = copy_arguments(job->argv);
  if (job_copy.argv == NULL)
    _exit(1);
  set_process_title(title);
  cli_supervisor_main(&job_copy, on_lost, fd);
}

/* The indices of the sockets of socketpair(). */
enum { LATCHKEY_END, SUPERVISOR_END };

int cli_supervisor_fork(cli_supervisor *supervisor, const cli_job *job,
                        cli_on_lost on_lost, cli_process_title title)
{
  int ends[2];

  *supervisor = (cli_supervisor){.fd = -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno;
  supervisor->pid = fork();
  if (supervisor->pid == 0) {
    close(ends[LATCHKEY_END]);
    run_supervisor(job, on_lost, title, ends[SUPERVISOR_END]);
  }
  int error = errno;

  close(ends[SUPERVISOR_END]);
  if (supervisor->pid < 0) {
    supervisor->pid = 0;
    close(ends[LATCHKEY_END]);
    return error;
  }
  supervisor->fd = ends[LATCHKEY_END];
  return 0;
}

/* Continues the supervisor, which another process may have stopped. */
static void continue_supervisor(const cli_supervisor *supervisor)
{
  kill(supervisor->pid, SIGCONT);
}

int cli_supervisor_start_command(const cli_supervisor *supervisor,
                                 const cli_order *order, lk_bytes environment)
{
  cli_order order_copy = *order;
  /* An iovec has no const pointer; sendmsg() does not write through it. */
  union {
    const void *constant;
    void *writable;
  } text = {environment.at};
  struct iovec parts[2] = {{&order_copy, sizeof order_copy},
                           {text.writable, environment.len}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

  if (supervisor->fd < 0)
    return EPIPE;
  continue_supervisor(supervisor);
  return sendmsg(supervisor->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0
             ? errno
             : 0;
}

void cli_supervisor_send_order(cli_supervisor *supervisor,
                               const cli_order *order)
{
  if (supervisor->fd < 0)
    return;
  cli_order_merge(&supervisor->waiting, order);
  continue_supervisor(supervisor);
  cli_supervisor_flush(supervisor);
}

void cli_supervisor_flush(cli_supervisor *supervisor)
{
  if (supervisor->waiting.what != 0 &&
      cli_supervisor_socket_send(supervisor->fd, &supervisor->waiting,
                                 sizeof supervisor->waiting))
    supervisor->waiting = (cli_order){0};
}

static cli_received receive_report(const cli_supervisor *supervisor,
                                   cli_supervisor_report *out)
{
  ssize_t n;

  do
    n = recv(supervisor->fd, out, sizeof *out, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n == (ssize_t)sizeof *out)
    return CLI_RECEIVED_REPORT;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return CLI_RECEIVED_NOTHING;
  return CLI_RECEIVED_END;
}

/* Whether the supervisor has died. It stays a zombie (WNOWAIT), so that its
   process id is not reused. */
static bool is_supervisor_dead(const cli_supervisor *supervisor)
{
  siginfo_t info = {.si_pid = 0};

  return supervisor->pid > 0 &&
         waitid(P_PID, (id_t)supervisor->pid, &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

/* The death of the supervisor does not always close the socket: a child that
   was stopped before exec() keeps the socket open. So the process is checked,
   too. */
cli_received cli_supervisor_receive(const cli_supervisor *supervisor,
                                    cli_supervisor_report *out)
{
  cli_received received = receive_report(supervisor, out);

  if (received != CLI_RECEIVED_NOTHING || !is_supervisor_dead(supervisor))
    return received;
  /* The supervisor can have sent a report between the two checks. */
  received = receive_report(supervisor, out);
  return received == CLI_RECEIVED_NOTHING ? CLI_RECEIVED_END : received;
}

void cli_supervisor_continue(const cli_supervisor *supervisor)
{
  siginfo_t info = {.si_pid = 0};

  if (supervisor->pid > 0 &&
      waitid(P_PID, (id_t)supervisor->pid, &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid != 0)
    continue_supervisor(supervisor);
}

/* If nothing comes from the supervisor for this time, it may be stopped. */
enum { CONTINUE_AFTER_MS = 100 };

/* Reads all reports until the supervisor exits. If the socket were closed with
   unread reports, the supervisor would see ECONNRESET instead of
   CLI_ORDER_EXIT. */
static void drain_until_exit(cli_supervisor *supervisor)
{
  cli_order exit_order = {.what = CLI_ORDER_EXIT};
  cli_supervisor_report unread;
  cli_received received = CLI_RECEIVED_NOTHING;

  cli_supervisor_send_order(supervisor, &exit_order);
  while (received != CLI_RECEIVED_END) {
    bool order_waits = supervisor->waiting.what != 0;
    struct pollfd ready = {supervisor->fd,
                           order_waits ? POLLIN | POLLOUT : POLLIN, 0};
    bool timed_out = poll(&ready, 1, CONTINUE_AFTER_MS) == 0;

    if (timed_out)
      continue_supervisor(supervisor);
    cli_supervisor_flush(supervisor);
    received = cli_supervisor_receive(supervisor, &unread);
  }
  close(supervisor->fd);
  supervisor->fd = -1;
}

void cli_supervisor_close(cli_supervisor *supervisor)
{
  if (supervisor->fd >= 0)
    drain_until_exit(supervisor);
  while (supervisor->pid > 0 && waitpid(supervisor->pid, NULL, 0) < 0 &&
         errno == EINTR)
    ;
  supervisor->pid = 0;
}
