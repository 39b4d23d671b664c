/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include <latchkey/client.h>

#include "cli/command_table.h"
#include "cli/options/node_path.h"
#include "cli/output/print.h"
#include "cli/run/run.h"
#include "cli/session/interrupt.h"

/* The features of this build: one word for each, with a blank in front. */
static const char features[] = ""
#ifdef LK_WITH_GSASL
                               " sasl"
#endif
    ;

/* Opens /dev/null for closed standard descriptors, so that no other file gets
   their numbers. Standard input is write-only and the others are read-only, so
   that reads and writes of them still fail. */
static void open_standard_descriptors(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0) /* open() returns the smallest that is closed */
      (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* The words of argv usually follow each other in memory. Returns this memory,
   up to the first word that is elsewhere. */
static cli_process_title process_title_of(int argc, char **argv)
{
  cli_process_title title = {argv[0], strlen(argv[0])};

  for (int i = 1; i < argc && argv[i] == title.at + title.len + 1; i++)
    title.len += 1 + strlen(argv[i]);
  return title;
}

/* Whether the verb runs COMMAND: its options end at the first operand. */
static bool runs_command(const cli_command_entry *c)
{
  return c->run != NULL;
}

static int show_help(const cli_command_entry *c, bool whole_program)
{
  cli_text out = {0};

  cli_command_table_help(c, whole_program, &out);
  int code = cli_print(&out);

  cli_text_free(&out);
  return code;
}

static int show_version(void)
{
  cli_text out = {0};
  bool tls = lk_transport_tls() != NULL;
  bool any_feature = tls || features[0] != '\0';

  cli_text_printf(&out, "latchkey %s\nfeatures:%s%s%s\n", PACKAGE_VERSION,
                  features, tls ? " tls" : "", any_feature ? "" : " none");
  int code = cli_print(&out);

  cli_text_free(&out);
  return code;
}

/* Prints why the command line is wrong, and frees `line`. */
static int refuse_command_line(const cli_command_entry *c, const cli_options *o,
                               cli_text *line)
{
  const char *text = cli_text_end(line);

  if (text == NULL)
    text = lk_error_text(LK_ERR_NO_MEMORY);
  int code = runs_command(c) ? cli_run_refuse(o, text)
                             : cli_fail(CLI_EXIT_FAILED, "%s", text);

  cli_text_free(line);
  return code;
}

/* Prints a usage error with a hint at --help. */
static int refuse_usage(const cli_command_entry *c, const cli_options *o,
                        const char *wrong)
{
  cli_text line = {0};

  cli_text_printf(&line, "%s: %s; latchkey %s --help shows the usage", c->name,
                  wrong, c->name);
  return refuse_command_line(c, o, &line);
}

/* Prints `complaint` as a usage error, and frees it. */
static int refuse_option(const cli_command_entry *c, const cli_options *o,
                         cli_text *complaint)
{
  const char *line = cli_text_end(complaint);
  /* DATA that begins with "-" is taken for an unknown option. */
  bool may_be_data = strstr(c->usage, "DATA") != NULL && line != NULL &&
                     strncmp(line, "unknown", strlen("unknown")) == 0;

  if (may_be_data) {
    cli_text_puts(complaint, " (put -- before data that begins with -)");
    line = cli_text_end(complaint);
  }
  int code = refuse_usage(c, o, line == NULL ? "" : line);

  cli_text_free(complaint);
  return code;
}

/* Whether the first operand is a local file. */
static bool takes_file(const cli_command_entry *c)
{
  return strstr(c->usage, "FILE") != NULL;
}

/* Names the first operand that is missing. `given` is the number of operands on
   the command line. */
static const char *missing_operand(const cli_command_entry *c, int given)
{
  if (takes_file(c))
    return given > 0 ? "TOKEN is missing" : "FILE is missing";
  if (given > 0)
    return "DATA is missing, or - for standard input";
  return strstr(c->usage, "LOCK") != NULL ? "LOCK is missing"
                                          : "PATH is missing";
}

static int check_operands(const cli_command_entry *c, const cli_options *o,
                          char **operands, int count)
{
  cli_text line = {0};

  if (count < c->min_operands)
    return refuse_usage(c, o, missing_operand(c, count));
  if (c->max_operands != CLI_ANY_NUMBER && count > c->max_operands)
    return refuse_usage(c, o, "too many operands");
  if (count == 0 || takes_file(c))
    return CLI_EXIT_DONE;
  cli_text_printf(&line, "%s: ", c->name);
  if (!cli_path_check(operands[0], o->sequential, &line))
    return refuse_command_line(c, o, &line);
  cli_text_free(&line);
  return CLI_EXIT_DONE;
}

static int check_and_call_verb(const cli_command_entry *c, const cli_options *o,
                               char **operands, int count,
                               cli_process_title title)
{
  int code = check_operands(c, o, operands, count);

  if (code != CLI_EXIT_DONE)
    return code;
  if (runs_command(c))
    return c->run(o, operands, title);
  cli_interrupt_end_process_1();
  return c->call(o, operands);
}

static bool has_no_complaint(const cli_text *complaint)
{
  return complaint->len == 0 && !complaint->failed;
}

/* Selects the form of messages. With --events-fd the JSON events of `run` go to
   that descriptor, and the messages stay text. */
static void select_message_form(const cli_options *o)
{
  cli_messages_in_json(o->json && o->events_fd < 0);
}

/* A command line without the name of a verb selects `run`. */
enum verb_presence { VERB_NAMED, VERB_OMITTED };

/* Takes the options of the verb `c`. Returns its operands, which end with NULL.
   The options of verbs that run COMMAND end at the first operand; those of
   other verbs may stand anywhere. */
static char **take_verb_options(const cli_command_entry *c, cli_options *o,
                                int argc, char **argv, cli_text *complaint)
{
  if (runs_command(c))
    return argv + cli_options_take(o, c->options, argc, argv, complaint);
  if (c->optional_command)
    return argv + cli_options_take_before_command(o, c->options, argc, argv,
                                                  complaint);
  cli_options_take_anywhere(o, c->options, argc, argv, complaint);
  return argv + 1;
}

static int count_operands(char **operands)
{
  int count = 0;

  while (operands[count] != NULL)
    count++;
  return count;
}

/* Runs the verb `c`. argv[0] is its name, or that of latchkey if the name of
   the verb is omitted. The options in argv are added to those in `earlier`. */
static int run_verb(const cli_command_entry *c, enum verb_presence presence,
                    const cli_options *earlier, int argc, char **argv,
                    cli_process_title title)
{
  cli_text complaint = {0};
  cli_options o = *earlier;
  char **operands = take_verb_options(c, &o, argc, argv, &complaint);

  select_message_form(&o);
  if (!has_no_complaint(&complaint))
    return refuse_option(c, &o, &complaint);
  if (o.help)
    return show_help(c, presence == VERB_OMITTED);
  if (o.version)
    return show_version();
  return check_and_call_verb(c, &o, operands, count_operands(operands), title);
}

/* Refuses the unknown verb argv[at]. A --json after it selects the form of the
   message. An option in front of it can have taken LOCK as its argument. */
static int refuse_verb(cli_options *o, int argc, char **argv, int at)
{
  cli_text line = {0};
  cli_text ignored = {0};
  bool lock_is_argument = at > 2 && argv[at - 1][0] == '/';

  cli_options_take_anywhere(o, cli_options_general, argc - at, argv + at,
                            &ignored);
  cli_text_free(&ignored);
  cli_messages_in_json(o->json);
  cli_text_puts(&line, "\"");
  cli_text_add_printable(&line, lk_text(argv[at]));
  cli_text_puts(&line,
                "\" is neither a verb nor a path that begins with \"/\"");
  if (lock_is_argument) {
    cli_text_puts(&line, " (");
    cli_text_add_printable(&line, lk_text(argv[at - 1]));
    cli_text_puts(&line, " is the argument of ");
    cli_text_add_printable(&line, lk_text(argv[at - 2]));
    cli_text_puts(&line, ")");
  }
  cli_text_puts(&line, "; latchkey --help lists the verbs");
  return cli_fail_text(CLI_EXIT_FAILED, NULL, &line);
}

/* Takes the options behind the verb, which select the form of a complaint about
   those in front of it. */
static void take_form_of_messages(const cli_command_entry *c, cli_options *o,
                                  int argc, char **argv)
{
  cli_text ignored = {0};

  (void)take_verb_options(c, o, argc, argv, &ignored);
  cli_text_free(&ignored);
}

/* Runs the verb argv[at]. General options may stand before it; before a verb
   that runs COMMAND, all of its options. */
static int run_named_verb(int argc, char **argv, int at,
                          cli_process_title title)
{
  const cli_command_entry *c = cli_command_table_find(argv[at]);
  bool run = c != NULL && runs_command(c);
  cli_text complaint = {0};
  cli_options o;

  cli_options_init(&o);
  cli_options_take(&o, run ? c->options : cli_options_general, at, argv,
                   &complaint);
  if (c == NULL) {
    cli_text_free(&complaint);
    return refuse_verb(&o, argc, argv, at);
  }
  if (has_no_complaint(&complaint))
    return run_verb(c, VERB_NAMED, &o, argc - at, argv + at, title);
  cli_text_puts(&complaint, " in front of the verb");
  take_form_of_messages(c, &o, argc - at, argv + at);
  select_message_form(&o);
  return refuse_option(c, &o, &complaint);
}

static int run_command_line(int argc, char **argv)
{
  if (argc < 2)
    return cli_fail(
        CLI_EXIT_FAILED,
        "no arguments are given; latchkey --help lists the commands");
  cli_process_title title = process_title_of(argc, argv);
  cli_text ignored = {0};
  cli_options scratch;
  cli_options o;

  /* The first operand is found by parsing, as some options take arguments. The
     options in front of it are parsed as those of `run`, which include the
     general ones. */
  cli_options_init(&scratch);
  int first = cli_options_take(&scratch, cli_command_table->options, argc, argv,
                               &ignored);

  cli_text_free(&ignored);
  /* Without a verb, the first operand is LOCK, or there is none. */
  bool verb_omitted = first >= argc || argv[first][0] == '/';

  if (!verb_omitted)
    return run_named_verb(argc, argv, first, title);
  cli_options_init(&o);
  return run_verb(cli_command_table, VERB_OMITTED, &o, argc, argv, title);
}

int main(int argc, char **argv)
{
  open_standard_descriptors();
  int code = run_command_line(argc, argv);

  cli_messages_close();
  return code;
}
