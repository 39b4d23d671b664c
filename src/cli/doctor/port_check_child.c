/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor/blocking_connection.h"
#include "cli/doctor/four_letter_word.h"
#include "cli/doctor/port_check_child.h"
#include "cli/system_clocks.h"

_Static_assert(sizeof(cli_port_result) <= PIPE_BUF,
               "a result is written in one piece");

typedef struct port_checker {
  const char *host;
  char port[8];             /* decimal */
  int64_t until;            /* deadline of the check, on cli_boottime_ms() */
  int fd;                   /* the pipe to the parent */
  const lk_tls_config *tls; /* NULL: plain TCP */
  cli_blocking_connection connection;
  cli_port_result result;
} port_checker;

static void send_port_result(port_checker *d, cli_port_stage stage,
                             const char *text, size_t len)
{
  cli_port_result *n = &d->result;

  n->stage = stage;
  n->len = len < sizeof n->text ? len : sizeof n->text;
  if (len > 0)
    memcpy(n->text, text, n->len);
  if (write(d->fd, n, sizeof *n) != sizeof *n)
    _exit(1);
}

static void send_port_error(port_checker *d, cli_port_stage stage,
                            const char *text)
{
  send_port_result(d, stage, text, strlen(text));
}

/* Stores the numeric address in the result. */
static void format_address(port_checker *d, const struct addrinfo *a)
{
  char host[64];
  char port[8];

  if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  snprintf(d->result.address, sizeof d->result.address,
           strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static const lk_transport_type *transport_of(const lk_tls_config *tls)
{
  return tls == NULL ? lk_transport_tcp() : lk_transport_tls();
}

static lk_endpoint endpoint_at(const port_checker *d, const struct addrinfo *a,
                               const lk_tls_config *tls)
{
  return (lk_endpoint){.address = a->ai_addr,
                       .address_len = a->ai_addrlen,
                       .host = d->host,
                       .tls = tls};
}

/* After this time without a reply, the other transport is tried (TLS instead of
   plain TCP, or the reverse). The first connection stays open meanwhile. */
enum { OTHER_TRANSPORT_AFTER_MS = 2000 };

/* Returns the deadline that leaves half of the remaining time for another
   connection attempt. */
static int64_t half_of_time_left(int64_t until)
{
  int64_t now = cli_boottime_ms();

  return now + (until - now) / 2;
}

static int64_t first_transport_deadline(int64_t until)
{
  int64_t half = half_of_time_left(until);
  int64_t limit = cli_boottime_ms() + OTHER_TRANSPORT_AFTER_MS;

  return half < limit ? half : limit;
}

/* ---- the other transport ------------------------------------------------- */

/* Whether the port replies to a four-letter word by plain TCP. */
static bool speaks_plain(const port_checker *d, const struct addrinfo *a,
                         int64_t until)
{
  char text[sizeof d->result.text];
  lk_endpoint to = endpoint_at(d, a, NULL);
  cli_four_letter_reply word = {.kind = CLI_FOUR_LETTER_NOT_ZOOKEEPER};
  cli_blocking_connection connection;
  ssize_t len = 0;

  if (cli_blocking_connection_init(&connection, lk_transport_tcp()) &&
      cli_blocking_connect(&connection, &to, until) == CLI_CONNECTION_READY &&
      cli_blocking_connection_send_word(&connection, cli_four_letter_words[0],
                                        until))
    len =
        cli_blocking_connection_receive(&connection, until, text, sizeof text);
  if (len > 0)
    cli_four_letter_reply_read(&word, lk_bytes_of(text, (size_t)len));
  cli_blocking_connection_free(&connection);
  return word.kind != CLI_FOUR_LETTER_NOT_ZOOKEEPER;
}

/* Whether the port speaks TLS. A handshake that fails after the version of TLS
   was agreed shows that, too: the server may require a client certificate. */
static bool speaks_tls(const port_checker *d, const struct addrinfo *a,
                       int64_t until)
{
  const lk_tls_config any = {.size = sizeof any, .any_certificate = true};
  lk_endpoint to = endpoint_at(d, a, &any);
  lk_tls_connection found;
  cli_blocking_connection connection;
  bool is_tls = false;

  if (lk_transport_tls() == NULL)
    return false;
  if (cli_blocking_connection_init(&connection, lk_transport_tls()))
    is_tls =
        cli_blocking_connect(&connection, &to, until) == CLI_CONNECTION_READY ||
        (lk_tls_inspect(connection.transport, &found, sizeof found) == 0 &&
         found.version[0] != '\0');
  cli_blocking_connection_free(&connection);
  return is_tls;
}

/* Checks whether the port speaks the transport that is not selected, and stores
   that in the result. */
static bool check_other_transport(port_checker *d, const struct addrinfo *a)
{
  int64_t until = half_of_time_left(d->until);

  d->result.other =
      d->tls == NULL ? speaks_tls(d, a, until) : speaks_plain(d, a, until);
  return d->result.other;
}

/* ---- connecting ---------------------------------------------------------- */

static void record_tls_connection(port_checker *d)
{
  d->result.tls = d->tls != NULL &&
                  lk_tls_inspect(d->connection.transport, &d->result.connection,
                                 sizeof d->result.connection) == 0;
}

/* Sends why TLS failed. If the port does not speak TLS, checks whether it is a
   plain port of ZooKeeper, and sends the result again. The first message
   reaches the parent even if the time is over before that. */
static void send_tls_failure(port_checker *d, const struct addrinfo *a)
{
  const lk_transport *t = d->connection.transport;
  const char *mark = "TLS: ";
  const char *why =
      strncmp(t->why, mark, strlen(mark)) == 0 ? t->why + strlen(mark) : t->why;

  record_tls_connection(d);
  d->result.cause = t->cause;
  send_port_error(d, CLI_PORT_TLS_FAILED, why);
  if (t->cause == LK_TLS_NOT_TLS && check_other_transport(d, a))
    send_port_error(d, CLI_PORT_TLS_FAILED, why);
}

/* Called when TCP is connected and the TLS handshake takes long. Checks whether
   the port speaks plain TCP; if not, continues the handshake. */
static cli_connection_result wait_for_tls(port_checker *d,
                                          const struct addrinfo *a)
{
  send_port_result(d, CLI_PORT_TLS_HANDSHAKE, NULL, 0);
  if (!check_other_transport(d, a))
    return cli_blocking_connect_continue(&d->connection, d->until);
  send_port_result(d, CLI_PORT_TLS_HANDSHAKE, NULL, 0);
  return CLI_CONNECTION_LATE;
}

/* Connects to one address. Returns false on failure: `*error` gets an errno, or
   0 if the failure was one of TLS, which has been sent. */
static bool connect_address(port_checker *d, const struct addrinfo *a,
                            int64_t until, int *error)
{
  lk_endpoint to = endpoint_at(d, a, d->tls);
  cli_connection_result outcome;

  format_address(d, a);
  send_port_result(d, CLI_PORT_CONNECTING, NULL, 0);
  outcome = cli_blocking_connect(
      &d->connection, &to,
      d->tls == NULL ? until : first_transport_deadline(until));
  *error = 0;
  if (outcome == CLI_CONNECTION_LATE &&
      !cli_blocking_connection_has_tcp(&d->connection))
    outcome = cli_blocking_connect_continue(&d->connection, until);
  if (outcome == CLI_CONNECTION_LATE &&
      cli_blocking_connection_has_tcp(&d->connection))
    outcome = wait_for_tls(d, a);
  else if (outcome == CLI_CONNECTION_LATE)
    *error = ETIMEDOUT;
  if (outcome == CLI_CONNECTION_FAILED &&
      d->connection.transport->err != LK_ERR_TLS)
    *error = d->connection.transport->sys_errno != 0
                 ? d->connection.transport->sys_errno
                 : EIO;
  else if (outcome == CLI_CONNECTION_FAILED)
    send_tls_failure(d, a);
  if (outcome != CLI_CONNECTION_READY)
    cli_blocking_connection_close(&d->connection);
  return outcome == CLI_CONNECTION_READY;
}

/* Tries the addresses in order. Each one gets an equal share of the remaining
   time. Returns the connected one, or NULL after the failure was sent. */
static const struct addrinfo *connect_any_address(port_checker *d,
                                                  const struct addrinfo *list)
{
  int64_t count = 0;
  int error = 0;

  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
    count++;
  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next, count--) {
    int64_t now = cli_boottime_ms();
    int64_t until = now + (d->until - now) / count;

    if (connect_address(d, a, until, &error))
      return a;
    if (error == 0)
      return NULL; /* the failure of TLS was sent, and is the result */
  }
  send_port_error(d, CLI_PORT_NOT_CONNECTED, strerror(error));
  return NULL;
}

/* ---- four-letter words --------------------------------------------------- */

/* Sends a word and waits for the reply. If none comes, checks whether the port
   speaks TLS. Returns the length of the reply; 0: the server closed the
   connection; -1: nothing was received. */
static ssize_t request_four_letter_word(port_checker *d,
                                        const struct addrinfo *a,
                                        const char *word, char *text,
                                        size_t size)
{
  ssize_t len;

  /* A failed send is ignored: what the server sent before it closed the
     connection can still be received. */
  (void)cli_blocking_connection_send_word(&d->connection, word, d->until);
  len = cli_blocking_connection_receive(
      &d->connection, first_transport_deadline(d->until), text, size);
  if (len < 0) {
    send_port_result(d, CLI_PORT_SILENT, NULL, 0);
    if (d->tls != NULL || !check_other_transport(d, a))
      len =
          cli_blocking_connection_receive(&d->connection, d->until, text, size);
  }
  return len;
}

static bool is_foreign_reply(const char *text, size_t len)
{
  cli_four_letter_reply reply;

  cli_four_letter_reply_read(&reply, lk_bytes_of(text, len));
  return reply.kind == CLI_FOUR_LETTER_NOT_ZOOKEEPER;
}

/* Sends the reply to one word to the parent. Returns whether to try another
   word: the server has disabled this one. */
static bool send_word_reply(port_checker *d, const struct addrinfo *a,
                            const char *text, ssize_t len)
{
  bool tls_failed = d->connection.flow == LK_FLOW_FAILED &&
                    d->connection.transport->err == LK_ERR_TLS;

  /* TLS 1.3 refuses a client certificate after the handshake. */
  if (len <= 0 && tls_failed) {
    send_tls_failure(d, a);
    return false;
  }
  if (d->tls == NULL && !d->result.other &&
      (len == 0 || (len > 0 && is_foreign_reply(text, (size_t)len))))
    check_other_transport(d, a);
  if (len > 0)
    send_port_result(d, CLI_PORT_REPLIED, text, (size_t)len);
  else if (d->result.stage != CLI_PORT_REPLIED)
    send_port_result(d, len < 0 ? CLI_PORT_SILENT : CLI_PORT_HUNG_UP, NULL, 0);
  return len > 0 && cli_four_letter_is_disabled(lk_bytes_of(text, (size_t)len));
}

/* Sends one word after the other until the server executes one. Each word needs
   a connection of its own; the first one is already open. */
static void try_four_letter_words(port_checker *d, const struct addrinfo *a)
{
  lk_endpoint to = endpoint_at(d, a, d->tls);
  char text[sizeof d->result.text];

  for (const char *const *word = cli_four_letter_words; *word != NULL; word++) {
    ssize_t len = request_four_letter_word(d, a, *word, text, sizeof text);
    bool more = send_word_reply(d, a, text, len);

    cli_blocking_connection_close(&d->connection);
    if (!more || word[1] == NULL ||
        cli_blocking_connect(&d->connection, &to, d->until) !=
            CLI_CONNECTION_READY)
      return;
  }
}

static void check_port(port_checker *d)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  int wrong = getaddrinfo(d->host, d->port, &hints, &list);

  if (wrong != 0) {
    send_port_error(d, CLI_PORT_NOT_RESOLVED,
                    wrong == EAI_SYSTEM ? strerror(errno)
                                        : gai_strerror(wrong));
    return;
  }
  if (!cli_blocking_connection_init(&d->connection, transport_of(d->tls))) {
    send_port_error(d, CLI_PORT_NOT_CONNECTED, strerror(ENOMEM));
    return;
  }
  const struct addrinfo *a = connect_any_address(d, list);

  if (a != NULL) {
    record_tls_connection(d);
    send_port_result(d, CLI_PORT_SILENT, NULL, 0);
    try_four_letter_words(d, a);
  }
  cli_blocking_connection_free(&d->connection);
  freeaddrinfo(list);
}

void cli_port_check_child(const char *host, uint16_t port,
                          const lk_tls_config *tls, int64_t until, int fd)
{
  port_checker d = {.host = host, .until = until, .fd = fd, .tls = tls};

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  snprintf(d.port, sizeof d.port, "%u", (unsigned)port);
  check_port(&d);
  _exit(0);
}
