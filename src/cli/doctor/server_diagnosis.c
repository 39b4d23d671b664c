/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "cli/doctor/server_diagnosis.h"
#include "cli/doctor/tls_diagnosis.h"
#include "cli/output/error_report.h"

/* The meaning of a server's state. */
typedef struct diagnosis {
  cli_verdict verdict;
  const char *layer;
  const char *advice;
} diagnosis;

static const char advice_without_quorum[] =
    "start a majority of the ensemble's servers; their logs say what they wait "
    "for";

/* ---- one server ---------------------------------------------------------- */

static void add_version(cli_text *said, const cli_four_letter_reply *reply)
{
  cli_text_printf(said, "%s ", reply->software);
  cli_text_add(said, reply->version.at, reply->version.len);
}

static bool is_zookeeper(const cli_four_letter_reply *reply)
{
  return reply->software != NULL && strcmp(reply->software, "ZooKeeper") == 0;
}

/* Returns the diagnosis of a server that gave a session. */
static diagnosis diagnose_serving(const cli_server_check *check, cli_text *said)
{
  if (check->reply.version.at == NULL) {
    cli_text_puts(said, "serves, but its version and mode are unknown: "
                        "four-letter words are disabled");
    return (diagnosis){CLI_VERDICT_NOTE, "words",
                       "only this report needs them"};
  }
  add_version(said, &check->reply);
  if (check->reply.mode.len > 0)
    cli_text_puts(said, ", ");
  cli_text_add(said, check->reply.mode.at, check->reply.mode.len);
  cli_text_printf(said, ", session timeout %" PRId64 " ms", check->timeout_ms);
  if (!is_zookeeper(&check->reply))
    return (diagnosis){
        CLI_VERDICT_NOTE, "software",
        "latchkey is tested with ZooKeeper alone; here neither fencing tokens "
        "nor the lease of a lock can be relied on"};
  return (diagnosis){CLI_VERDICT_OK, "server", NULL};
}

/* Returns the diagnosis of a server that gave no session, and whose reply does
   not say why. */
static diagnosis diagnose_without_session(const cli_server_check *check,
                                          cli_text *said)
{
  cli_text_puts(said, "gives no session: ");
  if (check->failure.len > 0)
    cli_text_add(said, check->failure.at, check->failure.len);
  else
    cli_text_puts(said, "no reply in time");
  if (check->failure_err == LK_ERR_RESOLVE)
    return (diagnosis){CLI_VERDICT_BROKEN, "name",
                       "see /etc/resolv.conf and the name servers in it"};
  if (check->reply.state == CLI_FOUR_LETTER_SERVING)
    return (diagnosis){CLI_VERDICT_BROKEN, "session",
                       "its log says why; it may have reached maxClientCnxns"};
  return (diagnosis){
      CLI_VERDICT_BROKEN, "session",
      "check that this is the client port of a ZooKeeper server; it may have "
      "reached maxClientCnxns or have no quorum: its log says which"};
}

/* Returns the diagnosis of a server that has replied or has closed the
   connection. */
static diagnosis diagnose_reply(const cli_server_check *check, cli_text *said)
{
  if (check->reply.state == CLI_FOUR_LETTER_NO_QUORUM) {
    cli_text_puts(said,
                  "is running, but serves no sessions: there is no quorum");
    return (diagnosis){CLI_VERDICT_BROKEN, "quorum", advice_without_quorum};
  }
  if (check->reply.state == CLI_FOUR_LETTER_READ_ONLY) {
    cli_text_puts(said, "is in read-only mode: it has no quorum");
    return (diagnosis){CLI_VERDICT_BROKEN, "read-only", advice_without_quorum};
  }
  if (is_zookeeper(&check->reply) &&
      cli_version_is_before(check->reply.version,
                            lk_text(CLI_OLDEST_VERSION))) {
    add_version(said, &check->reply);
    cli_text_puts(said, " is too old");
    return (diagnosis){CLI_VERDICT_BROKEN, "version",
                       CLI_OLDEST_VERSION " or newer is needed"};
  }
  return check->timeout_ms > 0 ? diagnose_serving(check, said)
                               : diagnose_without_session(check, said);
}

/* Returns the diagnosis of a server that has neither replied nor closed the
   connection when the port check ended. */
static diagnosis diagnose_port(const cli_port_result *result, cli_text *said)
{
  switch (result->stage) {
  case CLI_PORT_RESOLVING:
    cli_text_puts(said, "the name lookup does not complete");
    return (diagnosis){
        CLI_VERDICT_BROKEN, "name",
        "the name servers of this machine do not reply: see /etc/resolv.conf"};
  case CLI_PORT_NOT_RESOLVED:
    cli_text_puts(said, "the name cannot be resolved: ");
    cli_text_add(said, result->text, result->len);
    return (diagnosis){CLI_VERDICT_BROKEN, "name",
                       "correct the name, or add it"};
  case CLI_PORT_CONNECTING:
    cli_text_printf(said, "no reply from %s", result->address);
    return (diagnosis){
        CLI_VERDICT_BROKEN, "port",
        "check that the machine is up and that no firewall drops packets"};
  case CLI_PORT_NOT_CONNECTED:
    cli_text_printf(said, "cannot connect to %s: ", result->address);
    cli_text_add(said, result->text, result->len);
    return (diagnosis){CLI_VERDICT_BROKEN, "port",
                       "start ZooKeeper there, or correct the port"};
  case CLI_PORT_TLS_HANDSHAKE:
  case CLI_PORT_TLS_FAILED:
    return (diagnosis){CLI_VERDICT_BROKEN, "tls",
                       cli_tls_diagnose_failure(result, said)};
  case CLI_PORT_HUNG_UP:
  case CLI_PORT_REPLIED: /* see diagnose_reply() */
  case CLI_PORT_SILENT: break;
  }
  cli_text_printf(said, "%s accepts connections, but does not reply",
                  result->address);
  return (diagnosis){
      CLI_VERDICT_BROKEN, "answer",
      "the server hangs, this is not its client port (its quorum and election "
      "ports do not reply either), or a proxy in front of it cannot reach it"};
}

static diagnosis diagnose_server(const cli_server_check *check, cli_text *said)
{
  const cli_port_result *result = &check->port_check.result;

  cli_text_printf(said, "%s: ", check->name);
  if (result->wrong_transport)
    return (diagnosis){CLI_VERDICT_BROKEN, "tls",
                       cli_tls_diagnose_failure(result, said)};
  if (result->stage == CLI_PORT_HUNG_UP || result->stage == CLI_PORT_REPLIED)
    return diagnose_reply(check, said);
  return diagnose_port(result, said);
}

static void report_server(const cli_server_check *check,
                          cli_doctor_report *report)
{
  const cli_port_result *result = &check->port_check.result;
  cli_text said = {0};
  bool tls_works =
      result->has_connection && result->stage != CLI_PORT_TLS_FAILED;

  if (tls_works)
    cli_tls_report_server(check->name, result,
                          check->checks->options->tls.insecure, report);
  diagnosis found = diagnose_server(check, &said);
  cli_json *facts = cli_doctor_report_begin(report, found.verdict, found.layer);

  cli_json_text(facts, "server", lk_text(check->name));
  if (result->address[0] != '\0')
    cli_json_text(facts, "address", lk_text(result->address));
  if (!tls_works)
    cli_tls_add_facts(result, facts);
  if (check->reply.software != NULL)
    cli_json_text(facts, "software", lk_text(check->reply.software));
  if (check->reply.version.at != NULL)
    cli_json_text(facts, "version", check->reply.version);
  if (check->reply.mode.at != NULL)
    cli_json_text(facts, "mode", check->reply.mode);
  if (check->timeout_ms > 0)
    cli_json_number(facts, "timeout_ms", check->timeout_ms);
  cli_doctor_report_end(report, &said, found.advice);
}

/* The client does not wait for the family, but other programs do. */
static void report_silent_family(const cli_server_check *check,
                                 cli_doctor_report *report)
{
  const cli_port_result *result = &check->port_check.result;
  cli_text said = {0};

  if (!result->no_ipv4_answer && !result->no_ipv6_answer)
    return;
  cli_json *facts = cli_doctor_report_begin(report, CLI_VERDICT_NOTE, "name");

  cli_json_text(facts, "server", lk_text(check->name));
  cli_json_number(facts, "lookup_ms", result->lookup_ms);
  cli_text_printf(&said,
                  "%s: no name server answers queries for %s addresses; the "
                  "lookup took %" PRId64 " ms",
                  check->name, result->no_ipv6_answer ? "IPv6" : "IPv4",
                  result->lookup_ms);
  cli_doctor_report_end(report, &said,
                        "a firewall or the name server drops them: other "
                        "programs wait 5 to 10 s");
}

/* ---- all servers --------------------------------------------------------- */

static bool has_mode(const cli_server_check *check, const char *mode)
{
  return check->reply.mode.len == strlen(mode) &&
         memcmp(check->reply.mode.at, mode, check->reply.mode.len) == 0;
}

/* Whether the modes show two ensembles. An ensemble has only one leader, and no
   standalone server. */
static bool are_two_ensembles(const cli_server_check *a,
                              const cli_server_check *b)
{
  bool modes_known = a->reply.mode.at != NULL && b->reply.mode.at != NULL;
  bool same_server =
      strcmp(a->port_check.result.address, b->port_check.result.address) == 0;

  if (!modes_known || same_server)
    return false;
  return has_mode(a, "standalone") || has_mode(b, "standalone") ||
         (has_mode(a, "leader") && has_mode(b, "leader"));
}

static void report_two_ensembles(const cli_server_check *a,
                                 const cli_server_check *b,
                                 cli_doctor_report *report)
{
  cli_text said = {0};
  cli_json *facts =
      cli_doctor_report_begin(report, CLI_VERDICT_BROKEN, "ensemble");

  cli_json_open(facts, "servers", '[');
  cli_json_text(facts, NULL, lk_text(a->name));
  cli_json_text(facts, NULL, lk_text(b->name));
  cli_json_close(facts, ']');
  cli_text_printf(
      &said,
      "%s (%.*s) and %s (%.*s) are not servers of one ensemble: ", a->name,
      (int)a->reply.mode.len, (const char *)a->reply.mode.at, b->name,
      (int)b->reply.mode.len, (const char *)b->reply.mode.at);
  cli_text_puts(&said, "a lock of one is unknown to the other");
  cli_doctor_report_end(report, &said,
                        "-z must name the servers of one ensemble only");
}

/* All servers get the same client certificate, so it is reported once. */
static void report_own_certificate(const cli_server_checks *s,
                                   cli_doctor_report *report)
{
  for (size_t i = 0; i < s->count; i++)
    if (s->items[i].port_check.result.has_connection) {
      cli_tls_report_own_certificate(
          &s->items[i].port_check.result.connection.own, report);
      return;
    }
}

void cli_server_diagnosis_report(const cli_server_checks *s,
                                 cli_doctor_report *report)
{
  for (size_t i = 0; i < s->count; i++) {
    report_silent_family(&s->items[i], report);
    report_server(&s->items[i], report);
  }
  report_own_certificate(s, report);
  for (size_t i = 0; i < s->count; i++)
    for (size_t k = i + 1; k < s->count; k++)
      if (are_two_ensembles(&s->items[i], &s->items[k])) {
        report_two_ensembles(&s->items[i], &s->items[k], report);
        return;
      }
}
