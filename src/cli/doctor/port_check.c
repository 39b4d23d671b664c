/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/doctor/port_check.h"
#include "cli/system_clocks.h"

/* The indices of the descriptors of pipe(). */
enum { READ_END, WRITE_END };

static void on_port_result(lk_loop_io *io, int events)
{
  cli_port_check *check = LK_OWNER(io, cli_port_check, io);
  cli_port_result result;
  ssize_t n = read(io->fd, &result, sizeof result);

  (void)events;
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (n == (ssize_t)sizeof result) {
    check->result = result;
    return;
  }
  /* End-of-file: the child has ended. */
  cli_port_check_end(check);
  check->on_end(check, check->arg);
}

int cli_port_check_begin(cli_port_check *check, const char *host, uint16_t port,
                         const lk_tls_config *tls, int64_t patience_ms,
                         lk_loop *loop)
{
  int64_t until = cli_boottime_ms() + patience_ms;
  int fds[2];

  if (pipe(fds) != 0)
    return errno;
  check->pid = fork();
  if (check->pid == 0) {
    close(fds[READ_END]);
    cli_port_check_child(host, port, tls, until, fds[WRITE_END]);
    /* Not reached: the child exits. */
  }
  int error = check->pid < 0 ? errno : 0;

  close(fds[WRITE_END]);
  if (error != 0) {
    close(fds[READ_END]);
    return error;
  }
  /* A loop may call a watcher although its descriptor is not ready. */
  (void)fcntl(fds[READ_END], F_SETFL, O_NONBLOCK);
  check->loop = loop;
  check->io.on_events = on_port_result;
  check->io.fd = fds[READ_END];
  lk__loop_set_io(loop, &check->io, LK_LOOP_READ);
  return 0;
}

void cli_port_check_end(cli_port_check *check)
{
  if (check->loop == NULL)
    return;
  lk__loop_stop_io(check->loop, &check->io);
  close(check->io.fd);
  kill(check->pid, SIGKILL);
  while (waitpid(check->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  check->loop = NULL;
}
