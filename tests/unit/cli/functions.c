/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/clock_check.h"
#include "cli/doctor/four_letter_word.h"
#include "cli/doctor/server_checks.h"
#include "cli/doctor/tls_diagnosis.h"
#include "cli/error_report.h"
#include "cli/locks/queue_order.h"
#include "cli/options/acl_spec.h"
#include "cli/options/node_path.h"
#include "cli/options/number.h"
#include "cli/options/options.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/run/cgroup.h"
#include "cli/run/kill_schedule.h"
#include "cli/session/auth_file.h"
#include "cli/session/connection_failures.h"
#include "support/suite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- memory that runs out -------------------------------------------------
 */

static int allocations_left = -1; /* the next fails at 0; below: none does */

static bool fails(void)
{
  return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
  return fails() ? NULL : __real_malloc(size);
}

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
  return fails() ? NULL : __real_realloc(at, size);
}

/* ---- text, JSON ---------------------------------------------------------- */

static void expect_text(cli_text *t, const char *wanted)
{
  ck_assert_str_eq(cli_text_end(t), wanted);
  cli_text_free(t);
}

static lk_bytes all_of(const char *s, size_t size)
{
  return lk_bytes_of(s, size - 1);
}
#define BYTES(literal) all_of(literal, sizeof(literal))

START_TEST(utf8_is_what_the_standard_says)
{
  static const char *const good[] = {"",
                                     "a",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xe0\xbf\xbf",
                                     "\xed\x80\x80",
                                     "\xed\x9f\xbf",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf0\xbf\xbf\xbf",
                                     "\xf4\x80\x80\x80",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {"\x80",
                                    "\xbf",
                                    "\xc0\x80",
                                    "\xc1\xbf",
                                    "\xc2",
                                    "\xe0\x9f\xbf",
                                    "\xe0\xc0\x80",
                                    "\xed\x7f\x80",
                                    "\xed\xa0\x80",
                                    "\xe2\x82",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf0\xc0\x80\x80",
                                    "\xf4\x7f\x80\x80",
                                    "\xf4\x90\x80\x80",
                                    "\xf5\x80\x80\x80",
                                    "\xff",
                                    "\xe2\x28\xa1",
                                    "\xf0\x9f\x98\x2e"};

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    ck_assert(cli_utf8_ok(lk_text(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert(!cli_utf8_ok(lk_text(bad[i])));
}
END_TEST

START_TEST(what_others_wrote_cannot_speak_to_the_terminal)
{
  cli_text t = {0};

  cli_text_add_printable(&t,
                         BYTES("h\xc3\xb6st\x1b[2J\n\x00 \x7f\xc2\x9b\xff"));
  expect_text(&t, "h\xc3\xb6st\\x1b[2J\\x0a\\x00 \\x7f\\xc2\\x9b\\xff");
}
END_TEST

START_TEST(base64_is_padded)
{
  cli_text t = {0};

  cli_text_base64(&t, BYTES("\xff"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, BYTES("\xff\xfe"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, BYTES("\xff\xfe\xfd\0"));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, lk_bytes_of("\0\xff\xff", 1));
  cli_text_puts(&t, " ");
  cli_text_base64(&t, lk_bytes_of("\0\0\xff", 2));
  expect_text(&t, "/w== //4= //79AA== AA== AAA=");
}
END_TEST

START_TEST(times_are_rfc_3339_in_utc)
{
  cli_text t = {0};

  cli_text_time(&t, 1700000000123);
  cli_text_puts(&t, " ");
  cli_text_time(&t, -1);
  expect_text(&t, "2023-11-14T22:13:20.123Z 1969-12-31T23:59:59.999Z");
}
END_TEST

START_TEST(message_that_is_too_long_is_cut_and_still_a_line)
{
  char longer[6000], line[8000];
  int ends[2], saved = dup(STDERR_FILENO);

  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  ck_assert_int_eq(pipe(ends), 0);
  dup2(ends[1], STDERR_FILENO);
  cli_notice("%s", longer);
  dup2(saved, STDERR_FILENO);
  ssize_t n = read(ends[0], line, sizeof line);

  ck_assert_int_gt(n, 4000);
  ck_assert_int_lt(n, 4097);
  ck_assert_mem_eq(line, "latchkey: x", 11);
  ck_assert_mem_eq(line + n - 2, "x\n", 2);
  ck_assert_ptr_null(memchr(line, '\0', (size_t)n));
  close(saved);
  close(ends[0]);
  close(ends[1]);
}
END_TEST

START_TEST(errors_that_can_pass_have_the_hint_to_try_again)
{
  static const int errs[] = {LK_ERR_DEADLINE, LK_ERR_CONNECTION_LOSS,
                             LK_ERR_NOT_SENT, LK_ERR_THROTTLED,
                             LK_ERR_SESSION_EXPIRED};

  for (size_t i = 0; i < sizeof errs / sizeof errs[0]; i++)
    ck_assert_str_eq(cli_error_advice(errs[i]), "; try again");
}
END_TEST

/* Each names the option that helps. */
START_TEST(hints_name_the_options_of_tls)
{
  static const int strange[] = {LK_ERR_PROTOCOL, LK_ERR_MARSHALLING,
                                LK_ERR_REFUSED};

  for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
    ck_assert_ptr_nonnull(
        strstr(cli_error_advice(strange[i]), "expects TLS (--tls)"));
  ck_assert_ptr_nonnull(
      strstr(cli_error_advice(LK_ERR_NO_AUTH), "--auth-file or --cert gives"));
  ck_assert_ptr_nonnull(
      strstr(cli_error_advice(LK_ERR_INVALID_ACL), "ssl.clientAuth=none"));
}
END_TEST

START_TEST(text_grows_and_counts_what_was_printed)
{
  cli_text t = {0};

  for (int i = 0; i < 1000; i++)
    cli_text_printf(&t, "%d,", i);
  ck_assert_uint_eq(t.len, 3890);
  ck_assert_str_eq(cli_text_end(&t) + 3880, "7,998,999,");
  cli_text_free(&t);
}
END_TEST

START_TEST(json_has_commas_between_and_nowhere_else)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_open(&j, NULL, '{');
  cli_json_open(&j, "a", '[');
  cli_json_number(&j, NULL, -1);
  cli_json_number(&j, NULL, 2);
  cli_json_close(&j, ']');
  cli_json_open(&j, "b", '{');
  cli_json_close(&j, '}');
  cli_json_uint64(&j, "c", UINT64_MAX);
  cli_json_hex(&j, "d", UINT64_MAX);
  cli_json_text(&j, "e", lk_text(NULL));
  cli_json_time(&j, "f", 0);
  cli_json_close(&j, '}');
  expect_text(&t, "{\"a\":[-1,2],\"b\":{},\"c\":\"18446744073709551615\","
                  "\"d\":\"0xffffffffffffffff\",\"e\":null,"
                  "\"f\":\"1970-01-01T00:00:00.000Z\"}");
}
END_TEST

START_TEST(json_text_is_quoted)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_text(&j, NULL, BYTES("\"\\\n\0 /\xe2\x82\xac\x7f\xff."));
  expect_text(&t, "\"\\\"\\\\\\u000a\\u0000 /\xe2\x82\xac\\u007f\\ufffd.\"");
}
END_TEST

START_TEST(json_data_that_are_no_text_are_base64)
{
  cli_text t = {0};
  cli_json j = {.out = &t};

  cli_json_open(&j, NULL, '{');
  cli_json_data(&j, "label", BYTES("text"));
  cli_json_data(&j, "label", BYTES("\xff\xff\xff"));
  cli_json_close(&j, '}');
  expect_text(&t, "{\"label\":\"text\",\"data_base64\":\"////\"}");
}
END_TEST

/* ---- numbers ------------------------------------------------------------- */

START_TEST(seconds_are_decimal_and_exact)
{
  static const struct {
    const char *text;
    int64_t ms;
  } good[] = {{"0", 0},         {"1", 1000},
              {".007", 7},      {"0.5", 500},
              {"5.", 5000},     {"30.25", 30250},
              {"0.0001", 1},    {"1.0000", 1000},
              {"1.0009", 1001}, {"2147483", 2147483000}};
  static const char *const bad[] = {
      "",    ".",   "-1",    "+1",      "1e3",
      " 1",  "1 ",  "1s",    "1,5",     "0x1",
      "nan", "..1", "1.2.3", "2147484", "99999999999999999999"};
  int64_t ms;

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    ck_assert_ptr_null(cli_number_seconds(good[i].text, &ms));
    ck_assert_int_eq(ms, good[i].ms);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_ptr_nonnull(cli_number_seconds(bad[i], &ms));
}
END_TEST

START_TEST(whole_numbers_keep_their_range)
{
  int64_t n;

  ck_assert_ptr_null(cli_number_whole("0", 0, 255, &n));
  ck_assert_int_eq(n, 0);
  ck_assert_ptr_null(cli_number_whole("255", 0, 255, &n));
  ck_assert_int_eq(n, 255);
  ck_assert_ptr_null(cli_number_whole("-1", -1, 9, &n));
  ck_assert_int_eq(n, -1);
  ck_assert_ptr_nonnull(cli_number_whole("256", 0, 255, &n));
  ck_assert_ptr_nonnull(cli_number_whole("-2", -1, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("", 0, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("-", -9, 9, &n));
  ck_assert_ptr_nonnull(cli_number_whole("1.0", 0, 9, &n));
  ck_assert_ptr_nonnull(
      cli_number_whole("99999999999999999999999", 0, INT64_MAX, &n));
}
END_TEST

/* ---- options ------------------------------------------------------------- */

static const cli_option_lists run_lists = {
    cli_options_run, cli_options_layout, cli_options_session,
    cli_options_common, cli_options_version};

/* The words behind the name; gives the index of the first operand among them,
   from 1, or -1. */
static int take(cli_options *o, char *complaint, char **words)
{
  static char name[] = "run";
  char *argv[16] = {name};
  cli_text text = {0};
  int argc = 1;

  for (; words[argc - 1] != NULL; argc++)
    argv[argc] = words[argc - 1];
  cli_options_init(o);
  int first = cli_options_take(o, run_lists, argc, argv, &text);
  bool wrong = text.len > 0;

  complaint[0] = '\0';
  if (wrong)
    strcpy(complaint, cli_text_end(&text));
  cli_text_free(&text);
  return wrong ? -1 : first;
}

#define WORDS(...)    \
  (char *[])          \
  {                   \
    __VA_ARGS__, NULL \
  }
#define W(text) ((char[]){text})

START_TEST(n_counts_in_any_order_with_w)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(take(&o, wrong, WORDS(W("-n"), W("-w"), W("3"), W("/l"))),
                   4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-w"), W("3"), W("-n"), W("/l"))),
                   4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-w"), W("3"), W("/l"))), 3);
  ck_assert_int_eq(o.wait_ms, 3000);
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-n"), W("-w"), W("x"), W("/l"))),
                   -1);
}
END_TEST

START_TEST(nodes_of_zookeeper_are_known_with_a_chroot_and_without)
{
  static const struct {
    const char *hosts, *path;
    bool reserved;
  } rows[] = {{"h:1", "/zookeeper", true},
              {"h:1,i:2/", "/zookeeper/quota", true},
              {"h:1", "/zookeepers", false},
              {"h:1", "/a/zookeeper", false},
              {"h:1/app", "/zookeeper", false},
              {"h:1/zookeeper", "/a", true},
              {"h:1/zookeeper/x", "/a", true},
              {"h:1/zookeepers", "/a", false},
              {"tls://h:1", "/zookeeper", true},
              {"tls://h:1", "/a", false},
              {"tls://h:1/zookeeper/x", "/a", true},
              {" tls://h:1/app", "/zookeeper", false}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    ck_assert_msg(cli_path_is_reserved(rows[i].hosts, rows[i].path) ==
                      rows[i].reserved,
                  "%zu", i);
}
END_TEST

START_TEST(paths_are_checked_and_the_broken_rule_is_named)
{
  static const char bytes[] = "holds bytes that ZooKeeper refuses: a path is "
                              "UTF-8 without control characters";
  static const char dots[] = "must not have \".\" or \"..\" between slashes";
  static const char end[] = "must not end with \"/\"";
  static const struct {
    const char *path;
    bool sequential;
    const char *broken;
  } rows[] = {{"/", false, NULL},
              {"/a/.b/..c/d.", false, NULL},
              {"/a/", true, NULL},
              {"/", true, NULL},
              {"a", false, "must begin with \"/\""},
              {"", true, "must begin with \"/\""},
              {"/a//b", false, "must not contain \"//\""},
              {"//", true, "must not contain \"//\""},
              {"/a/", false, end},
              {"/a/./b", false, dots},
              {"/a/..", false, dots},
              {"/../", true, end},
              {"/a\x01", false, bytes},
              {"/a\xff/", true, end}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cli_text wrong = {0};

    ck_assert_msg(cli_path_check(rows[i].path, rows[i].sequential, &wrong) ==
                      (rows[i].broken == NULL),
                  "%zu", i);
    if (rows[i].broken != NULL)
      ck_assert_msg(strstr(cli_text_end(&wrong), rows[i].broken) != NULL,
                    "%zu: %s", i, wrong.at);
    cli_text_free(&wrong);
  }
}
END_TEST

START_TEST(options_end_at_the_first_operand)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(
      take(&o, wrong, WORDS(W("-n"), W("-E"), W("7"), W("/l"), W("-v"))), 4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(o.conflict_code, 7);
  ck_assert(!o.verbose);
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-v"), W("--"), W("/l"))), 3);
}
END_TEST

START_TEST(options_are_taken_wherever_they_stand)
{
  char *argv[] = {W("run"), W("/l"), W("-v"), W("data"), W("-E"),
                  W("7"),   W("--"), W("-n"), NULL};
  cli_text wrong = {0};
  cli_options o;

  cli_options_init(&o);
  ck_assert_int_eq(cli_options_take_anywhere(&o, run_lists, 8, argv, &wrong),
                   3);
  ck_assert_str_eq(argv[1], "/l");
  ck_assert_str_eq(argv[2], "data");
  ck_assert_str_eq(argv[3], "-n");
  ck_assert_ptr_null(argv[4]);
  ck_assert(o.verbose);
  ck_assert_int_eq(o.conflict_code, 7);
  ck_assert_int_eq(o.wait_ms, -1);
  ck_assert_uint_eq(wrong.len, 0);
}
END_TEST

START_TEST(first_complaint_is_kept_and_later_options_are_taken)
{
  char *argv[] = {W("run"), W("-S"),     W("/l"), W("-E"),
                  W("x"),   W("--json"), NULL};
  cli_text wrong = {0};
  cli_options o;

  cli_options_init(&o);
  ck_assert_int_eq(cli_options_take_anywhere(&o, run_lists, 6, argv, &wrong),
                   1);
  ck_assert(o.json);
  expect_text(&wrong, "unknown option -S");
}
END_TEST

START_TEST(every_name_of_an_option_is_the_same_option)
{
  static const char *const waits[] = {"--wait=1.5", "--timeout=1.5", "-w1.5"};
  char wrong[200];
  cli_options o;

  for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
    char word[20];

    strcpy(word, waits[i]);
    ck_assert_int_eq(take(&o, wrong, WORDS(word, W("/l"))), 2);
    ck_assert_int_eq(o.wait_ms, 1500);
  }
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--nb"), W("/l"))), 2);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(
      take(&o, wrong, WORDS(W("-x"), W("-e"), W("--exclusive"), W("/l"))), 4);
  ck_assert_int_eq(
      take(&o, wrong,
           WORDS(W("--on-lost"), W("stop"), W("--assurance=ping"), W("/l"))),
      4);
  ck_assert_int_eq(o.on_lost, CLI_ON_LOST_STOP);
  ck_assert_int_eq(o.assurance, LK_ASSURE_PING);
}
END_TEST

START_TEST(every_action_of_on_lost_has_a_word)
{
  static const struct {
    char word[8];
    cli_on_lost policy;
  } rows[] = {{"term", CLI_ON_LOST_TERM},
              {"kill", CLI_ON_LOST_KILL},
              {"stop", CLI_ON_LOST_STOP},
              {"ignore", CLI_ON_LOST_IGNORE}};
  char wrong[200];
  char word[8];
  cli_options o;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    memcpy(word, rows[i].word, sizeof word);
    ck_assert_int_eq(take(&o, wrong, WORDS(W("--on-lost"), word, W("/l"))), 3);
    ck_assert_int_eq(o.on_lost, rows[i].policy);
  }
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--on-lost"), W("kil"), W("/l"))),
                   -1);
}
END_TEST

START_TEST(letters_of_options_are_letters)
{
  static const cli_option *const lists[] = {
      cli_options_common, cli_options_version, cli_options_session,
      cli_options_json,   cli_options_layout,  cli_options_run,
      cli_options_wait,   cli_options_write,   cli_options_delete,
      cli_options_create, cli_options_ls,      cli_options_read,
      cli_options_watch};

  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    for (const cli_option *o = lists[i]; o->take != NULL; o++)
      ck_assert_msg(o->letter == '\0' || isalpha((unsigned char)o->letter),
                    "%s", o->name);
}
END_TEST

START_TEST(a_wrong_option_is_named)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(take(&o, wrong, WORDS(W("-S"), W("/l"))), -1);
  ck_assert_str_eq(wrong, "unknown option -S");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-nu"), W("/l"))), -1);
  ck_assert_str_eq(wrong, "unknown option -u");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-\x7f"), W("/l"))), -1);
  ck_assert_str_eq(wrong, "unknown option -\\x7f");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--permutes=2"), W("/l"))), -1);
  ck_assert_str_eq(wrong, "unknown option --permutes=2");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--nb=2"), W("/l"))), -1);
  ck_assert_str_eq(wrong, "--nb takes no argument");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-w"))), -1);
  ck_assert_str_eq(wrong, "--wait needs an argument: SECS");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--id"))), -1);
  ck_assert_str_eq(wrong, "--id needs an argument: TEXT");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("-E"), W("256"))), -1);
  ck_assert_str_eq(wrong, "--conflict-exit-code: \"256\" is not an exit code "
                          "from 0 to 255");
  ck_assert_int_eq(take(&o, wrong, WORDS(W("--events-fd"), W("987"))), -1);
  ck_assert_ptr_nonnull(strstr(wrong, "is not an open descriptor"));
}
END_TEST

START_TEST(help_has_every_option_once)
{
  cli_text text = {0};

  cli_options_help(run_lists, &text);
  const char *s = cli_text_end(&text);
  size_t lines = 0;

  for (size_t i = 0; i < text.len; i++)
    lines += s[i] == '\n' ? 1 : 0;
  ck_assert_uint_eq(lines, 36);
  ck_assert_ptr_nonnull(strstr(s, "  -w, --wait SECS "));
  ck_assert_ptr_null(strstr(s, "--timeout SECS"));
  cli_text_free(&text);
}
END_TEST

/* ---- connection attempts ------------------------------------------------- */

/* One line of the log for each server, "" for none. */
static void expect_attempts(const char *hosts, const int *errs,
                            const char *const *lines, const char *told,
                            const char *advice)
{
  cli_connection_failures a;
  cli_text t = {0};
  const cli_tls_options tls = {0};

  cli_connection_failures_init(&a, &tls, hosts);
  for (size_t i = 0; lines[i] != NULL; i++)
    cli_connection_failures_record(&a, errs[i], LK_TLS_OTHER, lines[i]);
  cli_connection_failures_say(&a, "a:2181", 1.5, &t);
  expect_text(&t, told);
  ck_assert_str_eq(cli_connection_failures_advice(&a), advice);
  cli_connection_failures_free(&a);
}

#define LINES(...) ((const char *[]){__VA_ARGS__, NULL})
#define ERRS(...)  ((const int[]){__VA_ARGS__})

START_TEST(attempts_tell_each_server_and_the_likely_cause)
{
  expect_attempts("a/x", ERRS(0), LINES("a:2181: not ended"),
                  "cannot connect to a:2181: no reply within 1.5 s",
                  "the host is down, the server hangs, or a firewall drops "
                  "packets");
  expect_attempts("[::1]:7", ERRS(LK_ERR_CONNECT),
                  LINES("[::1]:7: connect to [::1]:7: Connection refused"),
                  "cannot connect to [::1]:7: Connection refused",
                  "nothing listens there: start ZooKeeper, or correct -z");
  expect_attempts("a:1", ERRS(LK_ERR_CONNECT),
                  LINES("a:1: connect to 10.0.0.1:1: No route to host"),
                  "cannot connect to a:1 at 10.0.0.1:1: No route to host",
                  "the host is down, the server hangs, or a firewall drops "
                  "packets");
  expect_attempts("a:1", ERRS(LK_ERR_RESOLVE),
                  LINES("a:1: resolve a: not found"),
                  "cannot connect to a:1: the name cannot be resolved: not "
                  "found",
                  "correct the name in -z, or the name service");
  expect_attempts("a:1", ERRS(LK_ERR_REFUSED), LINES("a:1: hung up\x1b"),
                  "cannot connect to a:1: hung up\\x1b",
                  "it has no quorum, or has reached maxClientCnxns, or expects "
                  "TLS (--tls)");
  expect_attempts("a:1", ERRS(LK_ERR_PROTOCOL), LINES("a:1: what?"),
                  "cannot connect to a:1: what?",
                  "that is not the client port of a ZooKeeper server, or it "
                  "expects TLS (--tls)");
}
END_TEST

START_TEST(attempt_that_failed_by_tls_names_what_to_do_for_each_cause)
{
  static const struct {
    lk_tls_cause cause;
    const char *word;
  } rows[] = {{LK_TLS_NAME, "--tls-name"},
              {LK_TLS_ISSUER, "--cacert"},
              {LK_TLS_EXPIRED, "renew the certificate"},
              {LK_TLS_NOT_YET_VALID, "clock"},
              {LK_TLS_REVOKED, "its CA has revoked it"},
              {LK_TLS_CRL, "--crl"},
              {LK_TLS_WANTS_CERTIFICATE, "--cert"},
              {LK_TLS_REFUSES_CERTIFICATE, "trust store"},
              {LK_TLS_NOT_TLS, "secureClientPort"},
              {LK_TLS_FILES, "correct the file"},
              {LK_TLS_OTHER, "the server's log"}};
  const cli_tls_options tls = {.selected = true};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cli_connection_failures a;
    cli_text t = {0};

    /* Servers that are down do not hide it; the default port is that of TLS. */
    cli_connection_failures_init(&a, &tls, "a,b:1/x");
    cli_connection_failures_record(&a, LK_ERR_CONNECT, LK_TLS_OTHER,
                                   "b:1: connect to b:1: Connection refused");
    cli_connection_failures_record(&a, LK_ERR_TLS, rows[i].cause,
                                   "a:2281: TLS: why");
    cli_connection_failures_say(&a, "", 1, &t);
    expect_text(&t, "cannot connect to any server: a:2281: TLS: why, b:1: "
                    "Connection refused");
    ck_assert_ptr_nonnull(
        strstr(cli_connection_failures_advice(&a), rows[i].word));
    cli_connection_failures_free(&a);
  }
}
END_TEST

START_TEST(tls_is_selected_by_its_options_and_before_the_servers)
{
  static const char *const options[] = {
      "--tls",   "--cacert=x",   "--cert=x",   "--key=x",
      "--crl=x", "--tls-name=x", "--insecure", "--key-password-file=x"};
  cli_options o;
  char wrong[200];

  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    char word[40];

    snprintf(word, sizeof word, "%s", options[i]);
    take(&o, wrong, WORDS(word, W("/l")));
    ck_assert_str_eq(wrong, "");
    ck_assert(cli_tls_is_selected(&o.tls, "h:1"));
  }
  take(&o, wrong, WORDS(W("-v"), W("/l")));
  ck_assert(!cli_tls_is_selected(&o.tls, "h:1/tls://"));
  ck_assert(cli_tls_is_selected(&o.tls, "tls://h:1"));
  ck_assert(cli_tls_is_selected(&o.tls, " tls://h:1"));
  setenv("LATCHKEY_TLS_CACERT", "x", 1);
  ck_assert(!cli_tls_is_selected(&o.tls, "h:1"));
  unsetenv("LATCHKEY_TLS_CACERT");
}
END_TEST

START_TEST(option_of_tls_wins_over_the_environment)
{
  cli_tls_options t = {.selected = true};

  setenv("LATCHKEY_TLS_CACERT", "ca", 1);
  setenv("LATCHKEY_TLS_CERT", "cert", 1);
  setenv("LATCHKEY_TLS_KEY", "key", 1);
  setenv("LATCHKEY_TLS_KEY_PASSWORD_FILE", "password", 1);
  setenv("LATCHKEY_TLS_CRL", "", 1);
  setenv("LATCHKEY_TLS_NAME", "name", 1);
  lk_tls_config c = cli_tls_config(&t);

  ck_assert_str_eq(c.ca_file, "ca");
  ck_assert_str_eq(c.cert_file, "cert");
  ck_assert_str_eq(c.key_file, "key");
  ck_assert_str_eq(c.password_file, "password");
  ck_assert_str_eq(c.server_name, "name");
  ck_assert_ptr_null(c.crl_file);
  t.items[CLI_TLS_CACERT] = "other";
  t.items[CLI_TLS_KEY] = "other key";
  c = cli_tls_config(&t);
  ck_assert_str_eq(c.ca_file, "other");
  ck_assert_str_eq(c.key_file, "other key");
  ck_assert_str_eq(c.cert_file, "cert");
  ck_assert_ptr_null(c.password_file);
  t.items[CLI_TLS_KEY] = NULL;
  t.items[CLI_TLS_CERT] = "other cert";
  c = cli_tls_config(&t);
  ck_assert_str_eq(c.cert_file, "other cert");
  ck_assert_ptr_null(c.key_file);
  ck_assert_ptr_null(c.password_file);
  unsetenv("LATCHKEY_TLS_CACERT");
  unsetenv("LATCHKEY_TLS_CERT");
  unsetenv("LATCHKEY_TLS_KEY");
  unsetenv("LATCHKEY_TLS_KEY_PASSWORD_FILE");
  unsetenv("LATCHKEY_TLS_CRL");
  unsetenv("LATCHKEY_TLS_NAME");
}
END_TEST

START_TEST(command_line_that_is_suggested_has_the_options_of_tls)
{
  cli_tls_options t = {.selected = true,
                       .items = {[CLI_TLS_CACERT] = "ca.pem"}};
  cli_text out = {0};

  cli_tls_add_servers(&t, "a:1,b/x/y", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "tls://a:1,b --cacert ca.pem");
  t = (cli_tls_options){.selected = true, .insecure = true};
  cli_tls_add_servers(&t, "tls://a:1/x", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "tls://a:1 --insecure");
  t = (cli_tls_options){0};
  cli_tls_add_servers(&t, "a:1/x", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "a:1");
}
END_TEST

START_TEST(days_of_a_certificate_are_whole_and_negative_once_it_has_expired)
{
  static const struct {
    int64_t left_s, days;
  } rows[] = {{0, 0},   {86399, 0},   {86400, 1},  {30 * 86400, 30},
              {-1, -1}, {-86400, -1}, {-86401, -2}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const lk_tls_certificate c = {.not_after_s = 1700000000 + rows[i].left_s};

    ck_assert_int_eq(cli_tls_days_left(&c, 1700000000), rows[i].days);
  }
}
END_TEST

/* What the doctor says of a certificate with so many days left. */
static void expect_own(int64_t from_days, int64_t days, const char *verdict)
{
  int64_t now_s = time(NULL);
  cli_doctor_report f = {.as_json = true};
  lk_tls_certificate own = {.subject = "CN=a",
                            .issuer = "CN=ca",
                            .not_before_s = now_s + from_days * 86400,
                            .not_after_s = now_s + days * 86400 + 3600};

  cli_tls_report_own_certificate(&own, &f);
  ck_assert_msg(strstr(cli_text_end(&f.text), verdict) != NULL, "%s",
                f.text.at);
  cli_text_free(&f.text);
}

START_TEST(certificate_is_reported_a_month_before_it_expires)
{
  cli_doctor_report none = {.as_json = true};
  const lk_tls_certificate no_certificate = {.subject = ""};

  expect_own(-9, 30, "\"verdict\":\"ok\"");
  expect_own(-9, 29, "\"verdict\":\"note\"");
  expect_own(-9, 0, "\"verdict\":\"note\"");
  expect_own(-9, -1, "\"verdict\":\"broken\"");
  expect_own(1, 90, "\"verdict\":\"broken\"");
  cli_tls_report_own_certificate(&no_certificate, &none);
  ck_assert_uint_eq(none.text.len, 0);
}
END_TEST

START_TEST(attempts_at_several_servers_are_judged_together)
{
  expect_attempts(
      "a:1,a:11,b", ERRS(LK_ERR_CONNECT, LK_ERR_REFUSED, LK_ERR_CONNECT),
      LINES("a:1: connect to a:1: Connection refused", "a:1: hung up",
            "a:11: connect to a:11: timed out"),
      "cannot connect to any server: a:1: hung up, a:11: timed "
      "out, b:2181: not tried yet",
      "probably there is no quorum: start a majority of the servers");
  expect_attempts(
      "a:1,b:1", ERRS(LK_ERR_CONNECT, LK_ERR_REFUSED),
      LINES("a:1: connect to a:1: Connection refused", "b:1: hung up"),
      "cannot connect to any server: a:1: Connection refused, b:1: "
      "hung up",
      "probably there is no quorum: start a majority of the servers");
  expect_attempts("a:1,b:1", ERRS(LK_ERR_CONNECT, LK_ERR_RESOLVE),
                  LINES("a:1: connect to a:1: Connection refused",
                        "b:1: resolve b: not found"),
                  "cannot connect to any server: a:1: Connection refused, b:1: "
                  "the name cannot be resolved: not found",
                  "start the servers, or correct -z");
  expect_attempts("a,b,c,d,e,f,g", ERRS(0), LINES("x:1: what?"),
                  "cannot connect to any server: a:2181: no reply within 1.5 "
                  "s, b:2181: not tried yet, c:2181: not tried yet, d:2181: "
                  "not tried yet, e:2181: not tried yet, and 2 more",
                  "the host is down, the server hangs, or a firewall drops "
                  "packets");
}
END_TEST

/* ---- access lists, identities -------------------------------------------- */

START_TEST(access_lists_are_read)
{
  cli_text wrong = {0};
  cli_acl acl;

  ck_assert(cli_acl_read(&acl, "--acl", "open", &wrong));
  ck_assert_ptr_eq(acl.list.entries, lk_acl_open.entries);
  ck_assert(cli_acl_read(&acl, "--acl", "creator", &wrong));
  ck_assert_ptr_eq(acl.list.entries, lk_acl_creator.entries);
  ck_assert(cli_acl_read(&acl, "--acl",
                         "digest:u:fyVmFCwVbTJYrznoSu1koqYEYF0=:cdrwa,ip:::1:r,"
                         "auth::w",
                         &wrong));
  ck_assert_uint_eq(acl.list.count, 3);
  ck_assert_int_eq(acl.list.entries[0].perms, LK_PERM_ALL);
  ck_assert_mem_eq(acl.list.entries[0].scheme.at, "digest", 6);
  ck_assert_uint_eq(acl.list.entries[0].id.len, 30);
  ck_assert_mem_eq(acl.list.entries[0].id.at,
                   "u:fyVmFCwVbTJYrznoSu1koqYEYF0=", 30);
  ck_assert_int_eq(acl.list.entries[1].perms, LK_PERM_READ);
  ck_assert_uint_eq(acl.list.entries[1].id.len, 3);
  ck_assert_uint_eq(acl.list.entries[2].id.len, 0);
  cli_acl_free(&acl);
  ck_assert_uint_eq(wrong.len, 0);
}
END_TEST

START_TEST(a_wrong_access_list_is_refused_and_named)
{
  static const char *const bad[] = {
      "",     "closed",     "world",     "world:anyone", "world:anyone:",
      ":a:r", "world:a:rx", "open,open", "world:a:r,",   "a:r"};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(!cli_acl_read(&acl, "--acl", bad[i], &wrong), "%s", bad[i]);
    ck_assert_uint_gt(wrong.len, 0);
    cli_text_free(&wrong);
  }
  cli_text wrong = {0};
  cli_acl acl;

  ck_assert(!cli_acl_read(&acl, "--acl", "world:a:r,bad,closed", &wrong));
  ck_assert_ptr_nonnull(strstr(cli_text_end(&wrong), "--acl: \"bad\" is"));
  cli_text_free(&wrong);
}
END_TEST

START_TEST(digest_with_a_password_in_clear_is_refused)
{
  static const char *const bad[] = {
      "digest:bob:secret:r",
      "world:anyone:r,digest:bob:secret:r",
      "digest:bob:card",
      "digest:bob::r",
      "digest::fyVmFCwVbTJYrznoSu1koqYEYF0=:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYFAA:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF1=:r",
      "digest:bob:fyVmFCwVbTJYrz-oSu1koqYEYF0=:r",
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYE====:r",
      ("digest:u:JuOwXdmk4f1omXNJj7k4ILDOHOlc+"
       "8PMyEaxl9nrWl6OmV83jKYivSqJWsp5PsMTda6BtnipueoU1r5DtBd7CB==:r")};
  static const char *const good[] = {
      "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0=:r",
      "digest:u:/Y8xRBngpX5duYn15uUqIRaIaCviy5TEwSk419hCwuA=:r",
      ("digest:u:JuOwXdmk4f1omXNJj7k4ILDOHOlc+"
       "8PMyEaxl9nrWl6OmV83jKYivSqJWsp5PsMTda6BtnipueoU1r5DtBd7CA==:r")};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(!cli_acl_read(&acl, "--acl", bad[i], &wrong), "%s", bad[i]);
    ck_assert_ptr_nonnull(strstr(cli_text_end(&wrong), "--auth-file"));
    ck_assert_ptr_null(strstr(wrong.at, "secret"));
    cli_text_free(&wrong);
  }
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    cli_text wrong = {0};
    cli_acl acl;

    ck_assert_msg(cli_acl_read(&acl, "--acl", good[i], &wrong), "%s", good[i]);
    cli_acl_free(&acl);
  }
}
END_TEST

START_TEST(an_auth_file_has_comments_and_passwords_with_colons)
{
  lk_bytes text = lk_text("# no\n\n  digest:u:p:w \r\nbad\nx509:\nip:a");
  lk_bytes scheme, auth;

  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, 6);
  ck_assert_uint_eq(auth.len, 6);
  ck_assert_mem_eq(auth.at, "u:p:w ", 6);
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, 0);
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(scheme.len, 4);
  ck_assert_uint_eq(auth.len, 0);
  ck_assert(cli_auth_file_next_line(&text, &scheme, &auth));
  ck_assert_uint_eq(auth.len, 1);
  ck_assert(!cli_auth_file_next_line(&text, &scheme, &auth));
}
END_TEST

/* A file of identities with that content; it is gone when it has been read. */
static bool read_identities(cli_auth_file *i, const char *text,
                            cli_text *complaint)
{
  char name[] = "/tmp/check_cli.XXXXXX";
  int fd = mkstemp(name);

  memset(i, 0, sizeof *i);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
  bool ok = cli_auth_file_read(i, name, complaint);

  unlink(name);
  i->name = NULL;
  return ok;
}

START_TEST(a_line_of_sasl_is_a_user_and_a_password)
{
  cli_text wrong = {0};
  cli_auth_file i;
  char out[LK_SASL_PASSWORD_MAX];

  ck_assert(read_identities(&i, "digest:a:b\n", &wrong));
  ck_assert_ptr_null(cli_auth_file_sasl(&i));
  cli_auth_file_free(&i);
  if (lk_sasl_digest_md5() == NULL)
    return;
  ck_assert(read_identities(&i, "digest:a:b\n sasl:bob:se:cret\r\n", &wrong));
  const lk_sasl_config *sasl = cli_auth_file_sasl(&i);

  ck_assert_ptr_nonnull(sasl);
  ck_assert_str_eq(sasl->user, "bob");
  ck_assert_int_eq(sasl->password(out, sizeof out, sasl->password_arg), 7);
  ck_assert_mem_eq(out, "se:cret", 7);
  ck_assert_int_eq(sasl->password(out, 6, sasl->password_arg), LK_ERR_TOO_BIG);
  cli_auth_file_free(&i);
  ck_assert_ptr_null(cli_auth_file_sasl(&i));
  ck_assert_ptr_null(i.at);
}
END_TEST

START_TEST(other_lines_of_sasl_are_refused_without_the_password)
{
  static const char *const bad[] = {"sasl:secret",
                                    "sasl:", "sasl:bob:", "sasl::secret",
                                    "sasl:bob:secret\nsasl:bob:secret"};

  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    cli_text wrong = {0};
    cli_auth_file i;

    ck_assert_msg(!read_identities(&i, bad[k], &wrong), "%s", bad[k]);
    ck_assert_ptr_nonnull(strstr(cli_text_end(&wrong), "--auth-file: "));
    ck_assert_ptr_null(strstr(wrong.at, "secret"));
    cli_text_free(&wrong);
    cli_auth_file_free(&i);
  }
}
END_TEST

/* ---- the queue ------------------------------------------------------------
 */

START_TEST(a_layout_is_a_word_and_perhaps_a_prefix)
{
  static const struct {
    const char *word;
    lk_layout layout;
    const char *prefix;
  } good[] = {{"curator", LK_LAYOUT_CURATOR, NULL},
              {"kazoo", LK_LAYOUT_KAZOO, NULL},
              {"native", LK_LAYOUT_NATIVE, NULL},
              {"native:", LK_LAYOUT_NATIVE, ""},
              {"native:lock", LK_LAYOUT_NATIVE, "lock"},
              {"native-uuid:a:b", LK_LAYOUT_NATIVE_UUID, "a:b"}};
  static const char *const bad[] = {"",          "nativ",     "native-",
                                    "kazoo:x",   "curator:",  "native:r-",
                                    "native:w-", "native:a/b"};
  cli_options o;
  char wrong[200];
  char word[32];

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    const char *prefix = good[i].prefix;

    snprintf(word, sizeof word, "%s", good[i].word);
    ck_assert_int_eq(take(&o, wrong, WORDS(W("--layout"), word, W("/l"))), 3);
    ck_assert_int_eq(o.layout, good[i].layout);
    ck_assert_int_eq(o.prefix == NULL, prefix == NULL);
    if (prefix != NULL)
      ck_assert_str_eq(o.prefix, prefix);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf(word, sizeof word, "%s", bad[i]);
    ck_assert_int_eq(take(&o, wrong, WORDS(W("--layout"), word, W("/l"))), -1);
  }
}
END_TEST

static char names[] = "abcdefgh";

static cli_contender contender(int64_t number, bool shared)
{
  return (cli_contender){
      .name = names + number, .number = number, .shared = shared};
}

START_TEST(one_writer_holds_and_readers_before_it_hold_together)
{
  cli_contender w[] = {contender(3, false), contender(1, false),
                       contender(2, true)};
  cli_contender r[] = {contender(4, true), contender(1, true),
                       contender(3, false), contender(2, true)};

  ck_assert_uint_eq(cli_queue_order_locks(w, 3), 3);
  ck_assert_int_eq(w[0].number, 1);
  ck_assert(w[0].holds && !w[1].holds && !w[2].holds);
  ck_assert_uint_eq(cli_queue_order_locks(r, 4), 4);
  ck_assert(r[0].holds && r[1].holds && !r[2].holds && !r[3].holds);
  ck_assert_int_eq(r[3].number, 4);
}
END_TEST

START_TEST(a_writer_that_also_reads_holds_twice)
{
  cli_contender c[] = {contender(1, true), contender(1, false),
                       contender(2, true)};

  cli_queue_order_locks(c, 3);
  ck_assert(!c[0].shared && c[0].holds);
  ck_assert(c[1].shared && c[1].holds);
  ck_assert(!c[2].holds);
}
END_TEST

START_TEST(contender_that_has_left_is_not_counted)
{
  cli_contender c[] = {contender(1, false), contender(2, false),
                       contender(3, false)};

  c[0].gone = true;
  ck_assert_uint_eq(cli_queue_order_locks(c, 3), 2);
  ck_assert(c[0].holds);
  ck_assert_int_eq(c[0].number, 2);
  ck_assert_int_eq(c[2].number, 1);
}
END_TEST

/* Place or permit of a session, made by transaction `zxid`. */
static cli_contender of_semaphore(bool permit, int64_t session, int64_t zxid)
{
  return (cli_contender){.name = names,
                         .number = zxid,
                         .permit = permit,
                         .stat = {.czxid = zxid, .ephemeral_owner = session}};
}

enum { PLACE, PERMIT };

/* How many hold, and how many are shown, of a semaphore. */
static void expect_permits(cli_contender *c, size_t count, size_t holders,
                           size_t shown)
{
  size_t n = 0;

  ck_assert_uint_eq(cli_queue_order_permits(c, count), shown);
  for (size_t i = 0; i < shown; i++) {
    ck_assert(!c[i].holds || c[i].permit);
    n += c[i].holds;
  }
  ck_assert_uint_eq(n, holders);
}

START_TEST(permit_that_is_younger_than_the_first_place_holds)
{
  /* 1 was ahead of 2 when 2 queued. */
  cli_contender c[] = {of_semaphore(PLACE, 2, 11), of_semaphore(PLACE, 3, 12),
                       of_semaphore(PERMIT, 1, 14)};

  expect_permits(c, 3, 1, 3);
}
END_TEST

START_TEST(permits_of_the_first_place_wait)
{
  cli_contender one[] = {of_semaphore(PLACE, 2, 11),
                         of_semaphore(PERMIT, 1, 14),
                         of_semaphore(PERMIT, 2, 15)};
  cli_contender two[] = {of_semaphore(PLACE, 2, 11), of_semaphore(PLACE, 3, 12),
                         of_semaphore(PERMIT, 2, 16),
                         of_semaphore(PERMIT, 1, 14),
                         of_semaphore(PERMIT, 2, 15)};

  expect_permits(one, 3, 1, 2);
  expect_permits(two, 5, 1, 3);
  ck_assert_int_eq(two[2].stat.ephemeral_owner, 1);
}
END_TEST

/* It is about to leave the queue. */
START_TEST(permits_hold_when_no_other_contender_has_any)
{
  cli_contender c[] = {of_semaphore(PLACE, 1, 11), of_semaphore(PERMIT, 1, 12),
                       of_semaphore(PERMIT, 1, 13)};

  expect_permits(c, 3, 2, 3);
  c[0].gone = true;
  expect_permits(c, 3, 2, 2);
}
END_TEST

START_TEST(session_of_many_threads_waits_with_its_youngest_permit)
{
  cli_contender older[] = {
      of_semaphore(PERMIT, 1, 10), of_semaphore(PLACE, 1, 11),
      of_semaphore(PERMIT, 1, 14), of_semaphore(PERMIT, 1, 15)};
  cli_contender places[] = {
      of_semaphore(PLACE, 1, 11), of_semaphore(PLACE, 1, 12),
      of_semaphore(PERMIT, 1, 14), of_semaphore(PERMIT, 1, 15)};

  expect_permits(older, 4, 2, 3);
  expect_permits(places, 4, 1, 3);
}
END_TEST

START_TEST(permits_hold_when_the_first_place_may_not_be_read)
{
  cli_contender c[] = {of_semaphore(PLACE, 0, 1), of_semaphore(PLACE, 3, 12),
                       of_semaphore(PERMIT, 3, 14),
                       of_semaphore(PERMIT, 1, 13)};

  c[0].hidden = true;
  c[0].stat = (lk_stat){0};
  expect_permits(c, 4, 2, 4);
}
END_TEST

/* ---- the lease ------------------------------------------------------------
 */

static cli_kill_schedule lease(cli_on_lost policy)
{
  return (cli_kill_schedule){
      .policy = policy, .margin_ms = 5, .lease_deadline = 100};
}

/* What is to be done at `now`, and when to ask again. */
static void expect(cli_kill_schedule *l, int64_t now, cli_action act,
                   int64_t next)
{
  int64_t at;

  if (act != CLI_ACTION_NONE)
    ck_assert_int_eq(cli_kill_schedule_next(l, now, &at), act);
  ck_assert_int_eq(cli_kill_schedule_next(l, now, &at), CLI_ACTION_NONE);
  ck_assert_int_eq(at, next);
}

START_TEST(term_comes_the_margin_before_the_deadline_and_kill_at_it)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  expect(&l, 0, CLI_ACTION_NONE, 95);
  expect(&l, 94, CLI_ACTION_NONE, 95);
  expect(&l, 95, CLI_ACTION_TERM, 100);
  expect(&l, 99, CLI_ACTION_NONE, 100);
  expect(&l, 100, CLI_ACTION_KILL, INT64_MAX);
  expect(&l, 200, CLI_ACTION_NONE, INT64_MAX);
}
END_TEST

START_TEST(deadline_renewed_before_the_margin_moves_all_signals)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  l.lease_deadline = 150;
  expect(&l, 99, CLI_ACTION_NONE, 145);
  expect(&l, 145, CLI_ACTION_TERM, 150);
  l.lease_deadline = 300; /* it was told to end, and it is safe for longer */
  expect(&l, 150, CLI_ACTION_NONE, 300);
  expect(&l, 300, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(a_lock_that_is_lost_means_term_at_once_and_kill_after_the_margin)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  cli_kill_schedule_lock_lost(&l, 20);
  expect(&l, 20, CLI_ACTION_TERM, 25);
  l.lease_deadline = 500; /* late news: no use */
  expect(&l, 24, CLI_ACTION_NONE, 25);
  expect(&l, 25, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(a_loss_after_term_never_puts_kill_off)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  expect(&l, 95, CLI_ACTION_TERM, 100);
  cli_kill_schedule_lock_lost(&l, 98);
  expect(&l, 98, CLI_ACTION_NONE, 100);
  expect(&l, 100, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_TERM);
  expect(&l, 95, CLI_ACTION_TERM, 100);
  l.lease_deadline = 1000;
  cli_kill_schedule_lock_lost(&l, 200);
  expect(&l, 200, CLI_ACTION_NONE, 205);
  expect(&l, 205, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(what_is_left_of_a_command_gets_no_more_time_than_the_margin)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  expect(&l, 95, CLI_ACTION_TERM, 100);
  l.lease_deadline = 1000;
  cli_kill_schedule_command_ended(&l);
  expect(&l, 99, CLI_ACTION_NONE, 100);
  expect(&l, 100, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_TERM);
  expect(&l, 97, CLI_ACTION_TERM, 100);
  cli_kill_schedule_command_ended(&l);
  expect(&l, 97, CLI_ACTION_NONE, 100);
  l = lease(CLI_ON_LOST_TERM);
  cli_kill_schedule_command_ended(&l); /* nothing was asked to end */
  expect(&l, 94, CLI_ACTION_NONE, 95);
}
END_TEST

START_TEST(command_that_slept_past_the_deadline_still_gets_time_to_stop)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  expect(&l, 1000, CLI_ACTION_TERM, 1005);
  cli_kill_schedule_lock_lost(&l, 1003);
  expect(&l, 1003, CLI_ACTION_NONE, 1005);
  expect(&l, 1005, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_TERM);
  expect(&l, 100, CLI_ACTION_TERM, 105); /* at the deadline it has passed */
}
END_TEST

START_TEST(kill_comes_the_margin_before_the_deadline_or_with_the_loss)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_KILL);

  expect(&l, 94, CLI_ACTION_NONE, 95);
  expect(&l, 95, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_KILL);
  cli_kill_schedule_lock_lost(&l, 7);
  expect(&l, 7, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(stopped_command_waits_for_a_new_lease_and_is_killed_when_lost)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_STOP);

  expect(&l, 95, CLI_ACTION_STOP, 100);
  l.all_stopped = true;
  expect(&l, 500, CLI_ACTION_NONE, INT64_MAX);
  l.lease_deadline = 600;
  expect(&l, 510, CLI_ACTION_CONT, 595);
  expect(&l, 595, CLI_ACTION_STOP, 600);
  l.all_stopped = true;
  cli_kill_schedule_lock_lost(&l, 700);
  expect(&l, 700, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(command_that_cannot_be_stopped_in_time_is_killed)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_STOP);

  l.margin_ms = 30;
  expect(&l, 70, CLI_ACTION_STOP, 97);
  expect(&l, 96, CLI_ACTION_NONE, 97);
  expect(&l, 97, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(kill_leaves_a_tenth_of_the_margin_to_die)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  l.margin_ms = 50;
  expect(&l, 50, CLI_ACTION_TERM, 95);
  expect(&l, 95, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(earlier_deadline_and_shorter_margin_count_at_once)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  expect(&l, 0, CLI_ACTION_NONE, 95);
  l.lease_deadline = 50;
  l.margin_ms = 2;
  expect(&l, 1, CLI_ACTION_NONE, 48);
  expect(&l, 48, CLI_ACTION_TERM, 50);
}
END_TEST

START_TEST(after_the_longest_hold_term_and_kill_come_however_long_the_lease)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_TERM);

  l.max_hold_ends_at = 50;
  expect(&l, 0, CLI_ACTION_NONE, 50);
  l.lease_deadline = 1000;
  expect(&l, 50, CLI_ACTION_TERM, 55);
  l.lease_deadline = 2000;
  expect(&l, 54, CLI_ACTION_NONE, 55);
  expect(&l, 55, CLI_ACTION_KILL, INT64_MAX);
  /* the lease still counts */
  l = lease(CLI_ON_LOST_TERM);
  l.max_hold_ends_at = 98;
  expect(&l, 0, CLI_ACTION_NONE, 95);
  l.lease_deadline = 101;
  expect(&l, 95, CLI_ACTION_NONE, 96);
  expect(&l, 98, CLI_ACTION_TERM, 101);
  expect(&l, 101, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_TERM);
  l.max_hold_ends_at = 50;
  expect(&l, 50, CLI_ACTION_TERM, 55);
  cli_kill_schedule_lock_lost(&l, 53);
  expect(&l, 53, CLI_ACTION_NONE, 55);
  expect(&l, 55, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(after_the_longest_hold_kill_and_stop_kill)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_KILL);

  l.max_hold_ends_at = 50;
  expect(&l, 49, CLI_ACTION_NONE, 50);
  expect(&l, 50, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_STOP);
  l.max_hold_ends_at = 50;
  expect(&l, 50, CLI_ACTION_KILL, INT64_MAX);
  l = lease(CLI_ON_LOST_STOP);
  l.max_hold_ends_at = 200;
  expect(&l, 95, CLI_ACTION_STOP, 100);
  l.all_stopped = true;
  expect(&l, 95, CLI_ACTION_NONE, 200);
  expect(&l, 200, CLI_ACTION_KILL, INT64_MAX);
}
END_TEST

START_TEST(ignore_does_nothing)
{
  cli_kill_schedule l = lease(CLI_ON_LOST_IGNORE);

  expect(&l, 1000, CLI_ACTION_NONE, INT64_MAX);
  cli_kill_schedule_lock_lost(&l, 1000);
  expect(&l, 2000, CLI_ACTION_NONE, INT64_MAX);
}
END_TEST

/* ---- cgroup ---------------------------------------------------------------
 */

static const char mounts[] =
    "22 1 0:21 / /proc rw,nosuid - proc proc rw\n"
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

static void expect_cgroup(const char *mountinfo, const char *groups,
                          const char *wanted)
{
  char path[256] = "";
  bool found = cli_cgroup_locate(mountinfo, groups, path, sizeof path);

  ck_assert_int_eq(found, wanted != NULL);
  if (wanted != NULL)
    ck_assert_str_eq(path, wanted);
}

START_TEST(our_cgroup_is_found_where_version_2_is_mounted)
{
  expect_cgroup(mounts, "0::/\n", "/sys/fs/cgroup");
  expect_cgroup(mounts, "9:name=systemd:/x\n0::/a/b\n", "/sys/fs/cgroup/a/b");
  expect_cgroup(mounts, "0::/a/../../b\n", NULL);
  expect_cgroup(mounts, "4:memory:/a\n", NULL);
  expect_cgroup("30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                "0::/\n", NULL);
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/a/b\n",
                "/mnt/b");
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/a\n", "/mnt");
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/ab\n", NULL);
  expect_cgroup("30 - cgroup2 \n/mnt\n", "0::/a\n", NULL);
}
END_TEST

/* ---- the doctor ------------------------------------------------------------
 */

static void expect_word(const char *answer, cli_four_letter_state kind,
                        const char *version, const char *mode)
{
  size_t len = strlen(answer);
  char *exact = malloc(len + 1); /* for who reads too far */
  cli_four_letter_reply w;

  memcpy(exact, answer, len);
  exact = realloc(exact, len > 0 ? len : 1);
  cli_four_letter_reply_read(&w, lk_bytes_of(exact, len));
  ck_assert_msg(w.kind == kind, "%s: %d", answer, (int)w.kind);
  ck_assert_int_eq(w.version.at != NULL, version != NULL);
  ck_assert_int_eq(w.mode.at != NULL, mode != NULL);
  if (version != NULL)
    ck_assert(w.version.len == strlen(version) &&
              memcmp(w.version.at, version, w.version.len) == 0);
  if (mode != NULL)
    ck_assert(w.mode.len == strlen(mode) &&
              memcmp(w.mode.at, mode, w.mode.len) == 0);
  free(exact);
}

START_TEST(what_a_server_says_of_itself_is_read)
{
  expect_word("Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-2"
              "9 17:54 UTC\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode"
              " count: 5\n",
              CLI_FOUR_LETTER_SERVING, "3.8.0", "follower");
  expect_word("Zookeeper version: 3.8.0-x\nREAD-ONLY mode; serving only read-on"
              "ly clients\nMode: read-only\n",
              CLI_FOUR_LETTER_READ_ONLY, "3.8.0", "read-only");
  expect_word("This ZooKeeper instance is not currently serving requests\n",
              CLI_FOUR_LETTER_NO_QUORUM, NULL, NULL);
  expect_word("null", CLI_FOUR_LETTER_NO_QUORUM, NULL, NULL);
  expect_word("rw", CLI_FOUR_LETTER_SERVING, NULL, NULL);
  expect_word("ro", CLI_FOUR_LETTER_READ_ONLY, NULL, NULL);
  expect_word("imok", CLI_FOUR_LETTER_UNKNOWN, NULL, NULL);
  expect_word("srvr is not executed because it is not in the whitelist.\n",
              CLI_FOUR_LETTER_UNKNOWN, NULL, NULL);
}
END_TEST

START_TEST(no_byte_of_it_is_believed)
{
  expect_word("", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_word("rwx", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_word("imo", CLI_FOUR_LETTER_NOT_ZOOKEEPER, NULL, NULL);
  expect_word("HTTP/1.1 400 Bad Request\r\n", CLI_FOUR_LETTER_NOT_ZOOKEEPER,
              NULL, NULL);
  expect_word("Zookeeper version: ", CLI_FOUR_LETTER_UNKNOWN, "", NULL);
  expect_word("Zookeeper version: 3.9.1", CLI_FOUR_LETTER_UNKNOWN, "3.9.1",
              NULL);
  expect_word("Zookeeper version: -\nMode: ", CLI_FOUR_LETTER_SERVING, "", "");
}
END_TEST

START_TEST(servers_that_no_memory_is_left_for_are_an_error)
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
    bool failed = allocations_left < 0;

    allocations_left = -1;
    ck_assert_int_eq(err, failed ? LK_ERR_NO_MEMORY : 0);
    cli_server_checks_free(&s);
  }
  ck_assert_int_gt(tries, 6); /* a list and a name for each */
}
END_TEST

START_TEST(versions_are_numbers)
{
  ck_assert(cli_version_is_before(lk_text("3.4.14"), 3, 5));
  ck_assert(cli_version_is_before(lk_text("2.9"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text("3.5.0"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text("3.10.1"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text("4.0"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text("3"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text("3.x"), 3, 5));
  ck_assert(
      !cli_version_is_before(lk_text("3./:"), 3, 5)); /* -1 and 10 behind '0' */
  ck_assert(!cli_version_is_before(lk_text("3.99999999999"), 3, 5));
  ck_assert(!cli_version_is_before(lk_text(""), 3, 5));
  ck_assert(!cli_version_is_before(lk_text(NULL), 3, 5));
}
END_TEST

START_TEST(a_wall_clock_that_is_set_is_seen_and_one_that_is_kept_right_is_not)
{
  cli_clock_check c;

  cli_clock_check_begin(&c, (cli_clock_reading){1000, 500000});
  cli_clock_check_sample(&c, (cli_clock_reading){1050, 500150});
  cli_clock_check_sample(&c, (cli_clock_reading){1100, 500240});
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 0);
  cli_clock_check_sample(&c, (cli_clock_reading){1150, 3600000 + 500150});
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 3600000);
  cli_clock_check_sample(&c, (cli_clock_reading){1200, 300200});
  ck_assert_int_eq(cli_clock_check_step_ms(&c), -200000);
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 0);
  ck_assert_int_eq(cli_clock_check_took_ms(&c), 200);
}
END_TEST

START_TEST(a_process_that_was_paused_sees_the_longest_time)
{
  cli_clock_check c;

  cli_clock_check_begin(&c, (cli_clock_reading){0, 0});
  cli_clock_check_sample(&c, (cli_clock_reading){499, 499});
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 0);
  cli_clock_check_sample(&c, (cli_clock_reading){2499, 2499});
  cli_clock_check_sample(&c, (cli_clock_reading){3099, 3099});
  ck_assert_int_eq(cli_clock_check_paused_ms(&c), 2000);
  ck_assert_int_eq(cli_clock_check_step_ms(&c), 0);
}
END_TEST

SUITE("functions", utf8_is_what_the_standard_says,
      what_others_wrote_cannot_speak_to_the_terminal, base64_is_padded,
      times_are_rfc_3339_in_utc,
      message_that_is_too_long_is_cut_and_still_a_line,
      errors_that_can_pass_have_the_hint_to_try_again,
      hints_name_the_options_of_tls, text_grows_and_counts_what_was_printed,
      json_has_commas_between_and_nowhere_else, json_text_is_quoted,
      json_data_that_are_no_text_are_base64, seconds_are_decimal_and_exact,
      whole_numbers_keep_their_range, options_end_at_the_first_operand,
      options_are_taken_wherever_they_stand,
      first_complaint_is_kept_and_later_options_are_taken,
      every_name_of_an_option_is_the_same_option,
      every_action_of_on_lost_has_a_word, letters_of_options_are_letters,
      a_wrong_option_is_named, paths_are_checked_and_the_broken_rule_is_named,
      help_has_every_option_once, access_lists_are_read,
      a_wrong_access_list_is_refused_and_named,
      an_auth_file_has_comments_and_passwords_with_colons,
      a_line_of_sasl_is_a_user_and_a_password,
      other_lines_of_sasl_are_refused_without_the_password,
      digest_with_a_password_in_clear_is_refused,
      attempts_tell_each_server_and_the_likely_cause,
      attempt_that_failed_by_tls_names_what_to_do_for_each_cause,
      tls_is_selected_by_its_options_and_before_the_servers,
      option_of_tls_wins_over_the_environment,
      command_line_that_is_suggested_has_the_options_of_tls,
      days_of_a_certificate_are_whole_and_negative_once_it_has_expired,
      certificate_is_reported_a_month_before_it_expires,
      attempts_at_several_servers_are_judged_together,
      a_layout_is_a_word_and_perhaps_a_prefix,
      one_writer_holds_and_readers_before_it_hold_together,
      a_writer_that_also_reads_holds_twice,
      contender_that_has_left_is_not_counted, n_counts_in_any_order_with_w,
      nodes_of_zookeeper_are_known_with_a_chroot_and_without,
      permit_that_is_younger_than_the_first_place_holds,
      permits_of_the_first_place_wait,
      permits_hold_when_no_other_contender_has_any,
      session_of_many_threads_waits_with_its_youngest_permit,
      permits_hold_when_the_first_place_may_not_be_read,
      term_comes_the_margin_before_the_deadline_and_kill_at_it,
      deadline_renewed_before_the_margin_moves_all_signals,
      a_lock_that_is_lost_means_term_at_once_and_kill_after_the_margin,
      a_loss_after_term_never_puts_kill_off,
      what_is_left_of_a_command_gets_no_more_time_than_the_margin,
      command_that_slept_past_the_deadline_still_gets_time_to_stop,
      kill_comes_the_margin_before_the_deadline_or_with_the_loss,
      stopped_command_waits_for_a_new_lease_and_is_killed_when_lost,
      command_that_cannot_be_stopped_in_time_is_killed,
      kill_leaves_a_tenth_of_the_margin_to_die,
      earlier_deadline_and_shorter_margin_count_at_once,
      after_the_longest_hold_term_and_kill_come_however_long_the_lease,
      after_the_longest_hold_kill_and_stop_kill, ignore_does_nothing,
      our_cgroup_is_found_where_version_2_is_mounted,
      what_a_server_says_of_itself_is_read, no_byte_of_it_is_believed,
      versions_are_numbers, servers_that_no_memory_is_left_for_are_an_error,
      a_wall_clock_that_is_set_is_seen_and_one_that_is_kept_right_is_not,
      a_process_that_was_paused_sees_the_longest_time)
