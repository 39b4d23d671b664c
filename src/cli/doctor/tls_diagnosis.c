/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <time.h>

#include "cli/doctor/tls_diagnosis.h"
#include "cli/session/connection_failures.h"

/* A certificate that expires in fewer days gets CLI_VERDICT_NOTE. */
enum { FEW_DAYS = 30 };

enum { SECONDS_PER_DAY = 86400 };

/* ---- a certificate ------------------------------------------------------- */

int64_t cli_tls_days_left(const lk_tls_certificate *c, int64_t now_s)
{
  int64_t left = c->not_after_s - now_s;
  int64_t overdue = -left;

  if (left >= 0)
    return left / SECONDS_PER_DAY;
  /* Rounded up: -1 as soon as the certificate has expired. */
  return -((overdue + SECONDS_PER_DAY - 1) / SECONDS_PER_DAY);
}

static bool is_not_yet_valid(const lk_tls_certificate *c, int64_t now_s)
{
  return c->not_before_s > now_s;
}

/* Appends the date in UTC, as in 2026-11-21. */
static void add_date(cli_text *out, int64_t time_s)
{
  cli_text text = {0};
  size_t date_len = strlen("2026-11-21");

  cli_text_time(&text, time_s * 1000);
  cli_text_add(out, text.at, text.len < date_len ? text.len : date_len);
  cli_text_free(&text);
}

static void add_validity(cli_text *out, const lk_tls_certificate *c,
                         int64_t now_s)
{
  int64_t days = cli_tls_days_left(c, now_s);

  if (is_not_yet_valid(c, now_s)) {
    cli_text_puts(out, "not valid before ");
    add_date(out, c->not_before_s);
    return;
  }
  if (days < 0)
    cli_text_puts(out, "expired on ");
  else
    cli_text_printf(out, "expires in %" PRId64 " days, on ", days);
  add_date(out, c->not_after_s);
}

/* Adds nothing if the certificate is not known. */
static void add_certificate(cli_json *facts, const char *name,
                            const lk_tls_certificate *c)
{
  if (c->subject[0] == '\0' && c->issuer[0] == '\0')
    return;
  cli_json_open(facts, name, '{');
  cli_json_text(facts, "subject", lk_text(c->subject));
  cli_json_text(facts, "issuer", lk_text(c->issuer));
  cli_json_text(facts, "names", lk_text(c->names));
  cli_json_time(facts, "not_before", c->not_before_s * 1000);
  cli_json_time(facts, "not_after", c->not_after_s * 1000);
  cli_json_number(facts, "days_left", cli_tls_days_left(c, time(NULL)));
  cli_json_close(facts, '}');
}

void cli_tls_add_facts(const cli_port_result *result, cli_json *facts)
{
  if (!result->has_connection)
    return;
  if (result->connection.version[0] != '\0') {
    cli_json_text(facts, "tls_version", lk_text(result->connection.version));
    cli_json_text(facts, "cipher", lk_text(result->connection.cipher));
  }
  add_certificate(facts, "certificate", &result->connection.server);
}

/* ---- a failed connection ------------------------------------------------- */

/* Appends the part of the server's certificate that explains the failure: its
   issuer or its dates. */
static void add_certificate_detail(const cli_port_result *result,
                                   cli_text *said)
{
  const lk_tls_certificate *c = &result->connection.server;

  if (!result->has_connection || c->issuer[0] == '\0')
    return;
  if (result->cause == LK_TLS_ISSUER || result->cause == LK_TLS_CRL ||
      result->cause == LK_TLS_REVOKED)
    cli_text_printf(said, " (it is issued by %s)", c->issuer);
  if (result->cause == LK_TLS_EXPIRED ||
      result->cause == LK_TLS_NOT_YET_VALID) {
    cli_text_puts(said, " (");
    add_validity(said, c, time(NULL));
    cli_text_puts(said, ")");
  }
}

const char *cli_tls_diagnose_failure(const cli_port_result *result,
                                     cli_text *said)
{
  bool tls_was_selected = result->stage == CLI_PORT_TLS_FAILED ||
                          result->stage == CLI_PORT_TLS_HANDSHAKE;

  if (result->wrong_transport && !tls_was_selected) {
    cli_text_printf(said, "%s expects TLS, which is not selected",
                    result->address);
    return "select it with tls:// in front of the servers or --tls; --cacert "
           "names the CA";
  }
  if (result->wrong_transport) {
    cli_text_printf(said, "%s does not use TLS: it is a plain TCP port",
                    result->address);
    return cli_connection_failures_tls_advice(LK_TLS_NOT_TLS);
  }
  if (result->stage == CLI_PORT_TLS_HANDSHAKE) {
    cli_text_printf(
        said, "%s accepts connections, but does not complete a TLS handshake",
        result->address);
    return "the server hangs, or this is not its secureClientPort";
  }
  cli_text_add(said, result->text, result->len);
  add_certificate_detail(result, said);
  return cli_connection_failures_tls_advice(result->cause);
}

/* ---- a working connection ------------------------------------------------ */

static cli_verdict diagnose_validity(const lk_tls_certificate *c, int64_t now_s)
{
  int64_t days = cli_tls_days_left(c, now_s);
  bool expired = days < 0;

  if (is_not_yet_valid(c, now_s) || expired)
    return CLI_VERDICT_BROKEN;
  return days < FEW_DAYS ? CLI_VERDICT_NOTE : CLI_VERDICT_OK;
}

/* NULL if the certificate is valid for long enough. */
static const char *advice_for_validity(const lk_tls_certificate *c,
                                       int64_t now_s)
{
  if (is_not_yet_valid(c, now_s))
    return cli_connection_failures_tls_advice(LK_TLS_NOT_YET_VALID);
  return diagnose_validity(c, now_s) == CLI_VERDICT_OK
             ? NULL
             : "renew the certificate";
}

void cli_tls_report_server(const char *name, const cli_port_result *result,
                           bool insecure, cli_doctor_report *report)
{
  const lk_tls_certificate *c = &result->connection.server;
  int64_t now_s = time(NULL);
  /* Invalid dates break only a connection that verifies them. This connection
     works, so they are a note. */
  bool dates_are_bad = diagnose_validity(c, now_s) != CLI_VERDICT_OK;
  cli_text said = {0};
  cli_json *facts = cli_doctor_report_begin(
      report, insecure || dates_are_bad ? CLI_VERDICT_NOTE : CLI_VERDICT_OK,
      "tls");

  cli_json_text(facts, "server", lk_text(name));
  cli_json_text(facts, "address", lk_text(result->address));
  cli_json_bool(facts, "verified", !insecure);
  cli_tls_add_facts(result, facts);
  cli_text_printf(&said, "%s: %s, %s, certificate %sfor %s, issued by %s, ",
                  name, result->connection.version, result->connection.cipher,
                  insecure ? "not verified, " : "",
                  c->names[0] == '\0' ? c->subject : c->names, c->issuer);
  add_validity(&said, c, now_s);
  cli_doctor_report_end(
      report, &said,
      insecure ? "--insecure is for tests: an attacker on the network can read "
                 "and change everything"
               : advice_for_validity(c, now_s));
}

void cli_tls_report_own_certificate(const lk_tls_certificate *own,
                                    cli_doctor_report *report)
{
  int64_t now_s = time(NULL);
  cli_verdict verdict = diagnose_validity(own, now_s);
  cli_text said = {0};

  if (own->issuer[0] == '\0') /* the client sends none */
    return;
  add_certificate(cli_doctor_report_begin(report, verdict, "certificate"),
                  "certificate", own);
  cli_text_printf(&said, "of the client: %s, issued by %s, ", own->subject,
                  own->issuer);
  add_validity(&said, own, now_s);
  cli_doctor_report_end(report, &said, advice_for_validity(own, now_s));
}
