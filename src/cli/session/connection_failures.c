/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include <latchkey/client.h>

#include "cli/session/connection_failures.h"

/* So many servers are listed by name; the others are only counted. */
enum { MAX_LISTED = 5 };

/* ---- the list ------------------------------------------------------------ */

static void add_failure_entry(const char *host, uint16_t port, void *arg)
{
  cli_connection_failures *failures = arg;
  bool ipv6 = strchr(host, ':') != NULL;
  cli_text name = {0};
  void *items =
      realloc(failures->items, (failures->count + 1) * sizeof *failures->items);

  if (items == NULL) /* messages do without this server */
    return;
  failures->items = items;
  cli_text_printf(&name, ipv6 ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
  if (cli_text_end(&name) == NULL)
    cli_text_free(&name);
  else
    failures->items[failures->count++] =
        (cli_connection_failure){.server = name.at};
}

void cli_connection_failures_init(cli_connection_failures *failures,
                                  const cli_tls_options *tls, const char *hosts)
{
  memset(failures, 0, sizeof *failures);
  cli_tls_hosts_each(tls, hosts, add_failure_entry, failures);
}

void cli_connection_failures_record(cli_connection_failures *failures, int err,
                                    lk_tls_cause cause, const char *line)
{
  if (err == 0) /* the line does not report a failure */
    return;
  for (size_t i = 0; i < failures->count; i++) {
    cli_connection_failure *one = &failures->items[i];
    size_t len = strlen(one->server);

    if (strncmp(line, one->server, len) != 0 ||
        strncmp(line + len, ": ", 2) != 0)
      continue;
    free(one->why);
    one->why = strdup(line + len + strlen(": "));
    one->err = err;
    one->cause = cause;
  }
}

bool cli_connection_failures_any(const cli_connection_failures *failures)
{
  for (size_t i = 0; i < failures->count; i++)
    if (failures->items[i].why != NULL)
      return true;
  return false;
}

void cli_connection_failures_free(cli_connection_failures *failures)
{
  for (size_t i = 0; i < failures->count; i++) {
    free(failures->items[i].server);
    free(failures->items[i].why);
  }
  free(failures->items);
  memset(failures, 0, sizeof *failures);
}

/* ---- output -------------------------------------------------------------- */

/* For a text like "resolve HOST: reason", where `step` is "resolve ", returns
   the reason, and `object` gets HOST. Returns NULL if `why` does not begin with
   `step`. */
static const char *reason_of_step(const char *why, const char *step,
                                  lk_bytes *object)
{
  size_t len = strlen(step);
  const char *colon = strncmp(why, step, len) == 0 ? strstr(why, ": ") : NULL;

  if (colon == NULL)
    return NULL;
  *object = lk_bytes_of(why + len, (size_t)(colon - why) - len);
  return colon + strlen(": ");
}

static bool is_same_text(lk_bytes b, const char *text)
{
  return b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

/* Appends "host:port: reason", or "host:port at address: reason" if the address
   is not the text of the server. */
static void say_failed_attempt(const cli_connection_failure *one, cli_text *out)
{
  lk_bytes host, address;
  const char *resolve_reason = reason_of_step(one->why, "resolve ", &host);
  const char *connect_reason =
      reason_of_step(one->why, "connect to ", &address);

  cli_text_add_printable(out, lk_text(one->server));
  if (resolve_reason != NULL) {
    cli_text_puts(out, ": the name cannot be resolved: ");
    cli_text_add_printable(out, lk_text(resolve_reason));
    return;
  }
  if (connect_reason != NULL && !is_same_text(address, one->server)) {
    cli_text_puts(out, " at ");
    cli_text_add_printable(out, address);
  }
  cli_text_puts(out, ": ");
  cli_text_add_printable(
      out, lk_text(connect_reason != NULL ? connect_reason : one->why));
}

/* `current` and `seconds` are as in cli_connection_failures_list(). */
static void say_attempt(const cli_connection_failure *one, const char *current,
                        double seconds, cli_text *out)
{
  if (one->why != NULL) {
    say_failed_attempt(one, out);
    return;
  }
  cli_text_add_printable(out, lk_text(one->server));
  if (strcmp(one->server, current) == 0)
    cli_text_printf(out, ": no reply within %g s", seconds);
  else
    cli_text_puts(out, ": not tried yet");
}

void cli_connection_failures_list(const cli_connection_failures *failures,
                                  const char *current, double seconds,
                                  cli_text *out)
{
  for (size_t i = 0; i < failures->count && i < MAX_LISTED; i++) {
    cli_text_puts(out, i == 0 ? "" : ", ");
    say_attempt(&failures->items[i], current, seconds, out);
  }
  if (failures->count > MAX_LISTED)
    cli_text_printf(out, ", and %zu more", failures->count - MAX_LISTED);
}

void cli_connection_failures_say(const cli_connection_failures *failures,
                                 const char *current, double seconds,
                                 cli_text *out)
{
  cli_text_puts(out, failures->count > 1 ? "cannot connect to any server: "
                                         : "cannot connect to ");
  cli_connection_failures_list(failures, current, seconds, out);
}

/* ---- cause and advice ---------------------------------------------------- */

/* The number of servers for each cause of a failure. */
typedef struct cause_counts {
  size_t refused;       /* the connection was refused */
  size_t no_descriptor; /* this process has too many open files */
  size_t unreached;     /* the host did not reply */
  size_t unresolved;    /* the name was not resolved */
  size_t hung_up;       /* the server closed the connection, as ZooKeeper does
                           without a quorum */
  size_t not_zookeeper; /* the port is not ZooKeeper's, or speaks TLS */
  size_t silent;        /* still connecting, or connected without a reply */
  size_t silent_names;  /* the same, for servers with a name, which is perhaps
                           not resolved yet */
  size_t auth_refused;  /* the server refused the credentials */
  const cli_connection_failure *first_tls; /* first failure of TLS, or NULL */
} cause_counts;

/* Whether "host:port" has a name for its host, and no address. */
static bool has_a_name(const char *server)
{
  return server[0] != '[' && server[strspn(server, "0123456789.")] != ':';
}

static void count_cause(cause_counts *c, const cli_connection_failure *one)
{
  switch (one->err) {
  case LK_ERR_CONNECT:
    if (strstr(one->why, "refused") != NULL)
      c->refused++;
    else if (strstr(one->why, strerror(EMFILE)) != NULL)
      c->no_descriptor++;
    else
      c->unreached++;
    break;
  case LK_ERR_RESOLVE: c->unresolved++; break;
  case LK_ERR_REFUSED: c->hung_up++; break;
  case LK_ERR_PROTOCOL:
  case LK_ERR_MARSHALLING:
  case LK_ERR_TOO_BIG: c->not_zookeeper++; break;
  case LK_ERR_AUTH_FAILED: c->auth_refused++; break;
  case LK_ERR_TLS:
    if (c->first_tls == NULL)
      c->first_tls = one;
    break;
  default:
    c->silent++;
    if (has_a_name(one->server))
      c->silent_names++;
    break;
  }
}

const char *cli_connection_failures_tls_advice(lk_tls_cause cause)
{
  switch (cause) {
  case LK_TLS_NAME:
    return "name the server in -z as its certificate does, or use --tls-name";
  case LK_TLS_ISSUER:
    return "--cacert must name the CA that signed it (and the server must send "
           "the intermediate certificates)";
  case LK_TLS_EXPIRED:
    return "renew the certificate, or correct the clock of this machine";
  case LK_TLS_NOT_YET_VALID: return "check the clock of this machine";
  case LK_TLS_REVOKED:
    return "its CA has revoked it: the server needs another certificate";
  case LK_TLS_CRL:
    return "the file of --crl needs the current list of each CA in the chain";
  case LK_TLS_WANTS_CERTIFICATE: return "--cert and --key give one";
  case LK_TLS_REFUSES_CERTIFICATE:
    return "its trust store must hold the CA of --cert, which must be current "
           "and for clients";
  case LK_TLS_NOT_TLS:
    return "connect to its secureClientPort, or do not select TLS";
  case LK_TLS_FILES: return "correct the file";
  case LK_TLS_OTHER: break;
  }
  return "the server's log says more";
}

const char *
cli_connection_failures_advice(const cli_connection_failures *failures)
{
  cause_counts c = {0};

  for (size_t i = 0; i < failures->count; i++)
    count_cause(&c, &failures->items[i]);
  if (c.no_descriptor > 0)
    return "raise the limit of open files (ulimit -n)";
  if (c.auth_refused > 0)
    return "check the lines of --auth-file";
  if (c.first_tls != NULL)
    return cli_connection_failures_tls_advice(c.first_tls->cause);
  if (c.hung_up > 0 && c.hung_up < failures->count)
    return "probably there is no quorum: start a majority of the servers";
  if (c.hung_up > 0)
    return "it has no quorum, or has reached maxClientCnxns, or expects TLS "
           "(--tls)";
  if (c.not_zookeeper > 0)
    return "that is not the client port of a ZooKeeper server, or it expects "
           "TLS (--tls)";
  if (c.unresolved == failures->count)
    return "correct the name in -z, or the name service";
  if (c.refused == failures->count)
    return "nothing listens there: start ZooKeeper, or correct -z";
  if (c.unreached + c.silent == failures->count && c.silent_names > 0)
    return "the name service does not reply, the host is down, the server "
           "hangs, or a firewall drops packets";
  if (c.unreached + c.silent == failures->count)
    return "the host is down, the server hangs, or a firewall drops packets";
  return "start the servers, or correct -z";
}
