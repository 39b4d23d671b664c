/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Command lines that are refused before anything is sent: the exit code is 125,
   and one line names what is wrong. */

#include <stdio.h>

#include "support/suite.h"
#include "unit/command/program.h"

typedef struct refused_line {
  const char *words[COMMAND_LINE_WORDS + 1];
  const char *message; /* a part of the line */
} refused_line;

static const refused_line refused[] = {
    {{NULL}, "no arguments are given"},
    {{"list", "/"}, "\"list\" is neither a verb nor a path"},
    {{"--on-lost", "/l", "true"}, "(/l is the argument of --on-lost)"},
    {{"-n", "ls", "/x"}, "unknown option -n in front of the verb"},
    {{"ls", "-Q", "/x"}, "unknown option -Q"},
    {{"ls", "--quite", "/x"}, "unknown option --quite"},
    {{"set", "/x", "-q"}, "put -- before data that begins with -"},
    {{"ls", "--json=x", "/x"}, "takes no argument"},
    {{"ls", "-z"}, "needs an argument"},
    {{"ls"}, "PATH is missing"},
    {{"run"}, "LOCK is missing"},
    {{"fence"}, "FILE is missing"},
    {{"fence", "file"}, "TOKEN is missing"},
    {{"set", "/x"}, "DATA is missing"},
    {{"get", "/x", "/y"}, "too many operands"},
    {{"get", "x"}, "must begin with \"/\""},
    {{"get", "/x//y"}, "must not contain"},
    {{"get", "/x/../y"}, "between slashes"},
    {{"get", "/x\n"}, "holds bytes that ZooKeeper refuses"},
    {{"run", "/l"}, "COMMAND is missing"},
    {{"run", "/l", "--"}, "COMMAND is missing"},
    {{"run", "/l", "-n", "true"}, "options must stand before the path"},
    {{"run", "/l", "-c"}, "-c after the path takes one STRING"},
    {{"run", "/l", "-c", "true", "x"}, "-c after the path takes one STRING"},
    {{"run", "-c", "true", "/l", "x"}, "-c STRING is the whole command"},
    {{"run", "/", "true"}, "the path must be below"},
    {{"run", "/zookeeper/x", "true"}, "/zookeeper is reserved"},
    {{"run", "-l", "/zookeeper/x", "/l", "true"}, "/zookeeper is reserved"},
    {{"run", "-l", "x", "/l", "true"}, "is not a path below"},
    {{"run", "-s", "-l", "x:/l", "/l", "true"}, "two sides"},
    {{"run", "-p", "0", "/l", "true"}, "is not a number of permits"},
    {{"run", "-p", "2", "--take", "3", "/l", "true"}, "more permits than -p"},
    {{"run", "-p", "2", "--take", "x", "/l", "true"}, "from 1 to 1000"},
    {{"run", "--take", "2", "/l", "true"}, "--take needs -p"},
    {{"run", "-p", "2", "-s", "/l", "true"}, "-p excludes -s"},
    {{"run", "--layout", "latch", "-s", "/l", "true"}, "latch excludes -s"},
    {{"run", "--layout", "single", "-s", "/l", "true"}, "single excludes -s"},
    {{"run", "--layout", "latch", "-p", "2", "/l", "true"},
     "-p needs --layout"},
    {{"run", "--layout", "native:x", "-s", "/l", "true"}, "exclude a prefix"},
    {{"run", "--layout", "native:r-", "/l", "true"}, "has the prefix r- or w-"},
    {{"run", "--layout", "latch:x", "/l", "true"}, "is followed by a prefix"},
    {{"run", "--layout", "native:\n", "/l", "true"}, "has bytes"},
    {{"run", "--layout", "x", "/l", "true"}, "is none of curator"},
    {{"run", "-E", "256", "/l", "true"}, "is not an exit code"},
    {{"run", "-w", "x", "/l", "true"}, "is not a number of seconds"},
    {{"run", "-w", "1e9", "/l", "true"}, "is not a number of seconds"},
    {{"run", "-w", "99999999", "/l", "true"}, "is too long"},
    {{"run", "--kill-after", "0", "/l", "true"}, "must be more than 0"},
    {{"run", "--max-hold", "0", "/l", "true"}, "must be more than 0"},
    {{"run", "--max-hold", "1", "--min-hold", "2", "/l", "true"},
     "--min-hold is longer"},
    {{"run", "--max-hold", "1", "--on-lost", "ignore", "/l", "true"},
     "exclude each other"},
    {{"run", "--on-lost", "x", "/l", "true"}, "is none of term"},
    {{"run", "--assurance", "x", "/l", "true"}, "is none of quorum"},
    {{"run", "--events-fd", "x", "/l", "true"}, "is not the number"},
    {{"run", "--events-fd", "99", "/l", "true"}, "is not an open descriptor"},
    {{"run", "--events-fd", "0", "/l", "true"}, "cannot be written to"},
    {{"run", "--acl", "x", "/l", "true"}, "--acl"},
    {{"run", "--auth-file", "/nonexistent", "/l", "true"}, "--auth-file"},
    {{"join", "--name", "a/b", "/g", "true"}, "is not the name of a node"},
    {{"elect", "--restarts", "x", "/e", "true"}, "is not a whole number"},
    {{"elect", "--restarts", "-1", "/e", "true"}, "is out of range"},
    {{"create", "-c", "-e", "/x"}, "-c"},
    {{"create", "-t", "0", "/x"}, "-t"},
    {{"create", "-t", "1", "-e", "/x"}, "-t"},
    {{"create", "--acl", "x", "/x"}, "--acl"},
    {{"set", "-V", "x", "/x", "y"}, "is not a version"},
    {{"delete", "-r", "-V", "0", "/x"}, "-V"},
    {{"delete", "-r", "/"}, "cannot be deleted"},
    {{"delete", "-r", "/zookeeper"}, "cannot be deleted"},
    {{"acl", "/x", "y"}, "acl"},
    {{"watch", "-n", "0", "/x"}, "is not a number of events"},
    {{"watch", "-r", "/x", "true"}, "-r"},
    {{"watch", "-r", "--children", "/x"}, "-r"},
    {{"ls", "-T", "0", "/x"}, "must be more than 0"},
    {{"ls", "--connect-timeout", "0", "/x"}, "must be more than 0"},
    {{"ls", "--max-request", "x", "/x"}, "is not a number of bytes"},
    {{"ls", "--max-reply", "99x", "/x"}, "is not a number of bytes"},
    {{"ls", "--max-reply", "99999M", "/x"}, "is out of range"},
    {{"ls", "-z", "a:x", "/x"}, "a:x"},
    {{"ls", "--auth-file", "/nonexistent", "/x"}, "--auth-file"},
    {{"ls", "--tls-name", "", "/x"}, "is not a name"},
    {{"fence", "/nonexistent/file", "1"}, "/nonexistent"},
    {{"fence", "file", "x"}, "TOKEN"},
};

enum { REFUSED = sizeof refused / sizeof *refused };

static program p;

static bool is_one_line(const char *text)
{
  const char *end = strchr(text, '\n');

  return end != NULL && end[1] == '\0';
}

static bool was_refused(const refused_line *line)
{
  const command_line code_125 = {.code = 125, .out = ""};
  bool is_right = program_did(&p, &code_125) && is_one_line(p.err) &&
                  strstr(p.err, line->message) != NULL;

  if (!is_right)
    printf("%s %s: not \"%s\" but \"%s\"\n", line->words[0], line->words[1],
           line->message, p.err);
  return is_right;
}

START_TEST(wrong_command_line_is_refused_with_one_line)
{
  bool all_were_refused = true;

  program_start(&p);
  for (size_t i = 0; i < REFUSED; i++) {
    program_run(&p, refused[i].words);
    all_were_refused = was_refused(&refused[i]) && all_were_refused;
  }
  ck_assert(all_were_refused);
  ck_assert_uint_eq(loopback_requests(&p.loopback, "create"), 0);
  program_stop(&p);
}
END_TEST

/* The same words with --json in front, for verbs that take it there. */
START_TEST(refusal_is_json_with_the_option_json)
{
  static const refused_line lines[] = {
      {{"--json", "ls", "/x", "-Q"}, "unknown option -Q"},
      {{"ls", "-Q", "/x", "--json"}, "unknown option -Q"},
      {{"--json", "run", "-E", "256", "/l", "true"}, "is not an exit code"},
      {{"run", "--json", "/zookeeper/x", "true"}, "is reserved"},
      {{"list", "--json"}, "neither a verb"},
  };

  program_start(&p);
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    program_run(&p, lines[i].words);
    ck_assert(was_refused(&lines[i]));
    ck_assert_int_eq(strncmp(p.err, "{\"event\":\"failed\"", 17), 0);
  }
  program_stop(&p);
}
END_TEST

START_TEST(help_of_each_verb_names_its_usage)
{
  static const char *const verbs[] = {
      "run",    "elect", "join",    "status", "wait",   "revoke",
      "ls",     "tree",  "get",     "stat",   "create", "set",
      "delete", "watch", "members", "acl",    "fence",  "doctor"};
  char usage[40];

  program_start(&p);
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
    snprintf(usage, sizeof usage, "usage: latchkey %s [OPTION...]", verbs[i]);
    ck_assert_int_eq(program_run(&p, WORDS(verbs[i], "--help")), 0);
    ck_assert_int_eq(strncmp(p.out, usage, strlen(usage)), 0);
    ck_assert_ptr_nonnull(strstr(p.out, "  -h, --help "));
  }
  ck_assert_int_eq(program_run(&p, WORDS("--help")), 0);
  for (size_t i = 1; i < sizeof verbs / sizeof *verbs; i++)
    ck_assert_ptr_nonnull(strstr(p.out, verbs[i]));
  ck_assert_int_eq(program_run(&p, WORDS("--version")), 0);
  ck_assert_int_eq(strncmp(p.out, "latchkey " PACKAGE_VERSION "\n", 10), 0);
  program_stop(&p);
}
END_TEST

SUITE("usage", wrong_command_line_is_refused_with_one_line,
      refusal_is_json_with_the_option_json, help_of_each_verb_names_its_usage)
