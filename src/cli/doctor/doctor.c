/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "cli/doctor/access_check.h"
#include "cli/doctor/server_diagnosis.h"
#include "cli/options/verbs.h"
#include "cli/output/print.h"
#include "cli/session/session.h"

/* Number of round trips, of which the median is reported. */
enum { ROUND_TRIPS = 9 };

typedef struct checkup {
  const cli_options *options;
  cli_doctor_report findings;
  cli_clock_check clocks;
  int64_t timeout_ms; /* the granted session timeout; without a session the
                         requested one */
} checkup;

/* ---- the session --------------------------------------------------------- */

/* Reports why there is no session. */
static void report_no_session(checkup *c, const cli_session *session)
{
  bool auth = session->err == LK_ERR_AUTH_FAILED;
  cli_text said = {0};

  cli_doctor_report_begin(&c->findings, CLI_VERDICT_BROKEN,
                          auth ? "auth" : "session");
  cli_session_say_failure(session, &said);
  cli_doctor_report_end(&c->findings, &said, cli_session_advice(session));
}

static void report_session_timeout(checkup *c)
{
  int64_t wanted = c->options->session_timeout_ms;
  cli_text said = {0};
  cli_json *facts;

  if (wanted == c->timeout_ms)
    return;
  facts = cli_doctor_report_begin(&c->findings, CLI_VERDICT_NOTE, "timeout");
  cli_json_number(facts, "wanted_ms", wanted);
  cli_json_number(facts, "timeout_ms", c->timeout_ms);
  cli_text_printf(&said,
                  "the session timeout is %" PRId64 " ms, not the %" PRId64
                  " ms asked for",
                  c->timeout_ms, wanted);
  cli_doctor_report_end(
      &c->findings, &said,
      "minSessionTimeout and maxSessionTimeout in its zoo.cfg limit it");
}

static void report_session(checkup *c, const cli_session *session)
{
  uint64_t id = (uint64_t)lk_client_session(session->client).id;
  const char *server = lk_client_server(session->client);
  cli_text said = {0};
  cli_json *facts =
      cli_doctor_report_begin(&c->findings, CLI_VERDICT_OK, "session");

  c->timeout_ms = lk_client_timeout_ms(session->client);
  cli_json_text(facts, "server", lk_text(server));
  cli_json_hex(facts, "session", id);
  cli_json_number(facts, "timeout_ms", c->timeout_ms);
  cli_text_printf(&said, "0x%" PRIx64 " at %s, timeout %" PRId64 " ms", id,
                  server, c->timeout_ms);
  cli_doctor_report_end(&c->findings, &said, NULL);
  report_session_timeout(c);
}

static bool is_auth_error(int err)
{
  return err == LK_ERR_AUTH_FAILED || err == LK_ERR_AUTH_REQUIRED;
}

/* `err`: the error of the requests in this session. */
static void report_auth(checkup *c, const cli_session *session, int err)
{
  const char *name = c->options->auth_file;
  cli_text said = {0};

  if (is_auth_error(err)) {
    cli_doctor_report_begin(&c->findings, CLI_VERDICT_BROKEN, "auth");
    cli_text_puts(&said, lk_error_text(err));
    cli_doctor_report_end(&c->findings, &said,
                          name == NULL
                              ? "--auth-file or --cert gives an identity"
                              : "check the lines of --auth-file");
  } else if (name != NULL && err == 0) {
    cli_doctor_report_begin(&c->findings, CLI_VERDICT_OK, "auth");
    if (cli_auth_file_sasl(&session->auth_file) != NULL)
      cli_text_puts(&said, "SASL DIGEST-MD5 has succeeded on both sides; ");
    cli_text_printf(&said,
                    "the servers accept the identities of %s (with a wrong "
                    "password digest is another identity)",
                    name);
    cli_doctor_report_end(&c->findings, &said, NULL);
  }
}

/* ---- the round trip ------------------------------------------------------ */

static int64_t now_us(void)
{
  struct timespec t = {0, 0};

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void on_round_trip_stat(lk_client *c, int err, const lk_stat *stat,
                               void *arg)
{
  /* Any reply counts for the round trip; permissions are checked later. */
  bool replied = err == 0 || err == LK_ERR_NO_NODE || err == LK_ERR_NO_AUTH;

  (void)c;
  (void)stat;
  cli_command_complete(arg, replied ? 0 : err);
}

static int compare_durations(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;

  if (x == y)
    return 0;
  return x < y ? -1 : 1;
}

/* Measures ROUND_TRIPS round trips. `*median_us` is valid if the error is 0. */
static int measure_round_trips(cli_command *command, int64_t *median_us)
{
  int64_t took_us[ROUND_TRIPS] = {0};
  int err = 0;

  for (int i = 0; i < ROUND_TRIPS && err == 0; i++) {
    lk_call call = cli_command_repeatable_call(command);
    int64_t began_us = now_us();

    err = lk_exists(command->session.client, "/", &call, on_round_trip_stat,
                    command);
    err = cli_command_wait(command, err);
    took_us[i] = now_us() - began_us;
  }
  qsort(took_us, ROUND_TRIPS, sizeof *took_us, compare_durations);
  *median_us = took_us[ROUND_TRIPS / 2];
  return err;
}

static void report_round_trip(checkup *c, cli_command *command, int err,
                              int64_t median_us)
{
  const char *server = lk_client_server(command->session.client);
  cli_text said = {0};
  cli_json *facts = cli_doctor_report_begin(
      &c->findings, err == 0 ? CLI_VERDICT_OK : CLI_VERDICT_BROKEN,
      "round-trip");

  cli_json_text(facts, "server", lk_text(server));
  if (err == 0) {
    cli_json_number(facts, "median_us", median_us);
    cli_text_printf(&said, "%.3f ms, the median of %d reads at %s",
                    (double)median_us / 1000, ROUND_TRIPS, server);
  } else {
    cli_text_printf(&said, "a read at %s failed: %s", server,
                    lk_error_text(err));
  }
  cli_doctor_report_end(&c->findings, &said,
                        err == 0 ? NULL : "look at the network and the server");
}

/* Examines an established session: its timeout, authentication, round trip and
   permissions. */
static void check_session(checkup *c, cli_command *command)
{
  int64_t median_us;

  report_session(c, &command->session);
  int err = measure_round_trips(command, &median_us);

  report_auth(c, &command->session, err);
  if (!is_auth_error(err))
    report_round_trip(c, command, err, median_us);
  if (err == 0)
    cli_access_check(command, &c->findings);
}

static void connect_and_check(checkup *c, const char *path)
{
  cli_text complaint = {0};
  cli_command command;

  if (!cli_command_begin(&command, c->options, "doctor", path, &complaint)) {
    /* With --auth-file, its lines are the likely cause. */
    cli_doctor_report_begin(&c->findings, CLI_VERDICT_BROKEN,
                            c->options->auth_file != NULL ? "auth" : "session");
    cli_doctor_report_end(&c->findings, &complaint, NULL);
    return;
  }
  cli_clock_check_start(&c->clocks, command.session.loop);
  cli_session_run(&command.session, &command.session.decided);
  if (command.session.err == 0)
    check_session(c, &command);
  else
    report_no_session(c, &command.session);
  cli_session_close(&command.session);
  cli_clock_check_stop(&c->clocks);
  cli_command_free(&command);
}

/* ---- the clocks ---------------------------------------------------------- */

static cli_verdict diagnose_clocks(const checkup *c, int64_t paused_ms,
                                   int64_t step_ms)
{
  /* A process that does not run for so long is close to losing its session. */
  int64_t dangerous_pause_ms = c->timeout_ms / 3;

  if (paused_ms > dangerous_pause_ms)
    return CLI_VERDICT_BROKEN;
  return paused_ms > 0 || step_ms != 0 ? CLI_VERDICT_NOTE : CLI_VERDICT_OK;
}

static void report_clocks(checkup *c)
{
  const char *advice = NULL;
  cli_text said = {0};

  cli_clock_check_sample(&c->clocks, cli_clock_read());
  int64_t paused_ms = cli_clock_check_paused_ms(&c->clocks);
  int64_t step_ms = cli_clock_check_step_ms(&c->clocks);
  cli_verdict verdict = diagnose_clocks(c, paused_ms, step_ms);
  cli_json *facts = cli_doctor_report_begin(&c->findings, verdict, "clocks");

  cli_json_number(facts, "took_ms", cli_clock_check_took_ms(&c->clocks));
  cli_json_number(facts, "paused_ms", paused_ms);
  cli_json_number(facts, "set_ms", step_ms);
  if (step_ms != 0) {
    cli_text_printf(&said, "the wall clock was set by %" PRId64 " ms", step_ms);
    advice = "leases do not depend on it; the ages that status shows do";
  }
  if (paused_ms > 0) {
    cli_text_printf(&said, "%sthis process did not run for %" PRId64 " ms",
                    step_ms != 0 ? "; " : "", paused_ms);
    advice = "reduce the load of this machine, or use a longer session timeout "
             "(-T): a process that does not run for so long loses its locks";
  }
  if (verdict == CLI_VERDICT_OK)
    cli_text_printf(&said,
                    "no interruption in the %" PRId64 " ms of this examination",
                    cli_clock_check_took_ms(&c->clocks));
  cli_doctor_report_end(&c->findings, &said, advice);
}

static int fail_doctor(const cli_options *o, int err)
{
  cli_text line = {0};

  cli_session_say_client_error(o, err, &line);
  return cli_fail_text(CLI_EXIT_FAILED, "doctor", &line);
}

static int run_checks(checkup *c, cli_server_checks *s, const char *path)
{
  int err = cli_server_checks_run(s, &c->clocks);

  if (err != 0)
    return fail_doctor(c->options, err);
  cli_server_diagnosis_report(s, &c->findings);
  if (cli_server_checks_count_serving(s) > 0)
    connect_and_check(c, path);
  report_clocks(c);
  return cli_doctor_report_close(&c->findings);
}

int cli_doctor(const cli_options *o, char **operands)
{
  const char *path = operands[0] == NULL ? "/" : operands[0];
  checkup c = {.options = o, .timeout_ms = o->session_timeout_ms};
  cli_text wrong = {0};
  cli_server_checks s;

  if (lk_path_check(path) != 0)
    return cli_fail_request("doctor", path, LK_ERR_BAD_PATH);
  if (!cli_tls_check(&o->tls, o->hosts, &wrong))
    return cli_fail_text(CLI_EXIT_FAILED, NULL, &wrong);
  cli_tls_warn(&o->tls, o->hosts, o->quiet);
  c.findings.as_json = o->json;
  cli_clock_check_begin(&c.clocks, cli_clock_read());
  int err = cli_server_checks_open(&s, o);
  int code = err != 0 ? fail_doctor(o, err) : run_checks(&c, &s, path);

  cli_server_checks_free(&s);
  return code;
}
