/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/run/service_manager.h"

/* An extension lasts EXTENSION_MS and is repeated after a third of that. READY
   is sent again after RETRY_MS if the manager's queue was full. */
enum { EXTENSION_MS = 30 * 1000, RETRY_MS = 100 };

/* A longer status is cut: systemd discards messages of more than 4,096 bytes.
 */
enum { MAX_STATUS_BYTES = 4000 };

/* ---- the socket ---------------------------------------------------------- */

/* Returns the length of the address, or 0 if `name` is no name of a socket. A
   name that begins with '@' is in the abstract namespace, where a NUL stands
   for the '@'. */
static socklen_t read_socket_name(const char *name, struct sockaddr_un *out)
{
  size_t len = strlen(name);

  if ((*name != '/' && *name != '@') || len >= sizeof out->sun_path)
    return 0;
  *out = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(out->sun_path, name, len);
  if (*name == '@')
    out->sun_path[0] = '\0';
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

int cli_service_manager_open(cli_service_manager *m)
{
  const char *name = getenv("NOTIFY_SOCKET");
  struct sockaddr_un address;

  *m = (cli_service_manager){.fd = -1};
  if (name == NULL || *name == '\0')
    return 0;
  socklen_t len = read_socket_name(name, &address);

  if (len == 0)
    return EAFNOSUPPORT;
  m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (m->fd < 0)
    return errno;
  if (connect(m->fd, (const struct sockaddr *)&address, len) == 0)
    return 0;
  int error = errno;

  cli_service_manager_close(m);
  return error;
}

void cli_service_manager_close(cli_service_manager *m)
{
  cli_service_manager_stop(m);
  if (m->fd >= 0)
    close(m->fd);
  m->fd = -1;
}

/* Returns whether the manager gets the message, or none will reach it. */
static bool send_message(const cli_service_manager *m, lk_bytes message)
{
  return send(m->fd, message.at, message.len, MSG_DONTWAIT | MSG_NOSIGNAL) >=
             0 ||
         (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

/* ---- messages ------------------------------------------------------------ */

static void extend_start_timeout(cli_service_manager *m)
{
  cli_text message = {0};

  cli_text_printf(&message, "EXTEND_TIMEOUT_USEC=%ld", EXTENSION_MS * 1000L);
  if (!message.failed)
    send_message(m, lk_bytes_of(message.at, message.len));
  cli_text_free(&message);
  lk__loop_set_timer(m->loop, &m->timer, EXTENSION_MS / 3);
}

static void tell_ready(cli_service_manager *m)
{
  m->told_ready = send_message(m, lk_text("READY=1"));
  if (!m->told_ready && m->loop != NULL)
    lk__loop_set_timer(m->loop, &m->timer, RETRY_MS);
}

static void on_manager_timer(lk_loop_timer *t)
{
  cli_service_manager *m = LK_OWNER(t, cli_service_manager, timer);

  if (m->is_ready)
    tell_ready(m);
  else
    extend_start_timeout(m);
}

void cli_service_manager_start_waiting(cli_service_manager *m, lk_loop *loop)
{
  if (m->fd < 0 || m->told_ready)
    return;
  m->loop = loop;
  m->timer.on_timer = on_manager_timer;
  on_manager_timer(&m->timer);
}

void cli_service_manager_ready(cli_service_manager *m)
{
  m->is_ready = true;
  if (m->fd < 0 || m->told_ready)
    return;
  lk__loop_stop_timer(m->loop, &m->timer);
  tell_ready(m);
}

void cli_service_manager_stop(cli_service_manager *m)
{
  if (m->loop != NULL)
    lk__loop_stop_timer(m->loop, &m->timer);
  m->loop = NULL;
}

/* The number of bytes of `text` that a status has room for, in whole
 * characters.
 */
static size_t status_length(const char *text)
{
  lk_bytes rest = lk_text(text);
  size_t len = 0;
  size_t next;

  while ((next = cli_utf8_char_len(rest)) > 0 &&
         len + next <= MAX_STATUS_BYTES) {
    len += next;
    rest = lk_bytes_of(text + len, rest.len - next);
  }
  return len;
}

void cli_service_manager_status(const cli_service_manager *m, const char *text)
{
  cli_text message = {0};

  if (m->fd < 0 || text == NULL)
    return;
  cli_text_puts(&message, "STATUS=");
  cli_text_add(&message, text, status_length(text));
  if (!message.failed)
    send_message(m, lk_bytes_of(message.at, message.len));
  cli_text_free(&message);
}
