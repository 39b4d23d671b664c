/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/clock_check.h"
#include "cli/doctor/four_letter_word.h"
#include "cli/doctor/server_checks.h"
#include "cli/doctor/tls_diagnosis.h"
#include "cli/options/options.h"
#include "support/suite.h"

#include <stdlib.h>
#include <time.h>

/* ---- memory that runs out ------------------------------------------------ */

/* The linker redirects calls of malloc() to __wrap_malloc(). */

/* The number of allocations that succeed before one fails; -1: all succeed. */
static int allocations_left = -1;

static bool allocation_fails(void)
{
  return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
  return allocation_fails() ? NULL : __real_malloc(size);
}

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
  return allocation_fails() ? NULL : __real_realloc(at, size);
}

/* ---- certificates -------------------------------------------------------- */

#define RENEW "\"advice\":\"renew the certificate\""

START_TEST(days_of_a_certificate_are_whole_and_negative_once_it_has_expired)
{
  const int64_t now_s = 1700000000;
  static const struct {
    int64_t left_s, days;
  } rows[] = {{0, 0},   {86399, 0},   {86400, 1},  {30 * 86400, 30},
              {-1, -1}, {-86400, -1}, {-86401, -2}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const lk_tls_certificate c = {.not_after_s = now_s + rows[i].left_s};

    ck_assert_int_eq(cli_tls_days_left(&c, now_s), rows[i].days);
  }
}
END_TEST

/* Checks the verdict and the advice, or NULL, on the client's own certificate,
 * which is valid from `from_days` days from now until an hour after
 * `until_days` days from now. */
static void expect_verdict(int64_t from_days, int64_t until_days,
                           const char *verdict, const char *advice)
{
  int64_t now_s = time(NULL);
  cli_doctor_report report = {.as_json = true};
  lk_tls_certificate own = {.subject = "CN=a",
                            .issuer = "CN=ca",
                            .not_before_s = now_s + from_days * 86400,
                            .not_after_s = now_s + until_days * 86400 + 3600};

  cli_tls_report_own_certificate(&own, &report);
  ck_assert_msg(strstr(cli_text_end(&report.text), verdict) != NULL, "%s",
                report.text.at);
  ck_assert_msg(advice == NULL ? strstr(report.text.at, "\"advice\":\"") == NULL
                               : strstr(report.text.at, advice) != NULL,
                "%s", report.text.at);
  cli_text_free(&report.text);
}

START_TEST(certificate_is_reported_a_month_before_it_expires)
{
  cli_doctor_report none = {.as_json = true};
  const lk_tls_certificate no_certificate = {.subject = ""};

  expect_verdict(-9, 30, "\"verdict\":\"ok\"", NULL);
  expect_verdict(-9, 29, "\"verdict\":\"note\"", RENEW);
  expect_verdict(-9, 0, "\"verdict\":\"note\"", RENEW);
  expect_verdict(-9, -1, "\"verdict\":\"broken\"", RENEW);
  cli_tls_report_own_certificate(&no_certificate, &none);
  ck_assert_uint_eq(none.text.len, 0);
}
END_TEST

/* A renewal does not help: the machine's clock is late, or the certificate was
 * installed too early. */
START_TEST(advice_for_a_certificate_that_is_not_yet_valid_is_to_check_the_clock)
{
  const char *advice = "\"advice\":\"check the clock of this machine\"";

  expect_verdict(1, 90, "\"verdict\":\"broken\"", advice);
  expect_verdict(1, 9, "\"verdict\":\"broken\"", advice);
}
END_TEST

/* ---- replies to four-letter words ---------------------------------------- */

/* `version`, `mode`: what the reply contains, or NULL. */
static void expect_reply(const char *reply, cli_four_letter_state state,
                         const char *version, const char *mode)
{
  size_t len = strlen(reply);
  /* A block of the exact size, so that ASan reports a read behind it. */
  char *exact = malloc(len > 0 ? len : 1);
  cli_four_letter_reply parsed;

  memcpy(exact, reply, len);
  cli_four_letter_reply_read(&parsed, lk_bytes_of(exact, len));
  ck_assert_msg(parsed.state == state, "%s: %d", reply, (int)parsed.state);
  ck_assert_int_eq(parsed.version.at != NULL, version != NULL);
  ck_assert_int_eq(parsed.mode.at != NULL, mode != NULL);
  if (version != NULL)
    ck_assert(parsed.version.len == strlen(version) &&
              memcmp(parsed.version.at, version, parsed.version.len) == 0);
  if (mode != NULL)
    ck_assert(parsed.mode.len == strlen(mode) &&
              memcmp(parsed.mode.at, mode, parsed.mode.len) == 0);
  free(exact);
}

START_TEST(replies_to_four_letter_words_are_parsed)
{
  expect_reply(
      "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-2"
      "9 17:54 UTC\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode"
      " count: 5\n",
      CLI_FOUR_LETTER_SERVING, "3.8.0", "follower");
  expect_reply(
      "Zookeeper version: 3.8.0-x\nREAD-ONLY mode; serving only read-on"
      "ly clients\nMode: read-only\n",
      CLI_FOUR_LETTER_READ_ONLY, "3.8.0", "read-only");
  expect_reply("RaftKeeper version: v2.3.0-1a2b, built on x\nMode: leader\n",
               CLI_FOUR_LETTER_SERVING, "v2.3.0", "leader");
  expect_reply("ClickHouse Keeper version: v24.8.1.2-lts\nMode: standalone\n",
               CLI_FOUR_LETTER_SERVING, "v24.8.1.2", "standalone");
  expect_reply("This ZooKeeper instance is not currently serving requests\n",
               CLI_FOUR_LETTER_NO_QUORUM, NULL, NULL);
  expect_reply("null", CLI_FOUR_LETTER_NO_QUORUM, NULL, NULL);
  expect_reply("rw", CLI_FOUR_LETTER_SERVING, NULL, NULL);
  expect_reply("ro", CLI_FOUR_LETTER_READ_ONLY, NULL, NULL);
  expect_reply("imok", CLI_FOUR_LETTER_UNKNOWN, NULL, NULL);
  expect_reply("srvr is not executed because it is not in the whitelist.\n",
               CLI_FOUR_LETTER_UNKNOWN, NULL, NULL);
}
END_TEST

START_TEST(malformed_replies_to_four_letter_words_are_refused)
{
  expect_reply("", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_reply("rwx", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_reply("imo", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_reply("HTTP/1.1 400 Bad Request\r\n", CLI_FOUR_LETTER_NOT_ZOOKEEPER,
               NULL, NULL);
  expect_reply("Zookeeper version: ", CLI_FOUR_LETTER_UNKNOWN, "", NULL);
  expect_reply("Zookeeper version: 3.9.1", CLI_FOUR_LETTER_UNKNOWN, "3.9.1",
               NULL);
  expect_reply("Zookeeper version: -\nMode: ", CLI_FOUR_LETTER_SERVING, "", "");
}
END_TEST

START_TEST(list_of_servers_without_memory_is_an_error)
{
  static char hosts[] = "a:1,b:2,c:3";
  int err = LK_ERR_NO_MEMORY;
  int tries = 0;
  cli_options o;
  cli_server_checks s;

  cli_options_init(&o);
  o.hosts = hosts;
  for (; err != 0; tries++) {
    allocations_left = tries;
    err = cli_server_checks_open(&s, &o);
    bool failed = allocations_left < 0; /* the count was used up */

    allocations_left = -1;
    ck_assert_int_eq(err, failed ? LK_ERR_NO_MEMORY : 0);
    cli_server_checks_free(&s);
  }
  /* For each server, the list and the name are allocated. */
  ck_assert_int_gt(tries, 6);
}
END_TEST

START_TEST(only_versions_that_are_numbers_are_compared)
{
  const lk_bytes version = lk_text("3.5.9");

  ck_assert(cli_version_is_before(lk_text("3.4.14"), version));
  ck_assert(cli_version_is_before(lk_text("2.9"), version));
  ck_assert(cli_version_is_before(lk_text("3.5.8"), version));
  ck_assert(!cli_version_is_before(lk_text("3.5.9"), version));
  ck_assert(!cli_version_is_before(lk_text("3.5.10"), version));
  ck_assert(!cli_version_is_before(lk_text("3.5"), version));
  ck_assert(!cli_version_is_before(lk_text("3.10.1"), version));
  ck_assert(!cli_version_is_before(lk_text("4.0"), version));
  ck_assert(!cli_version_is_before(lk_text("3"), version));
  ck_assert(!cli_version_is_before(lk_text("3.x"), version));
  /* '/' and ':' would be the digits -1 and 10. */
  ck_assert(!cli_version_is_before(lk_text("3./:"), version));
  ck_assert(!cli_version_is_before(lk_text("3.99999999999"), version));
  ck_assert(!cli_version_is_before(lk_text(""), version));
  ck_assert(!cli_version_is_before(lk_text(NULL), version));
}
END_TEST

/* ---- the clock ----------------------------------------------------------- */

static cli_clock_reading reading(int64_t boot_ms, int64_t wall_ms)
{
  return (cli_clock_reading){boot_ms, wall_ms};
}

START_TEST(step_of_the_wall_clock_is_reported_and_a_slew_is_not)
{
  cli_clock_check c;

  cli_clock_check_begin(&c, reading(1000, 500000));
  /* The wall clock gains 100 ms, then 40 ms more. */
  cli_clock_check_sample(&c, reading(1050, 500150));
  cli_clock_check_sample(&c, reading(1100, 500240));
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 0);
  cli_clock_check_sample(&c, reading(1150, 3600000 + 500150));
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 3600000);
  cli_clock_check_sample(&c, reading(1200, 300200));
  ck_assert_int_eq(cli_clock_check_step_ms(&c), -200000);
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 0);
  ck_assert_int_eq(cli_clock_check_took_ms(&c), 200);
}
END_TEST

START_TEST(longest_pause_of_the_process_is_reported)
{
  cli_clock_check c;

  cli_clock_check_begin(&c, reading(0, 0));
  cli_clock_check_sample(&c, reading(499, 499));
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 0);
  cli_clock_check_sample(&c, reading(2499, 2499));
  cli_clock_check_sample(&c, reading(3099, 3099));
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 2000);
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 0);
}
END_TEST

SUITE("doctor",
      days_of_a_certificate_are_whole_and_negative_once_it_has_expired,
      certificate_is_reported_a_month_before_it_expires,
      advice_for_a_certificate_that_is_not_yet_valid_is_to_check_the_clock,
      replies_to_four_letter_words_are_parsed,
      malformed_replies_to_four_letter_words_are_refused,
      list_of_servers_without_memory_is_an_error,
      only_versions_that_are_numbers_are_compared,
      step_of_the_wall_clock_is_reported_and_a_slew_is_not,
      longest_pause_of_the_process_is_reported)
