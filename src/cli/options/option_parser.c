/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <getopt.h>

#include "cli/options/options.h"

/* More than any verb has. */
enum { MAX_OPTIONS = 48 };

/* The option lists in the form of getopt_long(). */
struct getopt_table {
  const cli_option *options[MAX_OPTIONS];
  size_t count;                         /* number of `options` */
  struct option longs[MAX_OPTIONS + 1]; /* the last stays zero */
  size_t nlongs;
  /* The option string: order, ':', and each letter, with ':' if the option
     takes an argument; ended by a NUL. */
  char letters[2 + 2 * MAX_OPTIONS + 1];
  size_t nletters; /* number of characters in `letters` */
};

/* For the long form of option `i` of the table getopt_long() returns LONG_FORM
   + i, which is larger than any letter. */
enum { LONG_FORM = 256 };

/* Results of getopt_long(). The order '-' makes it return OPERAND; ':' after
   the order makes it distinguish MISSING_ARGUMENT from WRONG_OPTION. */
enum { OPERAND = 1, MISSING_ARGUMENT = ':', WRONG_OPTION = '?' };

/* The order characters of getopt_long(): it stops at the first operand, or
   returns each operand as OPERAND and goes on. */
enum { STOP_AT_OPERAND = '+', RETURN_OPERANDS = '-' };

static void add_option(struct getopt_table *t, const cli_option *option)
{
  if (option->letter != '\0') {
    t->letters[t->nletters++] = option->letter;
    if (option->arg != NULL)
      t->letters[t->nletters++] = ':';
  }
  if (option->name != NULL) {
    struct option *l = &t->longs[t->nlongs++];

    l->name = option->name;
    l->has_arg = option->arg != NULL ? required_argument : no_argument;
    l->val = LONG_FORM + (int)t->count;
  }
  t->options[t->count++] = option;
}

static void fill_getopt_table(struct getopt_table *t,
                              const cli_option_lists lists, char order)
{
  memset(t, 0, sizeof *t);
  t->letters[t->nletters++] = order;
  t->letters[t->nletters++] = ':';
  for (size_t i = 0; i < CLI_MAX_LISTS && lists[i] != NULL; i++)
    for (const cli_option *option = lists[i]; option->take != NULL; option++)
      if (t->count < MAX_OPTIONS)
        add_option(t, option);
}

/* Returns the option with this value of getopt_long(): a letter, or LONG_FORM +
   an index. Returns NULL if there is none. */
static const cli_option *find_option(const struct getopt_table *t, int value)
{
  if (value >= LONG_FORM)
    return t->options[value - LONG_FORM];
  for (size_t i = 0; i < t->count; i++)
    if (t->options[i]->letter == value)
      return t->options[i];
  return NULL;
}

static void show_option_name(cli_text *out, const cli_option *option)
{
  if (option->name != NULL)
    cli_text_printf(out, "--%s", option->name);
  else
    cli_text_printf(out, "-%c", option->letter);
}

/* Shows the unknown option: one letter if `word` is a group of letters, such as
   -nxv; else the whole word. */
static void show_unknown_option(cli_text *out, const char *word)
{
  bool printable = optopt > ' ' && optopt < 0x7f;

  if (printable && strncmp(word, "--", 2) != 0) {
    cli_text_printf(out, "unknown option -%c", optopt);
  } else {
    cli_text_puts(out, "unknown option ");
    cli_text_add_printable(out, lk_text(word));
  }
}

/* Refuses an option that is unknown, or has an argument and takes none: then
   `optopt` is the value of its long form. */
static void refuse_wrong_option(const struct getopt_table *t, const char *word,
                                cli_text *complaint)
{
  if (optopt >= LONG_FORM)
    cli_text_printf(complaint, "--%s takes no argument",
                    find_option(t, optopt)->name);
  else
    show_unknown_option(complaint, word);
}

/* Handles one result of getopt_long(), `got`, for an option in `word`. On error
   `complaint` gets one line. */
static void parse_option(cli_options *o, const struct getopt_table *t, int got,
                         const char *word, cli_text *complaint)
{
  if (got == WRONG_OPTION) {
    refuse_wrong_option(t, word, complaint);
    return;
  }
  /* `optopt` is the option whose argument is missing. */
  const cli_option *option =
      find_option(t, got == MISSING_ARGUMENT ? optopt : got);

  if (option == NULL) {
    show_unknown_option(complaint, word);
    return;
  }
  if (got == MISSING_ARGUMENT) {
    show_option_name(complaint, option);
    cli_text_printf(complaint, " needs an argument: %s", option->arg);
    return;
  }
  const char *wrong = option->take(o, optarg);

  if (wrong == NULL)
    return;
  show_option_name(complaint, option);
  cli_text_puts(complaint, ": \"");
  cli_text_add_printable(complaint, lk_text(optarg));
  cli_text_printf(complaint, "\" %s", wrong);
}

/* Parses options. With RETURN_OPERANDS, operands move to argv[1] and after;
   returns their number. Parsing goes on after the first complaint: a --json
   that follows it decides how the complaint is printed. */
static int parse_options(cli_options *o, const struct getopt_table *t, int argc,
                         char **argv, cli_text *complaint)
{
  int operands = 0;

  opterr = 0;
  optind = 0; /* 0 makes getopt_long() read the order character again */
  for (;;) {
    /* getopt_long() parses this word next. */
    const char *word = argv[optind == 0 ? 1 : optind];
    int got = getopt_long(argc, argv, t->letters, t->longs, NULL);
    cli_text ignored = {0};
    bool has_complaint = complaint->len > 0 || complaint->failed;

    if (got == -1)
      return operands;
    if (got == OPERAND)
      argv[++operands] = optarg;
    else
      parse_option(o, t, got, word, has_complaint ? &ignored : complaint);
    cli_text_free(&ignored);
  }
}

int cli_options_take(cli_options *o, const cli_option_lists lists, int argc,
                     char **argv, cli_text *complaint)
{
  struct getopt_table t;

  fill_getopt_table(&t, lists, STOP_AT_OPERAND);
  parse_options(o, &t, argc, argv, complaint);
  return optind;
}

int cli_options_take_anywhere(cli_options *o, const cli_option_lists lists,
                              int argc, char **argv, cli_text *complaint)
{
  struct getopt_table t;

  fill_getopt_table(&t, lists, RETURN_OPERANDS);
  int operands = parse_options(o, &t, argc, argv, complaint);

  while (optind < argc) /* operands after "--" */
    argv[++operands] = argv[optind++];
  argv[operands + 1] = NULL;
  return operands;
}

/* Parses the options after PATH, argv[0]. */
static void take_options_after_path(cli_options *o,
                                    const cli_option_lists lists, int argc,
                                    char **argv, cli_text *complaint)
{
  int operands = cli_options_take_anywhere(o, lists, argc, argv, complaint);

  if (operands > 0 && complaint->len == 0)
    cli_text_puts(complaint,
                  "options must stand before PATH if COMMAND follows (put -- "
                  "before a COMMAND that begins with -)");
  argv[1] = NULL;
}

int cli_options_take_before_command(cli_options *o,
                                    const cli_option_lists lists, int argc,
                                    char **argv, cli_text *complaint)
{
  int path = cli_options_take(o, lists, argc, argv, complaint);
  const char *second = path < argc ? argv[path + 1] : NULL;

  if (second == NULL || second[0] != '-')
    return path;
  if (strcmp(second, "--") != 0) {
    take_options_after_path(o, lists, argc - path, argv + path, complaint);
    return path;
  }
  if (argv[path + 2] == NULL && complaint->len == 0)
    cli_text_puts(complaint, "COMMAND is missing");
  argv[path + 1] = argv[path]; /* replaces the "--" */
  return path + 1;
}

void cli_options_help(const cli_option_lists lists, cli_text *out)
{
  for (size_t i = 0; i < CLI_MAX_LISTS && lists[i] != NULL; i++)
    for (const cli_option *option = lists[i]; option->take != NULL; option++) {
      cli_text form = {0};

      if (option->help == NULL)
        continue;
      if (option->letter != '\0')
        cli_text_printf(&form, "-%c, ", option->letter);
      else
        cli_text_puts(&form, "    ");
      if (option->name != NULL)
        cli_text_printf(&form, "--%s", option->name);
      if (option->arg != NULL)
        cli_text_printf(&form, " %s", option->arg);
      const char *text = cli_text_end(&form);

      cli_text_printf(out, "  %-28s %s\n", text == NULL ? "" : text,
                      option->help);
      cli_text_free(&form);
    }
}
