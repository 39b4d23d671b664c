/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/options.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const cli_option_lists run_lists = {
    cli_options_run,    cli_options_job,     cli_options_command,
    cli_options_layout, cli_options_session, cli_options_common,
    cli_options_version};

enum { REFUSED = -1 };

/* Parses the words behind the name of the program. Returns the number of the
 * first operand, counted from 1, or REFUSED. */
static int parse(cli_options *o, char *complaint, char **words)
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
  return wrong ? REFUSED : first;
}

#define WORDS(...)    \
  (char *[])          \
  {                   \
    __VA_ARGS__, NULL \
  }
/* A word that may be changed, as those of argv. */
#define W(text) ((char[]){text})

START_TEST(option_n_overrides_w_in_any_order)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-n"), W("-w"), W("3"), W("/l"))),
                   4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-w"), W("3"), W("-n"), W("/l"))),
                   4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-w"), W("3"), W("/l"))), 3);
  ck_assert_int_eq(o.wait_ms, 3000);
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-n"), W("-w"), W("x"), W("/l"))),
                   REFUSED);
}
END_TEST

START_TEST(options_end_at_the_first_operand)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(
      parse(&o, wrong, WORDS(W("-n"), W("-E"), W("7"), W("/l"), W("-v"))), 4);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(o.conflict_code, 7);
  ck_assert(!o.verbose);
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-v"), W("--"), W("/l"))), 3);
}
END_TEST

START_TEST(options_among_the_operands_are_taken_up_to_two_dashes)
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

static const cli_option_lists watch_lists = {
    cli_options_watch, cli_options_session, cli_options_common};

/* Parses the words behind "watch". Returns the operands, joined by blanks, or
 * the complaint behind a "!"; the caller frees nothing. */
static const char *parse_watch(cli_options *o, char **words)
{
  static char name[] = "watch", out[200];
  char *argv[16] = {name};
  cli_text text = {0};
  int argc = 1;

  for (; words[argc - 1] != NULL; argc++)
    argv[argc] = words[argc - 1];
  cli_options_init(o);
  int first =
      cli_options_take_before_command(o, watch_lists, argc, argv, &text);

  if (text.len > 0) {
    snprintf(out, sizeof out, "!%s", cli_text_end(&text));
    cli_text_free(&text);
    return out;
  }
  for (char **word = argv + first; *word != NULL; word++)
    cli_text_printf(&text, "%s ", *word);
  snprintf(out, sizeof out, "%s", text.len > 0 ? cli_text_end(&text) : "");
  cli_text_free(&text);
  return out;
}

START_TEST(options_of_command_are_operands)
{
  cli_options o;

  ck_assert_str_eq(parse_watch(&o, WORDS(W("-n"), W("2"), W("/x"), W("ls"),
                                         W("-r"), W("--"), W("-n"))),
                   "/x ls -r -- -n ");
  ck_assert_int_eq(o.count, 2);
  ck_assert(!o.recursive);
  ck_assert_str_eq(
      parse_watch(&o, WORDS(W("/x"), W("--"), W("-r"), W("--"), W("-n"))),
      "/x -r -- -n ");
  ck_assert(!o.recursive);
  ck_assert_str_eq(parse_watch(&o, WORDS(W("-r"), W("--"), W("/x"))), "/x ");
  ck_assert(o.recursive);
  ck_assert_str_eq(parse_watch(&o, WORDS(W("-r"))), "");
}
END_TEST

START_TEST(options_stand_after_path_if_there_is_no_command)
{
  static const char misplaced[] =
      "!options must stand before PATH if COMMAND follows (put -- before a "
      "COMMAND that begins with -)";
  cli_options o;

  ck_assert_str_eq(
      parse_watch(&o, WORDS(W("/x"), W("--children"), W("-n"), W("3"))), "/x ");
  ck_assert(o.children);
  ck_assert_int_eq(o.count, 3);
  ck_assert_str_eq(parse_watch(&o, WORDS(W("/x"), W("-n"), W("3"), W("ls"))),
                   misplaced);
  ck_assert_str_eq(parse_watch(&o, WORDS(W("/x"), W("-r"), W("--"), W("ls"))),
                   misplaced);
  ck_assert_str_eq(parse_watch(&o, WORDS(W("/x"), W("-Q"), W("ls"))),
                   "!unknown option -Q");
  ck_assert_str_eq(parse_watch(&o, WORDS(W("/x"), W("--"))),
                   "!COMMAND is missing");
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
    ck_assert_int_eq(parse(&o, wrong, WORDS(word, W("/l"))), 2);
    ck_assert_int_eq(o.wait_ms, 1500);
  }
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--nb"), W("/l"))), 2);
  ck_assert_int_eq(o.wait_ms, 0);
  ck_assert_int_eq(
      parse(&o, wrong, WORDS(W("-x"), W("-e"), W("--exclusive"), W("/l"))), 4);
  ck_assert_int_eq(
      parse(&o, wrong,
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
    ck_assert_int_eq(parse(&o, wrong, WORDS(W("--on-lost"), word, W("/l"))), 3);
    ck_assert_int_eq(o.on_lost, rows[i].policy);
  }
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--on-lost"), W("kil"), W("/l"))),
                   REFUSED);
}
END_TEST

START_TEST(short_names_of_options_are_letters)
{
  static const cli_option *const lists[] = {
      cli_options_common, cli_options_version, cli_options_session,
      cli_options_json,   cli_options_layout,  cli_options_run,
      cli_options_job,    cli_options_command, cli_options_join,
      cli_options_elect,  cli_options_members, cli_options_wait,
      cli_options_write,  cli_options_delete,  cli_options_create,
      cli_options_ls,     cli_options_read,    cli_options_watch};

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

  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-S"), W("/l"))), REFUSED);
  ck_assert_str_eq(wrong, "unknown option -S");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-nu"), W("/l"))), REFUSED);
  ck_assert_str_eq(wrong, "unknown option -u");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-\x7f"), W("/l"))), REFUSED);
  ck_assert_str_eq(wrong, "unknown option -\\x7f");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--permutes=2"), W("/l"))),
                   REFUSED);
  ck_assert_str_eq(wrong, "unknown option --permutes=2");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--nb=2"), W("/l"))), REFUSED);
  ck_assert_str_eq(wrong, "--nb takes no argument");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-w"))), REFUSED);
  ck_assert_str_eq(wrong, "--wait needs an argument: SECS");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--id"))), REFUSED);
  ck_assert_str_eq(wrong, "--id needs an argument: TEXT");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("-E"), W("256"))), REFUSED);
  ck_assert_str_eq(wrong, "--conflict-exit-code: \"256\" is not an exit code "
                          "from 0 to 255");
  ck_assert_int_eq(parse(&o, wrong, WORDS(W("--events-fd"), W("987"))),
                   REFUSED);
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
    if (s[i] == '\n')
      lines++;
  ck_assert_uint_eq(lines, 38); /* the options of run_lists */
  ck_assert_ptr_nonnull(strstr(s, "  -w, --wait SECS "));
  ck_assert_ptr_null(strstr(s, "--timeout SECS"));
  cli_text_free(&text);
}
END_TEST

START_TEST(tls_is_selected_by_its_options_or_before_the_servers)
{
  static const char *const options[] = {
      "--tls",   "--cacert=x",   "--cert=x",   "--key=x",
      "--crl=x", "--tls-name=x", "--insecure", "--key-password-file=x"};
  cli_options o;
  char wrong[200];

  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    char word[40];

    snprintf(word, sizeof word, "%s", options[i]);
    parse(&o, wrong, WORDS(word, W("/l")));
    ck_assert_str_eq(wrong, "");
    ck_assert(cli_tls_is_selected(&o.tls, "h:1"));
  }
  parse(&o, wrong, WORDS(W("-v"), W("/l")));
  ck_assert(!cli_tls_is_selected(&o.tls, "h:1/tls://"));
  ck_assert(cli_tls_is_selected(&o.tls, "tls://h:1"));
  ck_assert(cli_tls_is_selected(&o.tls, " tls://h:1"));
  setenv("LATCHKEY_TLS_CACERT", "x", 1);
  ck_assert(!cli_tls_is_selected(&o.tls, "h:1"));
  unsetenv("LATCHKEY_TLS_CACERT");
}
END_TEST

START_TEST(only_a_native_layout_may_have_a_prefix)
{
  static const struct {
    const char *word;
    lk_layout layout;
    const char *prefix; /* NULL: none */
  } good[] = {{"curator", LK_LAYOUT_CURATOR, NULL},
              {"kazoo", LK_LAYOUT_KAZOO, NULL},
              {"native", LK_LAYOUT_NATIVE, NULL},
              {"native:", LK_LAYOUT_NATIVE, ""},
              {"native:lock", LK_LAYOUT_NATIVE, "lock"},
              {"native-uuid:a:b", LK_LAYOUT_NATIVE_UUID, "a:b"},
              {"latch", LK_LAYOUT_LATCH, NULL}};
  static const char *const bad[] = {
      "",          "nativ",      "native-", "kazoo:x", "curator:", "native:r-",
      "native:w-", "native:a/b", "latch:x", "single:", "single:x", "single-"};
  cli_options o;
  char wrong[200];
  char word[32];

  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    const char *prefix = good[i].prefix;

    snprintf(word, sizeof word, "%s", good[i].word);
    ck_assert_int_eq(parse(&o, wrong, WORDS(W("--layout"), word, W("/l"))), 3);
    ck_assert_int_eq(o.layout, good[i].layout);
    ck_assert(!o.single_node);
    ck_assert_int_eq(o.prefix == NULL, prefix == NULL);
    if (prefix != NULL)
      ck_assert_str_eq(o.prefix, prefix);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf(word, sizeof word, "%s", bad[i]);
    ck_assert_int_eq(parse(&o, wrong, WORDS(W("--layout"), word, W("/l"))),
                     REFUSED);
  }
}
END_TEST

START_TEST(single_node_is_no_layout_and_the_last_one_counts)
{
  char wrong[200];
  cli_options o;

  ck_assert_int_eq(parse(&o, wrong, WORDS(W("/l"))), 1);
  ck_assert(!o.single_node);
  parse(&o, wrong, WORDS(W("--layout=native:x"), W("--layout=single")));
  ck_assert_str_eq(wrong, "");
  ck_assert(o.single_node && o.layout_given);
  ck_assert_int_eq(o.layout, LK_LAYOUT_CURATOR);
  ck_assert_ptr_null(o.prefix);
  parse(&o, wrong, WORDS(W("--layout=single"), W("--layout=kazoo")));
  ck_assert_str_eq(wrong, "");
  ck_assert(!o.single_node);
  ck_assert_int_eq(o.layout, LK_LAYOUT_KAZOO);
}
END_TEST

SUITE("options", option_n_overrides_w_in_any_order,
      options_end_at_the_first_operand,
      options_among_the_operands_are_taken_up_to_two_dashes,
      options_of_command_are_operands,
      options_stand_after_path_if_there_is_no_command,
      first_complaint_is_kept_and_later_options_are_taken,
      every_name_of_an_option_is_the_same_option,
      every_action_of_on_lost_has_a_word, short_names_of_options_are_letters,
      a_wrong_option_is_named, help_has_every_option_once,
      tls_is_selected_by_its_options_or_before_the_servers,
      only_a_native_layout_may_have_a_prefix,
      single_node_is_no_layout_and_the_last_one_counts)
