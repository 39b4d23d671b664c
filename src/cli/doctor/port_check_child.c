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

static void send_port_result(port_checker *checker, cli_port_stage stage,
                             const char *text, size_t len)
{
  cli_port_result *result = &checker->result;

  result->stage = stage;
  result->len = len < sizeof result->text ? len : sizeof result->text;
  if (len > 0)
    memcpy(result->text, text, result->len);
  if (write(checker->fd, result, sizeof *result) != sizeof *result)
    _exit(1);
}

static void send_port_error(port_checker *checker, cli_port_stage stage,
                            const char *text)
{
  send_port_result(checker, stage, text, strlen(text));
}

static void send_port_stage(port_checker *checker, cli_port_stage stage)
{
  send_port_result(checker, stage, NULL, 0);
}

/* Stores the numeric address in the result. */
static void format_address(port_checker *checker, const struct addrinfo *a)
{
  char host[64];
  char port[8];

  if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  snprintf(checker->result.address, sizeof checker->result.address,
           strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static const lk_transport_type *transport_of(const lk_tls_config *tls)
{
  return tls == NULL ? lk_transport_tcp() : lk_transport_tls();
}

static lk_endpoint endpoint_at(const port_checker *checker,
                               const struct addrinfo *a,
                               const lk_tls_config *tls)
{
  return (lk_endpoint){.address = a->ai_addr,
                       .address_len = a->ai_addrlen,
                       .host = checker->host,
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
static bool speaks_plain(const port_checker *checker, const struct addrinfo *a,
                         int64_t until)
{
  char text[sizeof checker->result.text];
  const lk_tls_config *plain = NULL;
  lk_endpoint to = endpoint_at(checker, a, plain);
  cli_four_letter_reply reply = {.state = CLI_FOUR_LETTER_NOT_ZOOKEEPER};
  cli_blocking_connection connection;
  ssize_t len = 0;

  if (cli_blocking_connection_init(&connection, lk_transport_tcp()) &&
      cli_blocking_connect(&connection, &to, until) == CLI_CONNECTION_READY &&
      cli_blocking_connection_send_word(&connection, cli_four_letter_words[0],
                                        until))
    len =
        cli_blocking_connection_receive(&connection, until, text, sizeof text);
  if (len > 0)
    cli_four_letter_reply_read(&reply, lk_bytes_of(text, (size_t)len));
  cli_blocking_connection_free(&connection);
  return reply.state != CLI_FOUR_LETTER_NOT_ZOOKEEPER;
}

/* Whether the version of TLS was agreed. Then the port speaks TLS even if the
   handshake failed: the server may require a client certificate. */
static bool has_tls_version(const lk_transport *t)
{
  lk_tls_connection found;

  return lk_tls_inspect(t, &found, sizeof found) == 0 &&
         found.version[0] != '\0';
}

static bool speaks_tls(const port_checker *checker, const struct addrinfo *a,
                       int64_t until)
{
  const lk_tls_config any = {.size = sizeof any, .any_certificate = true};
  lk_endpoint to = endpoint_at(checker, a, &any);
  cli_blocking_connection connection;
  bool is_tls = false;

  if (lk_transport_tls() == NULL)
    return false;
  if (cli_blocking_connection_init(&connection, lk_transport_tls()))
    is_tls =
        cli_blocking_connect(&connection, &to, until) == CLI_CONNECTION_READY ||
        has_tls_version(connection.transport);
  cli_blocking_connection_free(&connection);
  return is_tls;
}

/* Checks whether the port speaks the transport that is not selected, and stores
   that in the result. */
static bool check_other_transport(port_checker *checker,
                                  const struct addrinfo *a)
{
  int64_t until = half_of_time_left(checker->until);

  checker->result.wrong_transport = checker->tls == NULL
                                        ? speaks_tls(checker, a, until)
                                        : speaks_plain(checker, a, until);
  return checker->result.wrong_transport;
}

/* ---- connecting ---------------------------------------------------------- */

static void record_tls_connection(port_checker *checker)
{
  checker->result.has_connection =
      checker->tls != NULL &&
      lk_tls_inspect(checker->connection.transport, &checker->result.connection,
                     sizeof checker->result.connection) == 0;
}

/* Sends why TLS failed. If the port does not speak TLS, checks whether it is a
   plain port of ZooKeeper, and sends the result again. The first message
   reaches the parent even if the time is over before that. */
static void send_tls_failure(port_checker *checker, const struct addrinfo *a)
{
  const lk_transport *t = checker->connection.transport;
  const char *mark = "TLS: ";
  const char *why =
      strncmp(t->why, mark, strlen(mark)) == 0 ? t->why + strlen(mark) : t->why;

  record_tls_connection(checker);
  checker->result.cause = t->cause;
  send_port_error(checker, CLI_PORT_TLS_FAILED, why);
  if (t->cause == LK_TLS_NOT_TLS && check_other_transport(checker, a))
    send_port_error(checker, CLI_PORT_TLS_FAILED, why);
}

/* Called when TCP is connected and the TLS handshake takes long. Checks whether
   the port speaks plain TCP; if not, continues the handshake. */
static cli_connection_result wait_for_tls(port_checker *checker,
                                          const struct addrinfo *a)
{
  send_port_stage(checker, CLI_PORT_TLS_HANDSHAKE);
  if (!check_other_transport(checker, a))
    return cli_blocking_connect_continue(&checker->connection, checker->until);
  /* Sent again, with `wrong_transport`. */
  send_port_stage(checker, CLI_PORT_TLS_HANDSHAKE);
  return CLI_CONNECTION_LATE;
}

/* Takes the place of an errno: the failure was sent to the parent. */
enum { ERROR_WAS_SENT = 0 };

/* If TLS has failed, sends the failure. Returns the errno of another failure,
   which is not sent yet, or ERROR_WAS_SENT. */
static int handle_connect_failure(port_checker *checker,
                                  const struct addrinfo *a)
{
  const lk_transport *t = checker->connection.transport;

  if (t->err != LK_ERR_TLS)
    return t->sys_errno != 0 ? t->sys_errno : EIO;
  send_tls_failure(checker, a);
  return ERROR_WAS_SENT;
}

/* Connects to one address. With TLS, first waits only as long as
   first_transport_deadline() says. On failure returns false, and `*error` gets
   an errno, or ERROR_WAS_SENT if TLS has failed or takes too long. */
static bool connect_address(port_checker *checker, const struct addrinfo *a,
                            int64_t until, int *error)
{
  lk_endpoint to = endpoint_at(checker, a, checker->tls);
  cli_blocking_connection *connection = &checker->connection;
  int64_t first_until =
      checker->tls == NULL ? until : first_transport_deadline(until);

  format_address(checker, a);
  send_port_stage(checker, CLI_PORT_CONNECTING);
  cli_connection_result outcome =
      cli_blocking_connect(connection, &to, first_until);

  *error = ERROR_WAS_SENT;
  /* While TCP is not connected, the other transport could not be tried. */
  if (outcome == CLI_CONNECTION_LATE &&
      !cli_blocking_connection_has_tcp(connection))
    outcome = cli_blocking_connect_continue(connection, until);
  if (outcome == CLI_CONNECTION_LATE &&
      cli_blocking_connection_has_tcp(connection))
    outcome = wait_for_tls(checker, a);
  else if (outcome == CLI_CONNECTION_LATE)
    *error = ETIMEDOUT;
  if (outcome == CLI_CONNECTION_FAILED)
    *error = handle_connect_failure(checker, a);
  if (outcome != CLI_CONNECTION_READY)
    cli_blocking_connection_close(connection);
  return outcome == CLI_CONNECTION_READY;
}

/* Tries the addresses in order. Each one gets an equal share of the remaining
   time. Returns the connected one, or NULL after the failure was sent. */
static const struct addrinfo *connect_any_address(port_checker *checker,
                                                  const struct addrinfo *list)
{
  int64_t remaining_addresses = 0;
  int error = ERROR_WAS_SENT;

  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
    remaining_addresses++;
  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
    int64_t now = cli_boottime_ms();
    int64_t share = (checker->until - now) / remaining_addresses;

    if (connect_address(checker, a, now + share, &error))
      return a;
    if (error == ERROR_WAS_SENT)
      return NULL;
    remaining_addresses--;
  }
  send_port_error(checker, CLI_PORT_NOT_CONNECTED, strerror(error));
  return NULL;
}

/* ---- four-letter words --------------------------------------------------- */

/* Sends a word and waits for the reply. If none comes, checks whether the port
   speaks TLS. Returns the length of the reply; 0: the server closed the
   connection; -1: nothing was received. */
static ssize_t request_four_letter_word(port_checker *checker,
                                        const struct addrinfo *a,
                                        const char *word, char *text,
                                        size_t size)
{
  ssize_t len;

  /* A failed send is ignored: bytes that the server sent before it closed the
     connection can still be received. */
  (void)cli_blocking_connection_send_word(&checker->connection, word,
                                          checker->until);
  len = cli_blocking_connection_receive(
      &checker->connection, first_transport_deadline(checker->until), text,
      size);
  if (len < 0) {
    send_port_stage(checker, CLI_PORT_SILENT);
    if (checker->tls != NULL || !check_other_transport(checker, a))
      len = cli_blocking_connection_receive(&checker->connection,
                                            checker->until, text, size);
  }
  return len;
}

static bool is_foreign_reply(const char *text, size_t len)
{
  cli_four_letter_reply reply;

  cli_four_letter_reply_read(&reply, lk_bytes_of(text, len));
  return reply.state == CLI_FOUR_LETTER_NOT_ZOOKEEPER;
}

/* Sends the reply to one word to the parent; `len` is the result of
   request_four_letter_word(). Returns whether to try another word: the server
   has disabled this one. */
static bool send_word_reply(port_checker *checker, const struct addrinfo *a,
                            const char *text, ssize_t len)
{
  bool tls_failed = checker->connection.flow == LK_FLOW_FAILED &&
                    checker->connection.transport->err == LK_ERR_TLS;
  bool hung_up = len == 0;
  bool foreign = len > 0 && is_foreign_reply(text, (size_t)len);

  /* TLS 1.3 refuses a client certificate after the handshake. */
  if (len <= 0 && tls_failed) {
    send_tls_failure(checker, a);
    return false;
  }
  if (checker->tls == NULL && !checker->result.wrong_transport &&
      (hung_up || foreign))
    check_other_transport(checker, a);
  if (len > 0)
    send_port_result(checker, CLI_PORT_REPLIED, text, (size_t)len);
  else if (checker->result.stage != CLI_PORT_REPLIED)
    send_port_stage(checker, hung_up ? CLI_PORT_HUNG_UP : CLI_PORT_SILENT);
  return len > 0 && cli_four_letter_is_disabled(lk_bytes_of(text, (size_t)len));
}

/* Sends one word after the other until the server executes one. Each word needs
   a connection of its own; the first one is already open. */
static void try_four_letter_words(port_checker *checker,
                                  const struct addrinfo *a)
{
  lk_endpoint to = endpoint_at(checker, a, checker->tls);
  char text[sizeof checker->result.text];

  for (const char *const *word = cli_four_letter_words; *word != NULL; word++) {
    ssize_t len =
        request_four_letter_word(checker, a, *word, text, sizeof text);
    bool disabled = send_word_reply(checker, a, text, len);
    bool is_last_word = word[1] == NULL;

    cli_blocking_connection_close(&checker->connection);
    if (!disabled || is_last_word ||
        cli_blocking_connect(&checker->connection, &to, checker->until) !=
            CLI_CONNECTION_READY)
      return;
  }
}

static void check_port(port_checker *checker)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  int gai_error = getaddrinfo(checker->host, checker->port, &hints, &list);

  if (gai_error != 0) {
    send_port_error(checker, CLI_PORT_NOT_RESOLVED,
                    gai_error == EAI_SYSTEM ? strerror(errno)
                                            : gai_strerror(gai_error));
    return;
  }
  if (!cli_blocking_connection_init(&checker->connection,
                                    transport_of(checker->tls))) {
    send_port_error(checker, CLI_PORT_NOT_CONNECTED, strerror(ENOMEM));
    return;
  }
  const struct addrinfo *a = connect_any_address(checker, list);

  if (a != NULL) {
    record_tls_connection(checker);
    /* Holds if the parent ends the check before a reply comes. */
    send_port_stage(checker, CLI_PORT_SILENT);
    try_four_letter_words(checker, a);
  }
  cli_blocking_connection_free(&checker->connection);
  freeaddrinfo(list);
}

void cli_port_check_child(const char *host, uint16_t port,
                          const lk_tls_config *tls, int64_t until, int fd)
{
  port_checker checker = {.host = host, .until = until, .fd = fd, .tls = tls};

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  snprintf(checker.port, sizeof checker.port, "%u", (unsigned)port);
  check_port(&checker);
  _exit(0);
}
